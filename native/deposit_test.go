package native_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// depot is the test library's deposits.
type depot struct {
	t                *testing.T
	ctx              context.Context
	lib              *native.Library
	s                *native.Session
	fill             func(handle unsafe.Pointer, regions int32, n int64, out *native.Record) int32
	asJob            *native.Job
	owners, releases func() int64
	before           int64 // releases
}

func newDepot(t *testing.T) *depot {
	ctx := start(t)
	d := &depot{t: t, ctx: ctx, lib: openTest(t, ctx), s: newSession(t, ctx)}
	for name, fn := range map[string]any{"rt_deposit": &d.fill, "rt_owners": &d.owners, "rt_releases": &d.releases} {
		if err := d.lib.Func("rt", name, fn); err != nil {
			t.Fatal(err)
		}
	}
	d.asJob = job(t, d.lib, "rt_deposit_job", native.Handle, native.Int32, native.Int64, native.IntoDeposit)
	d.before = d.releases()
	return d
}

// released is how many owners were released since the test began.
func (d *depot) released() int64 { return d.releases() - d.before }

// filled is a deposit with so many vectors of n elements.
func (d *depot) filled(regions, n int) *native.Deposit {
	d.t.Helper()
	x := must(d.s.NewDeposit())
	if err := d.asJob.Run(d.ctx, d.s, "deposit", regions, n, x); err != nil {
		d.t.Fatal(err)
	}
	return x
}

func (d *depot) ok(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestRegionsBecomeArraysThatShareTheirOwner(t *testing.T) {
	d := newDepot(t)
	for _, regions := range []int{1, 2, 8} {
		before := d.released()
		x := d.filled(regions, 5)
		arrays := must(x.Arrays(d.ctx))
		if again := must(x.Arrays(d.ctx)); len(arrays) != regions || !slices.Equal(arrays, again) {
			t.Fatalf("%d arrays, then %d; expected %d, the same", len(arrays), len(again), regions)
		}
		for r, a := range arrays {
			first := float64(r)
			if got := must(tensor.Data[float64](d.ctx, a)); !slices.Equal(got, []float64{first, first + 1, first + 2, first + 3, first + 4}) {
				t.Errorf("region %d has %v", r, got)
			}
		}
		sum := must(tensor.Add(d.ctx, arrays[0], arrays[regions-1])) // they are arrays as any
		for r, a := range arrays {
			if n := d.released() - before; n != 0 {
				t.Errorf("released with %d of %d arrays alive", regions-r, regions)
			}
			d.ok(a.Free())
			d.ok(a.Free())
		}
		if n := d.released() - before; n != 1 {
			t.Errorf("released %d times; expected once", n)
		}
		if got := must(tensor.Data[float64](d.ctx, sum)); got[4] != 8+float64(regions-1) {
			t.Errorf("the sum is %v", got)
		}
	}
	if n := d.owners(); n != 0 {
		t.Errorf("%d owners are left", n)
	}
}

func TestDepositsWithoutElementsOrRegionsKeepNothing(t *testing.T) {
	d := newDepot(t)
	empty := must(d.filled(2, 0).Arrays(d.ctx))
	if len(empty) != 2 || empty[0].Size() != 0 || d.released() != 1 {
		t.Errorf("%v, %d released; expected two empty arrays, and the owner released at once", empty, d.released())
	}
	if none := must(d.filled(0, 3).Arrays(d.ctx)); len(none) != 0 || d.released() != 2 {
		t.Errorf("%v, %d released; expected none, and the owner released at once", none, d.released())
	}
}

func TestTheHandleOutlivesItsSessionForADepositsMemory(t *testing.T) {
	d := newDepot(t)
	s := must(native.NewSession(d.ctx))
	x := must(s.NewDeposit())
	d.ok(d.asJob.Run(d.ctx, s, "deposit", 2, 100, x))
	d.ok(s.Close())
	if native.Freed(s) {
		t.Error("the handle was freed before the deposit's memory")
	}
	arrays := must(x.Arrays(d.ctx))
	d.ok(arrays[0].Free())
	if got := must(tensor.Data[float64](d.ctx, arrays[1])); got[99] != 100 {
		t.Errorf("the last element is %g; expected 100", got[99])
	}
	d.ok(arrays[1].Free())
	if !native.Freed(s) || d.released() != 1 {
		t.Errorf("handle freed: %t, %d released; expected both with the last array", native.Freed(s), d.released())
	}
}

func TestADepositThatNobodyAsksIsGivenUpOnce(t *testing.T) {
	d := newDepot(t)
	x := d.filled(2, 4)
	d.ok(errors.Join(x.Close(), x.Close()))
	if arrays, err := x.Arrays(d.ctx); len(arrays) != 0 || err != nil || d.released() != 1 {
		t.Errorf("%v, %v, %d released; expected nothing, and one", arrays, err, d.released())
	}
	func() { d.filled(2, 4) }()
	for d.released() < 2 {
		runtime.Collect()
	}
	open := must(d.s.NewDeposit())
	d.ok(open.Close())
	says(t, d.asJob.Run(d.ctx, d.s, "deposit", 1, 1, open), weir.KindLogic, "deposit: the deposit is closed")
	taken := d.filled(1, 4)
	arrays := must(taken.Arrays(d.ctx))
	d.ok(taken.Close()) // the arrays are the caller's
	if d.released() != 2 || must(tensor.Data[float64](d.ctx, arrays[0]))[3] != 3 {
		t.Error("closing a deposit took its arrays away")
	}
}

func TestArraysOfADepositThatNobodyUsesAreReleasedByTheCollector(t *testing.T) {
	d := newDepot(t)
	func() {
		if n := len(must(d.filled(2, 1000).Arrays(context.Background()))); n != 2 {
			t.Errorf("%d arrays", n)
		}
	}()
	for d.released() < 1 {
		runtime.Collect()
	}
}

func TestARecordIsRefusedInEveryStateButOpen(t *testing.T) {
	d := newDepot(t)
	for state, text := range map[int32]string{native.DepositFilling: "out: being filled", native.DepositFilled: "out: already filled", native.DepositClosed: "out: closed"} {
		x := must(d.s.NewDeposit())
		d.ok(d.s.Do(d.ctx, func(sc *native.Scope) error {
			r := sc.Record(0)
			before := *r
			atomic.StoreInt32(r.State(), state)
			err := d.lib.Check("deposit", func() int32 { return d.fill(sc.Handle(), 1, 1, r) })
			says(t, err, weir.KindLogic, "deposit: "+text)
			if atomic.LoadInt32(r.State()) != state {
				t.Errorf("the state is %d; expected %d", *r.State(), state)
			}
			atomic.StoreInt32(r.State(), native.DepositOpen)
			if *r != before {
				t.Errorf("%s: the record was touched", text)
			}
			return nil
		}, native.Into(x)))
		if d.owners() != 0 {
			t.Errorf("%s: an owner is left", text)
		}
	}
	err := d.s.Do(d.ctx, func(sc *native.Scope) error {
		return d.lib.Check("deposit", func() int32 { return d.fill(sc.Handle(), 1, 1, nil) })
	})
	says(t, err, weir.KindLogic, "deposit: out is NULL")
	x := must(d.s.NewDeposit())
	err = d.asJob.Run(d.ctx, d.s, "deposit", 9, 1, x)
	if e, ok := errors.AsType[*weir.Error](err); !ok || e.Kind != weir.KindLogic || d.owners() != 0 {
		t.Errorf("9 regions: %v, %d owners left; expected kind logic and none", err, d.owners())
	}
	if arrays := must(x.Arrays(d.ctx)); len(arrays) != 0 {
		t.Errorf("got %v of a job that failed", arrays)
	}
}

func TestADepositIsLentToOneCall(t *testing.T) {
	d := newDepot(t)
	x := must(d.s.NewDeposit())
	d.ok(d.s.Do(d.ctx, func(sc *native.Scope) error {
		says(t, d.asJob.Run(d.ctx, d.s, "deposit", 1, 1, x), weir.KindLogic, "deposit: the deposit is in use by another call")
		says(t, d.s.Do(d.ctx, func(*native.Scope) error { return nil }, native.Into(x)), weir.KindLogic, "Session.Do: the deposit is in use by another call")
		says(t, x.Close(), weir.KindLogic, "Deposit.Close: a call still has the deposit")
		d.ok(d.lib.Check("deposit", func() int32 { return d.fill(sc.Handle(), 1, 2, sc.Record(0)) }))
		err := d.lib.Check("deposit", func() int32 { return d.fill(sc.Handle(), 1, 2, sc.Record(0)) })
		says(t, err, weir.KindLogic, "deposit: out: already filled")
		if arrays := must(x.Arrays(d.ctx)); len(arrays) != 1 { // it was filled, so it can be converted
			t.Errorf("%d arrays; expected 1", len(arrays))
		}
		return nil
	}, native.Into(x)))
	says(t, d.asJob.Run(d.ctx, d.s, "deposit", 1, 1, x), weir.KindLogic, "deposit: the deposit is closed")
	err := d.s.Do(d.ctx, func(*native.Scope) error { t.Error("called"); return nil }, native.Into(must(d.s.NewDeposit())), native.Into(x))
	says(t, err, weir.KindLogic, "Session.Do: the deposit is closed")
	twice := must(d.s.NewDeposit())
	err = d.s.Do(d.ctx, func(*native.Scope) error { t.Error("called"); return nil }, native.Into(twice), native.Into(twice))
	says(t, err, weir.KindLogic, "Session.Do: the deposit is in use by another call")
	says(t, (&native.Deposit{}).Close(), weir.KindLogic, "Deposit.Close: expected a deposit for a deposit parameter, given the zero Deposit")
}

// TestWhatAJobFillsIsThereOnceTheJobReturned: a job that waits has the deposit in the
// place of a handle, which is as large, and it is filled beside the job.
func TestWhatAJobFillsIsThereOnceTheJobReturned(t *testing.T) {
	d := newDepot(t)
	g := newGate(t, d.lib)
	g.job = job(t, d.lib, "rt_wait_job", native.IntoDeposit, native.Int32, native.Int32, native.OutInt32)
	x := must(d.s.NewDeposit())
	done := make(chan error, 1)
	go func() {
		var running int32
		done <- g.job.Run(d.ctx, d.s, "wait", x, int(g.started[1].Fd()), int(g.proceed[0].Fd()), &running)
	}()
	g.begun()
	handle := must(d.s.Handle())
	d.ok(d.lib.Check("deposit", func() int32 { return d.fill(handle, 1, 2, native.RecordOf(x)) }))
	_, err := x.Arrays(d.ctx)
	says(t, err, weir.KindLogic, "Deposit.Arrays: the deposit is still open")
	g.open()
	d.ok(<-done)
	if arrays := must(x.Arrays(d.ctx)); len(arrays) != 1 {
		t.Errorf("%d arrays; expected 1", len(arrays))
	}
}

func TestOutputsThatCannotBecomeArraysAreNotLostSilently(t *testing.T) {
	d := newDepot(t)
	x := d.filled(1, 2)
	g := must(flow.Record(d.ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		_, err := x.Arrays(ctx)
		if err == nil {
			err = errors.New("answered in a recording")
		}
		return nil, err
	}))
	if !errors.Is(g.Reason(), weir.ErrNotRecordable) {
		t.Errorf("the reason is %v; expected that it cannot be recorded", g.Reason())
	}
	d.ok(g.Close())
	if arrays := must(x.Arrays(d.ctx)); len(arrays) != 1 {
		t.Errorf("%d arrays after the recording; expected 1", len(arrays))
	}

	const dtypeOfRegion0 = 40 + 8
	y := d.filled(1, 2)
	*(*int32)(unsafe.Add(unsafe.Pointer(native.RecordOf(y)), dtypeOfRegion0)) = 77
	for range 2 {
		if arrays, err := y.Arrays(d.ctx); !errors.Is(err, weir.ErrArgument) || arrays != nil {
			t.Errorf("%v, %v; expected the element type refused each time", arrays, err)
		}
	}
	if d.released() != 1 {
		t.Errorf("%d released; expected the owner of what was refused", d.released())
	}
}

func TestADepositThatKeepsAClosedSessionsHandleIsALeak(t *testing.T) {
	d := newDepot(t)
	s, r := must(native.NewSession(d.ctx)), must(runtime.Here(d.ctx))
	x := must(s.NewDeposit())
	d.ok(errors.Join(d.asJob.Run(d.ctx, s, "deposit", 1, 4, x), s.Close()))
	named := func() bool {
		return slices.ContainsFunc(r.Live(), func(l runtime.Leak) bool { return l.Kind == "native session" && l.Name == "of a deposit" })
	}
	if !named() {
		t.Errorf("%v live; expected the session of a deposit among them", r.Live())
	}
	if err := x.Close(); err != nil || named() {
		t.Errorf("%v; still live once the deposit is closed: %t", err, named())
	}
}

// TestOfTwoThreadsThatFillOneRecordOneDoes, and the other changes nothing.
func TestOfTwoThreadsThatFillOneRecordOneDoes(t *testing.T) {
	d := newDepot(t)
	for round := range 300 {
		x := must(d.s.NewDeposit())
		var filled atomic.Int32
		d.ok(d.s.Do(d.ctx, func(sc *native.Scope) error {
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					err := d.lib.Check("deposit", func() int32 { return d.fill(sc.Handle(), int32(i%2+1), 3, sc.Record(0)) })
					switch {
					case err == nil:
						filled.Add(int32(i%2 + 1))
					case err.Error() != "deposit: out: being filled" && err.Error() != "deposit: out: already filled":
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return nil
		}, native.Into(x)))
		arrays := must(x.Arrays(d.ctx))
		if len(arrays) != int(filled.Load()) || len(arrays) == 0 {
			t.Fatalf("round %d: %d arrays; expected those of the one that filled it, %d", round, len(arrays), filled.Load())
		}
		for _, a := range arrays {
			d.ok(a.Free())
		}
		if d.owners() != 0 || d.released() != int64(4*(round+1)) { // each owner once, those that stayed the callers' too
			t.Fatalf("round %d: %d owners left, %d released", round, d.owners(), d.released())
		}
	}
}

// TestArraysAreFreedByManyAtOnceAndReleasedOnce, with the collector beside them.
func TestArraysAreFreedByManyAtOnceAndReleasedOnce(t *testing.T) {
	d := newDepot(t)
	for range 50 {
		arrays := must(d.filled(8, 50).Arrays(d.ctx))
		var wg sync.WaitGroup
		for _, a := range arrays {
			wg.Go(func() {
				if err := a.Free(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(goruntime.GC)
		wg.Wait()
	}
	if d.released() != 50 || d.owners() != 0 {
		t.Errorf("%d released, %d left; expected 50 and none", d.released(), d.owners())
	}
}
