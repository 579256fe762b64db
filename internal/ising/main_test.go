package ising

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/runtime"
)

// withRuntime runs the tests with a runtime, whose Close reports what they
// left behind.
type withRuntime struct{ *testing.M }

func (m withRuntime) Run() int {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.M.Run()
	if err := rt.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withRuntime{m}) }
