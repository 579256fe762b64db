//go:build !race

// The race detector makes sync.Pool, which purego uses, drop things at random.

package hostblas

import (
	"math/rand/v2"
	"testing"

	"github.com/weirgo/weir/dtype"
)

func TestASteadyStreamOfProductsAllocatesNothing(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		l.grain = 1000
		var s Scratch
		defer s.Free()
		for _, dt := range dtype.All() {
			for _, e := range []struct{ n, batch int64 }{{3, 1}, {64, 1}, {100, 1}, {20, 50}} {
				p := newProblem(t, square(e.n, dt, e.batch), 0, 0, false, false, rand.New(rand.NewPCG(1, 1)))
				g := p.g
				if n := testing.AllocsPerRun(50, func() {
					g.Alpha += 1
					l.Gemm(&g, &s)
				}); n != 0 {
					t.Errorf("%v, %d members of %d×%d: %v allocations a call; expected none", dt, e.batch, e.n, e.n, n)
				}
			}
		}
	})
}

func TestASteadyStreamOfGroupsAllocatesNothing(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		l.grain = 1000
		var s Scratch
		defer s.Free()
		for _, dt := range dtype.All() {
			x := mixed(t, dt, rand.New(rand.NewPCG(1, 1)))
			if n := testing.AllocsPerRun(50, func() { l.GemmGroups(x.groups, &s) }); n != 0 {
				t.Errorf("%v: %v allocations a call; expected none", dt, n)
			}
		}
	})
}
