package solver_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/provider/solver"
	"github.com/weirgo/weir/runtime"
)

// near compares singular values of small numbers.
func near(got []float64, want ...float64) bool {
	return slices.EqualFunc(got, want, func(x, y float64) bool { return math.Abs(x-y) <= 1e-14 })
}

func TestSVDDecomposes(t *testing.T) {
	r := newRig(t, 1, 2)
	defer r.close()
	m := r.matrix(0, 4, -3, 0)
	defer m.free()
	l := r.acquire()
	if err := solver.SVD(l, m.decomposition()); err != nil {
		t.Fatal(err)
	}
	if err := l.Stream().Synchronize(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.release(l)
	if got := m.values(); !near(got, 4, 3) {
		t.Errorf("the singular values are %v; expected 4 and 3", got)
	}
}

func TestADeviceHasTwoHandlesMadeAtTheFirstUseOrAsManyAsStreams(t *testing.T) {
	for streams, handles := range map[int]int{1: 1, 2: 2, 5: 2} {
		r := newRig(t, 1, streams)
		if n := r.count(fault.DeviceNewSolver); n != 0 {
			t.Errorf("%d handles were made before any use", n)
		}
		var all sync.WaitGroup
		executors := make([]*solver.Executor, 8)
		for i := range executors {
			all.Go(func() {
				e, err := solver.Of(r.r)
				if err != nil {
					t.Error(err)
				}
				executors[i] = e
			})
		}
		all.Wait()
		for _, e := range executors {
			if e != executors[0] {
				t.Error("two first uses made two executors")
			}
		}
		for range 10 {
			r.release(r.acquire())
		}
		if n := r.count(fault.DeviceNewSolver); n != handles || executors[0].Size() != handles {
			t.Errorf("%d streams: %d handles were made, the pool says %d; expected %d, used again", streams, n, executors[0].Size(), handles)
		}
		r.close()
	}
}

func TestACountOfHandlesIsSetBeforeTheFirstUse(t *testing.T) {
	r := newRig(t, 1, 4)
	defer r.close()
	for count, want := range map[int]string{
		0: "provider.NewPool: 0 of solver handle on host:0; expected 1 to 4, the number of streams",
		5: "provider.NewPool: 5 of solver handle on host:0; expected 1 to 4, the number of streams",
	} {
		if _, err := solver.Configure(r.r, count); !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Errorf("%d handles for 4 streams answers %v; expected %s", count, err, want)
		}
	}
	e, err := solver.Configure(r.r, 3)
	if err != nil || e.Size() != 3 {
		t.Fatalf("configured for 3: %v", err)
	}
	if again, err := solver.Configure(r.r, 3); err != nil || again != e {
		t.Errorf("the same count once more answers %v", err)
	}
	want := "provider.Configure: 2 of solver handle on host:0; its first use made 3, and a later count must agree"
	if _, err := solver.Configure(r.r, 2); !errors.Is(err, weir.ErrArgument) || err.Error() != want {
		t.Errorf("a later count that differs answers %v; expected %s", err, want)
	}
	if of, err := solver.Of(r.r); err != nil || of != e || r.count(fault.DeviceNewSolver) != 3 {
		t.Errorf("use answers another executor, %v, or made more handles: %d", err, r.count(fault.DeviceNewSolver))
	}
}

// TestHandlesOfBLASAndSolversAreApart: neither pool lends the other's.
func TestHandlesOfBLASAndSolversAreApart(t *testing.T) {
	r := newRig(t, 1, 3)
	defer r.close()
	l := r.acquire()
	b, err := blas.AcquireOn(context.Background(), r.r)
	if err != nil {
		t.Fatal(err)
	}
	if s, n := r.count(fault.DeviceNewSolver), r.count(fault.DeviceNewBLAS); s != 2 || n != 3 {
		t.Errorf("%d solver and %d BLAS handles were made; expected 2 and 3", s, n)
	}
	r.release(l)
	if err := b.Release(); err != nil {
		t.Error(err)
	}
}

func TestHandlesGoBeforeStreams(t *testing.T) {
	r := newRig(t, 1, 3)
	var order []fault.Call
	for _, call := range []fault.Call{fault.SolverDestroy, fault.StreamDestroy} {
		r.plan.Delay(call, func() { order = append(order, call) })
	}
	r.release(r.acquire())
	r.close()
	streams := slices.Index(order, fault.StreamDestroy)
	if streams != 2 || slices.Contains(order[streams:], fault.SolverDestroy) {
		t.Errorf("the order was %v; expected all handles first", order)
	}
}

// TestAHandleThatAnsweredAnErrorIsReplaced: by a failure of the library, by a
// decomposition that it refused, and through a copy of the lease.
func TestAHandleThatAnsweredAnErrorIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(r *rig, p *solver.Decomposition)
		expected error
	}{
		"a failure of the library": {func(r *rig, _ *solver.Decomposition) { r.plan.FailNth(fault.SolverSVD, 1, errCause) }, errCause},
		"a wrong decomposition":    {func(_ *rig, p *solver.Decomposition) { p.LDA = 0 }, weir.ErrArgument},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, 1)
			defer r.close()
			m := r.matrix(2, 0, 0, 1)
			defer m.free()
			p := m.decomposition()
			c.spoil(r, p)
			l := r.acquire()
			before, _ := l.Value()
			copied := *l
			if err := solver.SVD(&copied, p); !errors.Is(err, c.expected) {
				t.Errorf("SVD answers %v; expected %v", err, c.expected)
			}
			r.release(l)
			l = r.acquire()
			after, err := l.Value()
			if err != nil || after == before {
				t.Errorf("the handle was given on, %v", err)
			}
			if made, gone := r.count(fault.DeviceNewSolver), r.count(fault.SolverDestroy); made != 2 || gone != 1 {
				t.Errorf("%d handles were made and %d destroyed; expected 2 and 1", made, gone)
			}
			if err := solver.SVD(l, m.decomposition()); err != nil {
				t.Errorf("the new handle answers %v", err)
			}
			r.release(l)
			if got := m.values(); !near(got, 2, 1) {
				t.Errorf("the new handle computed %v; expected 2 and 1", got)
			}
		})
	}
}

func TestAReleasedLeaseSubmitsNothing(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	l := r.acquire()
	copied := *l
	r.release(l)
	present := r.acquire()
	for name, l := range map[string]*solver.Lease{"a released lease": l, "a copy of one": &copied, "the zero lease": {}} {
		if err := solver.SVD(l, &solver.Decomposition{}); !errors.Is(err, weir.ErrStale) {
			t.Errorf("%s answers %v; expected ErrStale", name, err)
		}
		r.release(l)
	}
	if n := r.count(fault.SolverSVD); n != 0 || !present.Stream().Valid() {
		t.Errorf("%d decompositions were submitted, and the present lease is valid %v", n, present.Stream().Valid())
	}
	r.release(present)
}

func TestAcquireLeasesOfTheDeviceInItsContext(t *testing.T) {
	r := newRig(t, 2, 1)
	defer r.close()
	enrolled, err := runtime.Enrolled()
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range enrolled {
		l, err := solver.Acquire(runtime.On(context.Background(), res.Device()))
		if err != nil {
			t.Fatal(err)
		}
		if d := l.Stream().Device(); d != res.Device().Driver() {
			t.Errorf("on %v the lease is of %v", res.Device(), d.Name())
		}
		r.release(&l)
	}
}

func TestAcquireAnswersWhyThereIsNoLease(t *testing.T) {
	if _, err := solver.Acquire(context.Background()); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("without a runtime: %v; expected ErrNotStarted", err)
	}
	r := newRig(t, 1, 1)
	r.plan.FailNth(fault.DeviceNewSolver, 1, errCause)
	if _, err := solver.Acquire(context.Background()); !errors.Is(err, errCause) {
		t.Errorf("when no handle can be made: %v; expected the failure", err)
	}
	l := r.acquire() // the next use tries again
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)
	if _, err := solver.Acquire(ctx); !errors.Is(err, errCause) {
		t.Errorf("when the caller gave up: %v; expected the cause", err)
	}
	r.release(l)
	if err := r.rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := solver.AcquireOn(context.Background(), r.r); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("of closed resources: %v; expected ErrClosed", err)
	}
}

// TestManyGoroutinesDecomposeAtOnce with fewer handles than streams than
// goroutines.
func TestManyGoroutinesDecomposeAtOnce(t *testing.T) {
	r := newRig(t, 1, 3)
	defer r.close()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 10 {
				large := float64(10*g + i + 1)
				m := r.matrix(0, large, 1, 0)
				l, err := solver.AcquireOn(context.Background(), r.r)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(solver.SVD(&l, m.decomposition()), l.Stream().Synchronize(context.Background()), l.Release()); err != nil {
					t.Error(err)
				}
				if got := m.values(); !near(got, large, 1) {
					t.Errorf("goroutine %d: %v; expected %v and 1", g, got, large)
				}
				m.free()
			}
		})
	}
	all.Wait()
}
