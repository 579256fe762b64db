package tensor

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
)

// On the host device the workspace is what products of narrow elements needed; a
// GPU's handles have theirs from the start.
func TestTheWorkspaceOfHandlesIsCountedAndGivenBackAtClose(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		t.Fatal(err)
	}
	ctx, free := Scope(context.Background())
	a := must(random(ctx, rand.New(rand.NewPCG(11, 12)), BFloat16, 200, 200)) // computed in a wider copy
	e := must(blas.Of(a.resources()))
	if n := e.WorkspaceBytes(); n != 0 {
		t.Errorf("%d bytes before the first product", n)
	}
	must(Data[BF16](ctx, must(MatMul(ctx, a, a))))
	if n := e.WorkspaceBytes(); n <= 0 {
		t.Errorf("%d bytes after a product of narrow elements", n)
	}
	if err := join(free(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	if n := e.WorkspaceBytes(); n != 0 {
		t.Errorf("%d bytes after Close", n)
	}
}
