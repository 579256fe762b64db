package devicetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

var errorTests = []test{
	{"errors name the operation, the device and the stream", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, b := w.streams(2), w.new(words)
		w.fill(s[0], b, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		w.fill(s[0], b, 2)
		c := w.tail(s[0])
		for _, x := range []struct {
			call fault.Call
			op   string
			of   stream.Stream
			do   func() error
		}{
			{fault.StreamRecord, "stream.Record", s[1], func() error { must(s[1].Submit()); return second(s[1].Record()) }},
			{fault.StreamWait, "stream.Wait", s[1], func() error { return s[1].Wait(c) }},
			{fault.EventQuery, "completion.Done", s[0], func() error { return second(c.Done()) }},
		} {
			w.plan.FailNth(x.call, 1, errCause)
			err := x.do()
			w.refused(err, errCause, "%s on stream %s (INJECTED, code 0): %s on %s: call %d was made to fail (INJECTED, code 0): %v",
				x.op, x.of, x.call, w.name, w.plan.Counts()[x.call], errCause)
			var e *weir.Error
			if !errors.As(err, &e) || e.Device != w.name || e.Stream != x.of.String() || e.Kind != weir.KindCUDA {
				w.t.Errorf("%s answers %#v", x.op, e)
			}
		}
		release()
		var e *weir.Error // the families' own words differ
		if err := must(s[1].Submit()).Zero(0, 8); !errors.As(err, &e) || e.Op != "Stream.Zero" || e.Device != w.name || e.Kind != weir.KindLogic {
			w.t.Errorf("a refusal of the driver is %#v", e)
		}
	}},
	{"a record that fails at release is reported and loses neither handle nor stream", func(f *fixture) {
		w, e := f.handles(1, 1)
		b := w.new(words)
		x := w.take()
		w.fill(x.Stream(), b, 1)
		w.sync(x.Stream())
		release := w.stall(x.Stream())
		must(x.Stream().Submit())
		w.plan.FailNth(fault.StreamRecord, 1, errCause)
		waited := false
		w.plan.Delay(fault.StreamSynchronize, func() {
			waited = true
			release()
		})
		if err := w.start("Release", x.Release).join(); !errors.Is(err, errCause) || !waited {
			w.t.Errorf("Release answers %v, after the work was waited for: %v; expected the failure", err, waited)
		}
		w.plan.Clear()
		w.ok(w.take().Release())
		if n := e.Size(); n != 1 {
			w.t.Errorf("the pool has %d handles", n)
		}
	}},
	{"a wait that fails leaves the ledger as it was", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, b, outs := w.streams(3), w.new(words), []*buffer.Buffer{w.new(words), w.new(words)}
		w.fill(s[0], b, 1)
		w.sync(s[0])
		var releases []func()
		for i, out := range outs {
			releases = append(releases, w.stall(s[i]))
			w.move(s[i], out, b)
		}
		w.plan.FailNth(fault.StreamWait, 2, errCause)
		if err := fill(s[2], b, 2); !errors.Is(err, errCause) {
			w.t.Errorf("the write answers %v; expected the failure", err)
		}
		w.fill(s[2], b, 3)
		for _, release := range releases {
			w.pending("the write", w.tail(s[2]))
			release()
		}
		for _, out := range outs {
			w.expect("what a reader saw", s[2], out, 1)
		}
		w.expect("what was written", s[2], b, 3)
	}},
	{"failed cleanups come out of Close, and all the rest is done", func(f *fixture) {
		w := f.memory(options{counted: true, mayFail: true})
		s := w.lease(w.r)
		b := w.new(words)
		w.fill(s, b, 1)
		l := must(blas.AcquireOn(context.Background(), w.r))
		w.sync(s)
		w.ok(errors.Join(s.Release(), l.Release(), b.Free()))
		failures := map[fault.Call]error{}
		calls := []fault.Call{fault.StreamSynchronize, fault.BLASDestroy, fault.StreamDestroy, fault.EventDestroy}
		if w.r.Device().Capabilities().StreamOrderedPools {
			calls = append(calls, fault.PoolFree, fault.PoolDestroy)
		} else {
			calls = append(calls, fault.DeviceFree)
		}
		for _, call := range calls {
			failures[call] = errors.New(string(call))
			w.plan.FailNth(call, 1, failures[call])
		}
		err := w.start("Close", w.rt.Close).join()
		for call, cause := range failures {
			if !errors.Is(err, cause) {
				w.t.Errorf("Close does not answer the failure of %s", call)
			}
		}
		c := w.plan.Counts()
		if c[fault.StreamDestroy] != c[fault.DeviceNewStream] || c[fault.BLASDestroy] != c[fault.DeviceNewBLAS] || c[fault.EventDestroy] != c[fault.DeviceNewEvent] {
			w.t.Error("a failure kept Close from destroying the rest")
		}
		w.expectNothingHeld()
	}},
	{"one failed call anywhere is answered and leaks nothing", func(f *fixture) {
		for _, plain := range []bool{false, true} {
			for n := 1; ; n++ {
				plan := &fault.Plan{}
				plan.FailNth(fault.Any, n, nil)
				w, err := f.program(plan, plain)
				total := plan.Counts()[fault.Any]
				if errors.Is(err, errWrongValue) || errors.Is(err, weir.ErrLeak) || n <= total && err != nil && !errors.Is(err, fault.ErrInjected) {
					f.t.Errorf("plain %v, call %d: %v; expected the failure alone", plain, n, err)
				}
				w.expectNothingHeld()
				if n > total {
					if err != nil || n < 30 {
						f.t.Errorf("with no failure, after %d calls: %v", n-1, err)
					}
					break
				}
			}
		}
	}},
	{"a call that always fails is answered and hangs nothing", func(f *fixture) {
		for _, call := range fault.Calls() {
			if !f.device(0).Capabilities().UnifiedHostAddresses && (call == fault.EventQuery || call == fault.EventSynchronize) {
				continue // memory whose users can never be waited for is kept, and so would a GPU's context be
			}
			plan := &fault.Plan{}
			plan.FailFrom(call, 1, nil)
			_, err := f.program(plan, false)
			if errors.Is(err, errWrongValue) || plan.Counts()[call] > 0 && err != nil && !errors.Is(err, fault.ErrInjected) {
				f.t.Errorf("%s: got %v; expected the failure", call, err)
			}
		}
	}},
}

var errWrongValue = errors.New("no call failed, and the value is wrong")

// program runs a small use of everything with a plan, and answers all errors.
func (f *fixture) program(plan *fault.Plan, plain bool) (w *world, err error) {
	f.t.Helper()
	w = &world{fixture: f, plan: plan, raw: f.device(0), name: f.device(0).Name()}
	rt, err := runtime.StartFamilies(f.wrapped(options{counted: true, plain: plain}, plan)[:1],
		runtime.Options{Devices: f.chosen()[:1], ResourceOptions: runtime.ResourceOptions{Streams: 2}})
	if err == nil {
		err = f.start("the program", func() error { return useEverything(rt) }).join()
	}
	return w, err
}

// useEverything takes memory of each kind, makes accesses on two streams, copies,
// a product, a partition, frees and a trim. It goes on after an error as a caller
// would who cleans up, and answers all errors.
func useEverything(rt *runtime.Runtime) (err error) {
	const size = 2 << 20
	note := func(e error) bool {
		err = errors.Join(err, e)
		return err == nil
	}
	defer func() { note(rt.Close()) }()

	r := must(runtime.Enrolled())[0]
	m, e := buffer.Of(r)
	if e != nil {
		return e
	}
	var mine []*buffer.Buffer
	allocate := func(make func(int64) (*buffer.Buffer, error), bytes int64) *buffer.Buffer {
		b, e := make(bytes)
		if e != nil {
			note(e)
			return nil
		}
		mine = append(mine, b)
		return b
	}
	small, big, pinned := allocate(m.New, 64), allocate(m.New, size), allocate(m.NewPinned, 64)
	l, e := blas.AcquireOn(context.Background(), r)
	note(e)
	s, e := r.Streams().Acquire(context.Background())
	note(e)
	defer func() {
		for _, b := range mine {
			note(b.Free())
		}
		note(m.Trim())
		note(s.Release())
		note(l.Release())
	}()
	if err != nil {
		return err
	}

	// 3 goes into small as a number of float64, and the product 3·3 to the end of
	// big; that leaves through pinned.
	if !note(upload(s, small, floats(slices.Repeat([]float64{3}, 8)))) {
		return err
	}
	parts, e := big.Partition(buffer.Range{Bytes: size - 64}, buffer.Range{Offset: size - 64, Bytes: 64})
	if !note(e) {
		return err
	}
	mine = append(mine, parts...)
	last := parts[1]
	if !note(operate(l.Stream(), last, []*buffer.Buffer{small}, func(_ driver.Stream, at []driver.Ptr) error {
		return blas.Gemm(&l, &blas.Product{DType: dtype.Float64, M: 1, N: 1, K: 1, Alpha: 1,
			A: at[1], B: at[1], C: at[0], LDA: 1, LDB: 1, LDC: 1, Batch: 1})
	})) || !note(move(s, pinned, last)) {
		return err
	}
	note(pinned.HostRead(context.Background(), func(x []byte) error {
		if !slices.Equal(x[:8], floats([]float64{9})) {
			return fmt.Errorf("%w: %v", errWrongValue, x[:8])
		}
		return nil
	}))
	return err
}
