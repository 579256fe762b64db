package callers

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheStackBeginsWithTheUsersCode(t *testing.T) {
	first, rest, _ := strings.Cut(Stack(), "\n")
	if !strings.HasSuffix(first, "TestTheStackBeginsWithTheUsersCode") {
		t.Errorf("the stack begins with %q; expected this test", first)
	}
	if !strings.Contains(rest, "callers_test.go:") || !strings.Contains(rest, "testing.tRunner") {
		t.Errorf("the stack lacks files or callers:\n%s", rest)
	}
}

func TestFramesOfWeirComeNowhereBeforeTheUsersCode(t *testing.T) {
	stack := depth(5)
	if first, _, _ := strings.Cut(stack, "\n"); !strings.Contains(first, "depth") {
		t.Errorf("the stack begins with %q", first)
	}
	if n := strings.Count(stack, "callers.depth\n"); n != 6 {
		t.Errorf("%d frames of a recursion of 6:\n%s", n, stack)
	}
}

//go:noinline
func depth(n int) string {
	if n == 0 {
		return Stack()
	}
	return depth(n-1) + ""
}
