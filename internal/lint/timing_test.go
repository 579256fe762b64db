package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOnlyProfileMakesTimingEvents holds that nothing pays for the time but who
// asks for it.
func TestOnlyProfileMakesTimingEvents(t *testing.T) {
	found := false
	for _, f := range files(t) {
		if f.test || strings.HasPrefix(f.dir, "internal/driver") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "NewMark" {
				if f.dir == "profile" {
					found = true
				} else {
					t.Errorf("%s makes a mark; expected that of package profile alone", f.name)
				}
			}
			return true
		})
	}
	if !found {
		t.Error("package profile makes no mark; the test looks for the wrong name")
	}

	sources, err := filepath.Glob("../../internal/driver/cuda/*.c")
	if err != nil {
		t.Fatal(err)
	}
	create := regexp.MustCompile(`cuEventCreate\w*\([^;]*;`)
	timed := map[string]int{}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range create.FindAllString(string(text), -1) {
			if !strings.Contains(call, "CU_EVENT_DISABLE_TIMING") {
				timed[filepath.Base(source)]++
			}
		}
	}
	if len(timed) != 1 || timed["mark.c"] != 1 {
		t.Errorf("events with the time are made in %v; expected one place, in mark.c", timed)
	}
}
