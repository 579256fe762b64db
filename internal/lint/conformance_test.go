package lint

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	suite := deviceTests(t)
	for _, row := range regexp.MustCompile(`(?m)^\| [A-Z].*$`).FindAllString(string(page), -1) {
		for _, name := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(row, -1) {
			prefix, several := strings.CutSuffix(name[1], " …")
			if !slices.ContainsFunc(suite, func(test string) bool { return test == name[1] || several && strings.HasPrefix(test, prefix) }) {
				t.Errorf("docs/conformance.md names %q, which internal/devicetest does not have", name[1])
			}
		}
	}
	for letter, last := range map[string]int{"R": 8, "D": 7, "S": 13, "P": 9, "B": 13, "E": 5, "U": 28, "M": 5, "N": 45} {
		for i := 1; i <= last; i++ {
			if row := fmt.Sprintf("\n| %s%d |", letter, i); !strings.Contains(string(page), row) {
				t.Errorf("docs/conformance.md has no row for %s%d", letter, i)
			}
		}
	}
}

// deviceTests are the names in the tables of package devicetest.
func deviceTests(t *testing.T) (names []string) {
	t.Helper()
	for _, f := range files(t) {
		if f.dir != "internal/devicetest" || f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if row, ok := n.(*ast.CompositeLit); ok && len(row.Elts) == 2 {
				name, isName := row.Elts[0].(*ast.BasicLit)
				_, isTest := row.Elts[1].(*ast.FuncLit)
				if isName && isTest {
					text, err := strconv.Unquote(name.Value)
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, text)
				}
			}
			return true
		})
	}
	if len(names) < 100 {
		t.Fatalf("%d tests found in internal/devicetest; the search missed them", len(names))
	}
	return names
}
