package bench

import (
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/weirgo/weir/internal/hostblas"
)

// bare is the loop of calling the library's own routine on plain memory, with
// nothing of Weir in between: of gonum its Gemm, of a shared library its
// symbol, with as many threads of its own as the process has cores.
func (x *matrices[T]) bare(l *hostblas.Library) (Loop, error) {
	if l.Path() == "" {
		return each(x.gonum()), nil
	}
	r, err := openRoutine(l.Path(), letter[T]())
	if err != nil {
		return nil, err
	}
	call := newSquareCall[T](r, x.n, x.mem[1], x.mem[0], x.mem[2])
	return func(n int) (time.Duration, error) {
		r.setThreads(l.Threads())
		defer r.setThreads(1) // which Weir relies on
		return each(call)(n)
	}, nil
}

// gonum is one call of gonum's routine.
func (x *matrices[T]) gonum() func() error {
	n, no := x.n, blas.NoTrans
	switch a := any(x.slice(0)).(type) {
	case []float32:
		b, c := any(x.slice(1)).([]float32), any(x.slice(2)).([]float32)
		return func() error {
			gonum.Implementation{}.Sgemm(no, no, n, n, n, 1, a, n, b, n, 0, c, n)
			return nil
		}
	case []float64:
		b, c := any(x.slice(1)).([]float64), any(x.slice(2)).([]float64)
		return func() error {
			gonum.Implementation{}.Dgemm(no, no, n, n, n, 1, a, n, b, n, 0, c, n)
			return nil
		}
	}
	panic("bench: unreachable")
}
