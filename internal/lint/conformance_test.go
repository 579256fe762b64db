package lint

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestConformanceNamesEveryRequirementAndOnlyTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				tests[fn.Name.Name] = true
			}
		}
	}
	for _, name := range regexp.MustCompile("`((Test|Fuzz|Example|Benchmark)[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !tests[name[1]] {
			t.Errorf("docs/conformance.md names %s, which does not exist", name[1])
		}
	}
	for letter, last := range map[string]int{"R": 8, "D": 7, "S": 13, "P": 9, "B": 13, "E": 5, "U": 28, "M": 5} {
		for i := 1; i <= last; i++ {
			if row := fmt.Sprintf("\n| %s%d |", letter, i); !strings.Contains(string(page), row) {
				t.Errorf("docs/conformance.md has no row for %s%d", letter, i)
			}
		}
	}
}
