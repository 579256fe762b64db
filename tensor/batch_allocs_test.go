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
		for range 1000 { // then there are events for all that may be under way
			multiply()
		}
		if n := testing.AllocsPerRun(300, multiply); n > c.allowed {
			t.Errorf("%s: %v allocations; want at most %v", c.name, n, c.allowed)
		}
	}
}

// TestSteadyProductsAllocateWhatABatchDoes: beside that, the arrays of what MatMul makes.
func TestSteadyProductsAllocateWhatABatchDoes(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	const count = 50
	scoped, free := Scope(context.Background())
	defer func() {
		if err := free(); err != nil {
			t.Error(err)
		}
	}()
	a, b, c := separate(scoped, count, 4, 4), separate(scoped, count, 4, 4), separate(scoped, count, 4, 4)
	for _, how := range []struct {
		name    string
		gather  func(x Products, i int) bool
		allowed float64
	}{
		{"in place", func(x Products, i int) bool { return x.GemmInto(1, a[i], b[i], 0, c[i]) }, 10},
		{"new ones", func(x Products, i int) bool {
			return ok2(x.MatMul(context.Background(), a[i], b[i]))
		}, 10 + count},
	} {
		multiply := func() {
			x := NewProducts(1 << 10)
			defer x.Close()
			for i := range count {
				if !how.gather(x, i) {
					t.Error("a product was not gathered")
				}
			}
			if _, err := x.Submit(scoped); err != nil {
				t.Error(err)
			}
			for i := range count {
				if err := x.Discard(i); err != nil {
					t.Error(err)
				}
			}
		}
		if n := testing.AllocsPerRun(200, multiply); n > how.allowed {
			t.Errorf("%s: %v allocations of %d products; want at most %v", how.name, n, count, how.allowed)
		}
	}
}
