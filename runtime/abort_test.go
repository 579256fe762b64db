package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
)

const abortChild = "WEIR_TEST_ABORT_CHILD"

func TestOnLeakAbortPrintsWhatIsHeldAndExitsWithStatus1(t *testing.T) {
	if os.Getenv(abortChild) != "" {
		leakAndClose(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), abortChild+"=yes")
	var out, diagnostic bytes.Buffer
	child.Stdout, child.Stderr = &out, &diagnostic
	err := child.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the process ended with %v; expected status 1", err)
	}
	if out.Len() > 0 {
		t.Errorf("it went on after Close: %s", &out)
	}
	const want = `weir: the runtime was closed while 2 things are still held:
runtime.Close: buffer of 300 bytes on host:0 is still held; WEIR_DEBUG=leaks tells where it was made
  kind: logic
  device: host:0
  because:
    leaked
runtime.Close: stream host:0/0 on host:0 is still held; WEIR_DEBUG=leaks tells where it was made
  kind: logic
  device: host:0
  because:
    leaked
`
	if got := diagnostic.String(); got != want {
		t.Errorf("standard error is\n%s\nexpected\n%s", got, want)
	}
}

// leakAndClose runs in the child, which does not get past Close.
func leakAndClose(t *testing.T) {
	fam, _ := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{OnLeak: runtime.LeakAbort}))
	b := allocate(t, resources("host:0"), 300)
	s := acquire(t, resources("host:0"))
	err := rt.Close()
	fmt.Println("survived", err, b.Bytes(), s)
}
