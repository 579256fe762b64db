package host

import (
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/hostblas"
)

// TestADeviceLostToAHelpersPanicSaysWhereThatWas, which is not where its product
// panicked with it.
func TestADeviceLostToAHelpersPanicSaysWhereThatWas(t *testing.T) {
	d, err := New(Options{}).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	p := &hostblas.Panic{Value: "in a helper", Callers: make([]uintptr, 64), Stack: []byte("its stack")}
	_ = slices.IndexFunc([]int{0}, func(int) bool { // so that a frame of package slices is the innermost that counts
		p.Callers = p.Callers[:goruntime.Callers(1, p.Callers)]
		return true
	})
	func() {
		defer func() { d.(*device).faulted(recover()) }()
		panic(p)
	}()
	lost, _ := d.Err().(*weir.Error)
	if lost == nil || lost.Message != "work panicked: in a helper" || lost.Stack != "its stack" || !strings.Contains(lost.Site, "slices.go:") {
		t.Errorf("the device was lost to %+v; expected the helper's value, stack and place", lost)
	}
}
