//go:build !race

// The race detector makes sync.Pool drop things at random.

package tensor

import (
	"context"
	"testing"

	"github.com/weirgo/weir/runtime"
)

// TestASteadyBatchAllocatesNothing as long as an access has room for its buffers;
// beyond that, its list grows.
func TestASteadyBatchAllocatesNothing(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, free := Scope(context.Background())
	defer func() {
		if err := free(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name    string
		a, b, c []*Array
		allowed float64
	}{
		{"a strided batch", blocks(ctx, 50, 4, 4, false), blocks(ctx, 50, 4, 4, false), blocks(ctx, 50, 4, 4, false), 0},
		{"two shapes", append(separate(ctx, 1, 2, 4), separate(ctx, 1, 3, 4)...), separate(ctx, 2, 4, 4), append(separate(ctx, 1, 2, 4), separate(ctx, 1, 3, 4)...), 0},
		{"150 buffers", separate(ctx, 50, 4, 4), separate(ctx, 50, 4, 4), separate(ctx, 50, 4, 4), 10},
	} {
		multiply := func() {
			if err := GemmBatchInto(ctx, 1, c.a, c.b, 0, c.c, FastTF32); err != nil {
				t.Error(err)
			}
		}
		if n := testing.AllocsPerRun(300, multiply); n > c.allowed {
			t.Errorf("%s: %v allocations; want at most %v", c.name, n, c.allowed)
		}
	}
}
