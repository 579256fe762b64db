package blas_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// whole answers n×n small whole numbers, whose sums and products are exact.
func whole(random *rand.Rand, n int64) []float64 {
	m := make([]float64, n*n)
	for i := range m {
		m[i] = float64(random.IntN(7) - 3)
	}
	return m
}

func TestGemmComputesTheProduct(t *testing.T) {
	r := newRig(t, 1, 2)
	defer r.close()
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int64{1, 2, 7} {
		a, b, c := whole(random, n), whole(random, n), whole(random, n)
		for _, beta := range []float64{0, -2} {
			m := r.matrices(n, a, b, c)
			l := r.acquire()
			if err := blas.Gemm(l, m.product(0, 1, 2, beta)); err != nil {
				t.Fatal(err)
			}
			if err := l.Stream().Synchronize(context.Background()); err != nil {
				t.Fatal(err)
			}
			r.release(l)
			if got, expected := m.read(2), multiply(n, a, b, c, beta); !slices.Equal(got, expected) {
				t.Errorf("%d×%d, beta %v: got %v; expected %v", n, n, beta, got, expected)
			}
			m.free()
		}
	}
}

func TestGemmGroupsComputesEveryProductInOneCall(t *testing.T) {
	r := newRig(t, 1, 2)
	defer r.close()
	random := rand.New(rand.NewPCG(3, 3))
	const n = 5
	var contents [][]float64
	for range 7 {
		contents = append(contents, whole(random, n))
	}
	m := r.matrices(n, contents...)
	defer m.free()
	plain := m.product(0, 1, 2, 0)
	scaled := m.product(0, 1, 2, -2)
	scaled.Compute = blas.ComputeTF32 // float64 is always exact
	l := r.acquire()
	err := blas.GemmGroups(l, []blas.Group{
		{Gemm: *plain, As: m.all(0, 1), Bs: m.all(1, 1), Cs: m.all(2, 3)},
		{Gemm: *scaled, As: m.all(1, 0, 0), Bs: m.all(0, 0, 1), Cs: m.all(4, 5, 6)},
	})
	if err := errors.Join(err, l.Stream().Synchronize(context.Background())); err != nil {
		t.Fatal(err)
	}
	r.release(l)
	for i, p := range []struct {
		a, b, c int
		beta    float64
	}{{0, 1, 2, 0}, {1, 1, 3, 0}, {1, 0, 4, -2}, {0, 0, 5, -2}, {0, 1, 6, -2}} {
		if got, expected := m.read(p.c), multiply(n, contents[p.a], contents[p.b], contents[p.c], p.beta); !slices.Equal(got, expected) {
			t.Errorf("product %d: got %v; expected %v", i, got, expected)
		}
	}
	if n := r.count(fault.BLASGemmGroups); n != 1 {
		t.Errorf("%d calls of the driver; expected one", n)
	}
}

func TestADeviceHasOneExecutorMadeAtItsFirstUse(t *testing.T) {
	r := newRig(t, 2, 3)
	defer r.close()
	if n := r.count(fault.DeviceNewBLAS); n != 0 {
		t.Errorf("%d handles were made before any use", n)
	}
	var all sync.WaitGroup
	executors := make([]*blas.Executor, 8)
	for i := range executors {
		all.Go(func() {
			e, err := blas.Of(r.r)
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
	if n := r.count(fault.DeviceNewBLAS); n != 3 || executors[0].Size() != 3 {
		t.Errorf("%d handles were made, the pool says %d; expected one for each of 3 streams, used again", n, executors[0].Size())
	}
}

func TestTheDefaultCountOfHandlesIsThatOfStreamsOnAnyNumberOfProcessors(t *testing.T) {
	before := goruntime.GOMAXPROCS(0)
	defer goruntime.GOMAXPROCS(before)
	for _, processors := range []int{1, 2, 16} {
		goruntime.GOMAXPROCS(processors)
		r := newRig(t, 1, 3)
		r.release(r.acquire())
		if n := r.count(fault.DeviceNewBLAS); n != 3 {
			t.Errorf("%d handles were made with %d processors; expected one for each of 3 streams", n, processors)
		}
		r.close()
	}
}

func TestACountOfHandlesIsSetBeforeTheFirstUse(t *testing.T) {
	r := newRig(t, 1, 4)
	defer r.close()
	for _, count := range []int{0, 5} {
		if _, err := blas.Configure(r.r, count); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%d handles for 4 streams answers %v; expected ErrArgument", count, err)
		}
	}
	e, err := blas.Configure(r.r, 2)
	if err != nil || e.Size() != 2 {
		t.Fatalf("configured for 2: %v", err)
	}
	if again, err := blas.Configure(r.r, 2); err != nil || again != e {
		t.Errorf("the same count once more answers %v", err)
	}
	if _, err := blas.Configure(r.r, 3); !errors.Is(err, weir.ErrArgument) {
		t.Errorf("a later count that differs answers %v; expected ErrArgument", err)
	}
	if of, err := blas.Of(r.r); err != nil || of != e || r.count(fault.DeviceNewBLAS) != 2 {
		t.Errorf("use answers another executor, %v, or made more handles: %d", err, r.count(fault.DeviceNewBLAS))
	}
}

// TestHandlesGoBeforeStreams watches the driver's calls of Close.
func TestHandlesGoBeforeStreams(t *testing.T) {
	r := newRig(t, 1, 3)
	var order []fault.Call
	for _, call := range []fault.Call{fault.BLASDestroy, fault.StreamDestroy} {
		r.plan.Delay(call, func() { order = append(order, call) })
	}
	r.release(r.acquire())
	r.close()
	streams := slices.Index(order, fault.StreamDestroy)
	if streams != 3 || slices.Contains(order[streams:], fault.BLASDestroy) {
		t.Errorf("the order was %v; expected all handles first", order)
	}
}

// TestAHandleThatAnsweredAnErrorIsReplaced: by a failure of the library, by a
// product that it refused, and through a copy of the lease.
func TestAHandleThatAnsweredAnErrorIsReplaced(t *testing.T) {
	single := blas.Gemm
	groups := func(l *blas.Lease, p *blas.Product) error {
		return blas.GemmGroups(l, []blas.Group{{Gemm: *p, As: []driver.Ptr{p.A}, Bs: []driver.Ptr{p.B}, Cs: []driver.Ptr{p.C}}})
	}
	wrong := func(_ *rig, p *blas.Product) { p.LDA = 0 }
	for name, c := range map[string]struct {
		submit   func(*blas.Lease, *blas.Product) error
		spoil    func(r *rig, p *blas.Product)
		expected error
	}{
		"a failure of the library":             {single, func(r *rig, _ *blas.Product) { r.plan.FailNth(fault.BLASGemm, 1, errCause) }, errCause},
		"a wrong product":                      {single, wrong, weir.ErrArgument},
		"a failure of the library with groups": {groups, func(r *rig, _ *blas.Product) { r.plan.FailNth(fault.BLASGemmGroups, 1, errCause) }, errCause},
		"a wrong group":                        {groups, wrong, weir.ErrArgument},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, 1)
			defer r.close()
			m := r.matrices(1, []float64{2}, []float64{3}, []float64{0})
			defer m.free()
			p := m.product(0, 1, 2, 0)
			c.spoil(r, p)
			l := r.acquire()
			before, _ := l.Value()
			copied := *l
			if err := c.submit(&copied, p); !errors.Is(err, c.expected) {
				t.Errorf("it answers %v; expected %v", err, c.expected)
			}
			r.release(l)
			l = r.acquire()
			after, err := l.Value()
			if err != nil || after == before {
				t.Errorf("the handle was given on, %v", err)
			}
			if made, gone := r.count(fault.DeviceNewBLAS), r.count(fault.BLASDestroy); made != 2 || gone != 1 {
				t.Errorf("%d handles were made and %d destroyed; expected 2 and 1", made, gone)
			}
			if err := blas.Gemm(l, m.product(0, 1, 2, 0)); err != nil {
				t.Errorf("the new handle answers %v", err)
			}
			r.release(l)
			if got := m.read(2); got[0] != 6 {
				t.Errorf("the new handle computed %v; expected 6", got)
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
	for name, l := range map[string]*blas.Lease{"a released lease": l, "a copy of one": &copied, "the zero lease": {}} {
		if err := blas.Gemm(l, &blas.Product{}); !errors.Is(err, weir.ErrStale) {
			t.Errorf("%s answers %v; expected ErrStale", name, err)
		}
		if err := blas.GemmGroups(l, nil); !errors.Is(err, weir.ErrStale) {
			t.Errorf("for groups, %s answers %v; expected ErrStale", name, err)
		}
		r.release(l)
	}
	if n := r.count(fault.BLASGemm) + r.count(fault.BLASGemmGroups); n != 0 || !present.Stream().Valid() {
		t.Errorf("%d products were submitted, and the present lease is valid %v", n, present.Stream().Valid())
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
		l, err := blas.Acquire(runtime.On(context.Background(), res.Device()))
		if err != nil {
			t.Fatal(err)
		}
		if d := l.Stream().Device(); d != res.Device().Driver() {
			t.Errorf("on %v the lease is of %v", res.Device(), d.Name())
		}
		r.release(&l)
	}
	l, err := blas.Acquire(context.Background())
	if err != nil || l.Stream().Device() != r.r.Device().Driver() {
		t.Errorf("without a device in the context, the lease is not of the default device: %v", err)
	}
	r.release(&l)
}

func TestAcquireAnswersWhyThereIsNoLease(t *testing.T) {
	if _, err := blas.Acquire(context.Background()); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("without a runtime: %v; expected ErrNotStarted", err)
	}
	r := newRig(t, 1, 1)
	r.plan.FailNth(fault.DeviceNewBLAS, 1, errCause)
	if _, err := blas.Acquire(context.Background()); !errors.Is(err, errCause) {
		t.Errorf("when no handle can be made: %v; expected the failure", err)
	}
	l := r.acquire() // the next use tries again
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)
	if _, err := blas.Acquire(ctx); !errors.Is(err, errCause) {
		t.Errorf("when the caller gave up: %v; expected the cause", err)
	}
	r.release(l)
	if err := r.rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := blas.AcquireOn(context.Background(), r.r); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("of closed resources: %v; expected ErrClosed", err)
	}
}

// TestResultsDoNotDependOnWhichStreamWasGiven runs a chain of products whose
// rounding shows every difference in order: on one stream, and on whichever of
// many is left while others hold some at random.
func TestResultsDoNotDependOnWhichStreamWasGiven(t *testing.T) {
	const n, length = 6, 40
	random := rand.New(rand.NewPCG(2, 2))
	var contents [][]float64
	for range 4 {
		m := make([]float64, n*n)
		for i := range m {
			m[i] = random.Float64() - 0.5
		}
		contents = append(contents, m)
	}
	var results [][]float64
	streamsUsed := map[string]bool{}
	for _, streams := range []int{1, 5} {
		r := newRig(t, 1, streams)
		m := r.matrices(n, contents...)
		var last stream.Completion
		for i := range length {
			var held []stream.Stream
			for range random.IntN(streams) {
				held = append(held, r.stream())
			}
			l := r.acquire()
			streamsUsed[l.Stream().String()] = true
			p := m.product(0, 1+i%3, 1+(i+1)%3, 0.5)
			p.Alpha = 0.3
			err := errors.Join(l.Stream().Wait(last), blas.Gemm(l, p))
			last, _ = l.Stream().Record()
			r.release(l)
			for _, s := range held {
				err = errors.Join(err, s.Release())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := last.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		var all []float64
		for i := range contents {
			all = append(all, m.read(i)...)
		}
		if slices.ContainsFunc(all, func(x float64) bool { return x != x || math.Abs(x) > 1e6 }) {
			t.Fatal("the chain left the range in which it shows anything")
		}
		results = append(results, all)
		m.free()
		r.close()
	}
	if !slices.Equal(results[0], results[1]) {
		t.Error("the results differ in some bit")
	}
	if len(streamsUsed) < 3 {
		t.Errorf("only %d streams were used; nothing is shown", len(streamsUsed))
	}
}

// TestManyGoroutinesMultiplyAtOnce with fewer handles than streams than
// goroutines.
func TestManyGoroutinesMultiplyAtOnce(t *testing.T) {
	const n, goroutines, rounds = 5, 8, 40
	r := newRig(t, 1, 3)
	defer r.close()
	if _, err := blas.Configure(r.r, 2); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range goroutines {
		random := rand.New(rand.NewPCG(uint64(g), 3))
		a, b, c := whole(random, n), whole(random, n), whole(random, n)
		m := r.matrices(n, a, b, c)
		all.Go(func() {
			expected := c
			var last stream.Completion
			for range rounds {
				l, err := blas.AcquireOn(context.Background(), r.r)
				if err != nil {
					t.Error(err)
					return
				}
				err = errors.Join(l.Stream().Wait(last), blas.Gemm(&l, m.product(0, 1, 2, 1)))
				last, _ = l.Stream().Record()
				if err := errors.Join(err, l.Release()); err != nil {
					t.Error(err)
				}
				expected = multiply(n, a, b, expected, 1)
			}
			if err := last.Wait(context.Background()); err != nil {
				t.Error(err)
			}
			if got := m.read(2); !slices.Equal(got, expected) {
				t.Errorf("goroutine %d: got %v; expected %v", g, got, expected)
			}
			m.free()
		})
	}
	all.Wait()
}
