package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// calls is a log of a plan's driver calls.
type calls struct {
	mu  sync.Mutex
	log []fault.Call
}

func (c *calls) add(call fault.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, call)
}

// watch logs every call from now on.
func watch(plan *fault.Plan) *calls {
	c := &calls{}
	for _, call := range fault.Calls() {
		plan.Delay(call, func() { c.add(call) })
	}
	return c
}

// nth is the place of the nth of a kind of call, -1 if there were fewer.
func (c *calls) nth(call fault.Call, n int) int {
	for i, x := range c.log {
		if x == call {
			n--
		}
		if n == 0 {
			return i
		}
	}
	return -1
}

func acquire(t testing.TB, r *runtime.Resources) stream.Stream {
	t.Helper()
	s, err := r.Streams().Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func allocate(t testing.TB, r *runtime.Resources, bytes int64) *buffer.Buffer {
	t.Helper()
	b, err := must(buffer.Of(r)).New(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func release(t testing.TB, x interface{ Release() error }) {
	t.Helper()
	if err := x.Release(); err != nil {
		t.Error(err)
	}
}

func TestCloseTakesTheLookupAwayThenDrainsThenDestroysHandlesThenTheRest(t *testing.T) {
	const devices, streams = 2, 3
	fam, plan := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: streams}}))
	gate := make(chan struct{})
	var worked atomic.Int32
	for _, r := range must(runtime.Enrolled()) {
		l := must(blas.AcquireOn(context.Background(), r))
		release(t, &l)
		if err := allocate(t, r, 3<<20).Free(); err != nil {
			t.Fatal(err)
		}
		s := acquire(t, r)
		if err := s.Call(func() { <-gate; worked.Add(1) }); err != nil {
			t.Fatal(err)
		}
		release(t, s)
	}

	log := watch(plan)
	early := sync.OnceFunc(func() { t.Error("a driver call of Close came before the lookup was gone") })
	plan.Delay(fault.Any, func() {
		if _, err := runtime.Default(); !errors.Is(err, weir.ErrNotStarted) {
			early()
		}
	})
	plan.Delay(fault.StreamSynchronize, sync.OnceFunc(func() { close(gate) })) // work goes on when the drain waits for it
	plan.Delay(fault.BLASDestroy, func() {
		if worked.Load() != devices {
			t.Error("a handle was destroyed while work was under way")
		}
	})
	if err := rt.Close(); err != nil {
		t.Error(err)
	}

	// Every device's drain, then every device's handles, and so on.
	for _, o := range []struct {
		first string
		end   int
		then  []fault.Call
	}{
		{"the drain", log.nth(fault.StreamSynchronize, devices*streams), []fault.Call{fault.BLASDestroy}},
		{"the handles", log.nth(fault.BLASDestroy, devices*streams), []fault.Call{fault.PoolDestroy, fault.StreamDestroy, fault.EventDestroy}},
	} {
		for _, call := range o.then {
			if begin := log.nth(call, 1); o.end < 0 || begin < o.end {
				t.Errorf("%s ended at call %d, and %s began at %d", o.first, o.end, call, begin)
			}
		}
	}
	for n := range devices {
		if pool, stream := log.nth(fault.PoolDestroy, n+1), log.nth(fault.StreamDestroy, n*(streams+2)+1); pool < 0 || stream < pool {
			t.Errorf("device %d: its memory went at call %d and its streams at %d", n, pool, stream)
		}
	}
}

func TestCloseGivesEverythingBack(t *testing.T) {
	fam, plan := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{}))
	var memories []*buffer.Memory
	devices := must(runtime.Enumerate())
	for _, d := range devices {
		r := must(runtime.For(d))
		m := must(buffer.Of(r))
		memories = append(memories, m)
		s := acquire(t, r)
		for _, bytes := range []int64{1, 5000, 900_000, 1 << 20, 5 << 20} {
			b := allocate(t, r, bytes)
			acc := buffer.Begin(s)
			p := acc.Write(b)
			if err := must(s.Submit()).Zero(p, bytes); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(acc.End(), b.Free()); err != nil {
				t.Fatal(err)
			}
		}
		p := must(m.NewPinned(100))
		if err := p.Free(); err != nil {
			t.Fatal(err)
		}
		release(t, s)
		l := must(blas.AcquireOn(context.Background(), r))
		release(t, &l)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	for i, d := range devices {
		if free, total, err := d.Memory(); free != total || err != nil {
			t.Errorf("%v: %d of %d bytes are free, %v", d, free, total, err)
		}
		if s := memories[i].Stats(); s.Buffers != 0 || s.Used != 0 || s.Cached != 0 || s.Held != 0 {
			t.Errorf("%v: memory counts %+v", d, s)
		}
	}
	c := plan.Counts()
	for made, gone := range map[fault.Call]fault.Call{
		fault.DeviceNewStream: fault.StreamDestroy, fault.DeviceNewEvent: fault.EventDestroy, fault.DeviceNewPool: fault.PoolDestroy,
		fault.DeviceNewBLAS: fault.BLASDestroy, fault.PoolAlloc: fault.PoolFree, fault.DeviceAllocHost: fault.DeviceFreeHost,
	} {
		if c[made] != c[gone] || c[made] == 0 {
			t.Errorf("%d calls of %s and %d of %s", c[made], made, c[gone], gone)
		}
	}
}

func TestASecondCloseDoesNothing(t *testing.T) {
	fam, plan := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{}))
	plan.FailNth(fault.StreamDestroy, 1, nil)
	if err := rt.Close(); !errors.Is(err, fault.ErrInjected) {
		t.Errorf("the first answers %v; expected the failed cleanup", err)
	}
	before := plan.Counts()[fault.Any]
	if err := rt.Close(); err != nil {
		t.Errorf("the second answers %v", err)
	}
	if n := plan.Counts()[fault.Any] - before; n != 0 {
		t.Errorf("the second made %d driver calls", n)
	}
}

func TestCloseJoinsEveryFailedCleanupAndGoesOn(t *testing.T) {
	fam, plan := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{Devices: []string{"host:1"}}))
	l := must(blas.Acquire(context.Background()))
	release(t, &l)
	if err := allocate(t, resources("host:1"), 10).Free(); err != nil {
		t.Fatal(err)
	}
	failures := map[fault.Call]error{}
	for _, call := range []fault.Call{fault.StreamSynchronize, fault.BLASDestroy, fault.PoolFree, fault.PoolDestroy, fault.StreamDestroy} {
		failures[call] = errors.New(string(call))
		plan.FailNth(call, 1, failures[call])
	}
	err := rt.Close()
	for call, cause := range failures {
		if !errors.Is(err, cause) {
			t.Errorf("Close does not answer the failure of %s", call)
		}
	}
	c := plan.Counts()
	if c[fault.StreamDestroy] != c[fault.DeviceNewStream] || c[fault.BLASDestroy] != c[fault.DeviceNewBLAS] {
		t.Error("a failure kept Close from destroying the rest")
	}
}

// hold takes one of everything and answers how to give it back.
func hold(t *testing.T, r *runtime.Resources) (giveBack func()) {
	b := allocate(t, r, 512)
	s := acquire(t, r)
	l := must(blas.AcquireOn(context.Background(), r))
	return func() {
		t.Helper()
		for _, err := range []error{b.Free(), s.Release(), l.Release()} {
			if err != nil && !errors.Is(err, weir.ErrClosed) {
				t.Error(err)
			}
		}
	}
}

func TestWhatIsStillHeldIsReportedWithKindSizeAndDevice(t *testing.T) {
	fam, _ := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{}))
	giveBack := hold(t, resources("host:1"))
	err := rt.Close()
	if !errors.Is(err, weir.ErrLeak) {
		t.Errorf("got %v; expected an ErrLeak", err)
	}
	got := strings.Split(err.Error(), "\n")
	slices.Sort(got)
	want := []string{
		"runtime.Close on host:1: blas handle 0 on host:1 is still held; WEIR_DEBUG=leaks tells where it was made",
		"runtime.Close on host:1: buffer of 512 bytes on host:1 is still held; WEIR_DEBUG=leaks tells where it was made",
		"runtime.Close on host:1: stream host:1/0 on host:1 is still held; WEIR_DEBUG=leaks tells where it was made",
		"runtime.Close on host:1: stream host:1/1 on host:1 is still held; WEIR_DEBUG=leaks tells where it was made", // the one beside the handle
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(weir.Report(err), "stack:") {
		t.Error("stacks are reported, and nobody asked for them")
	}
	if err := rt.Close(); err != nil {
		t.Errorf("a second Close reports again: %v", err)
	}
	giveBack() // too late, and harmless
}

func TestStacksOfWhatIsHeldAreReportedOnRequest(t *testing.T) {
	for _, how := range []string{"Options.Debug", "WEIR_DEBUG"} {
		t.Run(how, func(t *testing.T) {
			fam, _ := hosts()
			var o runtime.Options
			if how == "WEIR_DEBUG" {
				t.Setenv("WEIR_DEBUG", "leaks")
			} else {
				o.Debug = true
			}
			rt := must(runtime.StartFamilies([]driver.Family{fam}, o))
			defer hold(t, resources("host:0"))()
			var leaks []*weir.Error
			for _, err := range rt.Close().(interface{ Unwrap() []error }).Unwrap()[0].(interface{ Unwrap() []error }).Unwrap() {
				leaks = append(leaks, err.(*weir.Error))
			}
			if len(leaks) != 4 {
				t.Fatalf("%d leaks; expected 4", len(leaks))
			}
			for _, l := range leaks {
				if !strings.Contains(l.Stack, "runtime_test.hold") || !strings.Contains(l.Stack, "close_test.go:") {
					t.Errorf("%s was made at\n%s\nexpected a stack through hold", l.Message, l.Stack)
				}
			}
		})
	}
}

func TestUnreachableBuffersAreNoLeak(t *testing.T) {
	fam, _ := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{OnLeak: runtime.LeakAbort}))
	d := get("host:0")
	func() {
		r := resources("host:0")
		s := acquire(t, r)
		defer release(t, s)
		for range 20 {
			b := allocate(t, r, 1<<20)
			acc := buffer.Begin(s)
			acc.Write(b)
			if err := acc.End(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := allocate(t, r, 100).Partition(buffer.Range{Bytes: 50}, buffer.Range{Offset: 50, Bytes: 50}); err != nil {
			t.Fatal(err)
		}
	}()
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if free, total, _ := d.Memory(); free != total {
		t.Errorf("%d bytes are still held", total-free)
	}
}

func TestCloseWakesWhoeverWaits(t *testing.T) {
	fam, _ := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}}))
	r := resources("host:0")
	s := acquire(t, r)
	defer s.Release()
	woken := make(chan error)
	go func() {
		_, err := r.Streams().Acquire(context.Background())
		woken <- err
	}()
	for _, _, _, waiting := r.Streams().Counts(); waiting == 0; _, _, _, waiting = r.Streams().Counts() {
		goruntime.Gosched()
	}
	if err := rt.Close(); !errors.Is(err, weir.ErrLeak) {
		t.Errorf("Close answers %v; expected the held stream", err)
	}
	refuses(t, <-woken, weir.ErrClosed, "stream.Acquire on host:0: the pool is closed")
}

func TestCloseOfADeadDeviceAnswersItsErrorAndReturns(t *testing.T) {
	fam, plan := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{fam}, runtime.Options{}))
	for _, name := range []string{"host:0", "host:1"} {
		l := must(blas.AcquireOn(context.Background(), resources(name)))
		release(t, &l)
		if err := allocate(t, resources(name), 2<<20).Free(); err != nil {
			t.Fatal(err)
		}
	}
	cause := errors.New("fell off the bus")
	alive := get("host:1")
	get("host:0").Driver().(interface{ Kill(error) }).Kill(cause)
	err := rt.Close()
	if !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, cause) {
		t.Errorf("got %v; expected the first cause", err)
	}
	if free, total, err := alive.Memory(); free != total || err != nil {
		t.Errorf("the other device has %d of %d bytes, %v", free, total, err)
	}
	if c := plan.Counts(); c[fault.StreamDestroy] != c[fault.DeviceNewStream] {
		t.Error("streams were not destroyed")
	}
}
