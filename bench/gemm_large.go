package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir/internal/hostblas"
)

// largeSize is the extent of large products.
const largeSize = 1024

// leastFraction is what a large product must reach of the BLAS's own speed.
const leastFraction = 0.95

var gemmLarge = Scenario{
	Name: "gemm-large",
	About: "square products of 1024 through tensor.MatMul and tensor.GemmInto, each waited for, beside the same BLAS called directly" +
		" and beside its bare routine with its own threads",
	On:   HostOnly,
	Need: "0.95 of the direct call; without a shared library 1.0 of gonum's own routine, within the spread",
	Cases: func(Env) []Case {
		return append(largeCases[float64](), largeCases[float32]()...)
	},
}

func largeCases[T element]() []Case {
	var cases []Case
	for _, call := range []string{"MatMul", "GemmInto"} {
		for _, floor := range []string{"direct", "bare"} {
			cases = append(cases, gemmCase[T](largeSize, call, floor, Milliseconds, largeLimit(floor)))
		}
	}
	return cases
}

// largeLimit asks for equality with gonum's routine, else for leastFraction.
func largeLimit(floor string) Limit {
	if floor == "bare" && hostblas.Default().Name() == "gonum" {
		return Limit{Of: OfRatio, Max: 1, Spread: true}
	}
	return Limit{Of: OfRatio, Max: 1 / leastFraction}
}

// gemmCase is a product of n×n matrices by the named call of package tensor,
// beside the named floor: the library's own routine with "bare", else the host's
// BLAS as Weir calls it.
func gemmCase[T element](n int, call, floor string, u Unit, limits ...Limit) Case {
	open := func(ctx context.Context) (*Trial, error) {
		x, err := newMatrices[T](ctx, n)
		if err != nil {
			return nil, err
		}
		t := &Trial{Value: each(x.matMul), Floor: each(x.direct(hostblas.Default())), Allocs: n < largeSize, Close: x.close}
		if call == "GemmInto" {
			t.Value = each(x.gemmInto)
		}
		if floor == "bare" {
			if t.Floor, err = x.bare(hostblas.Default()); err != nil {
				return nil, errors.Join(err, x.close())
			}
		}
		t.Check = func() error { return x.agree(t.Floor) }
		if call == "MatMul" && floor != "bare" { // peers allocate their results too
			t.Peers = x.peers()
		}
		t.Figures = func(r Result) []Figure { return gemmFigures(r, n) }
		return t, nil
	}
	return Case{Name: fmt.Sprintf("%sgemm %d %s / %s", letter[T](), n, call, floor), Unit: u, Limits: limits, Open: open,
		At: Point{Series: letter[T]() + "gemm " + call + " / " + floor, Size: n}}
}

// gemmFigures are, of a large product of n×n matrices, what it reaches of the
// floor and its rate, n·n·n multiplications and as many additions; of a small
// one, what Weir adds.
func gemmFigures(r Result, n int) []Figure {
	if n < largeSize {
		return []Figure{{"excess", r.Value - r.Floor, "us"}}
	}
	seconds := Unit(r.Unit).seconds(r.Value)
	return []Figure{
		{"fraction", 1 / r.Ratio, ""},
		{"rate", 2 * float64(n) * float64(n) * float64(n) / seconds / 1e9, "GFLOP/s"},
	}
}
