package fault_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/drivertest"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEmptyPlanPassesTheConformanceSuite(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(*testing.T) driver.Family { return fault.New(host.New(host.Options{Devices: 2}), &fault.Plan{}) },
		Kill: func(d driver.Device) error {
			d.(interface{ Kill(error) }).Kill(errCause)
			return errCause
		},
	})
}

var errCause = errors.New("the cause that the test gave")

// world is a wrapped host device with one of everything.
type world struct {
	plan   *fault.Plan
	family driver.Family
	device driver.Device
	stream driver.Stream
	event  driver.Event
	pool   driver.Pool
	blas   driver.BLAS
	solver driver.Solver
	memory driver.Ptr // 64 bytes
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return wrap(t, graphed{host.New(host.Options{})})
}

// graphed is the host family with graphs of nothing.
type graphed struct{ driver.Family }

func (f graphed) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	return graphedDevice{d}, err
}

type graphedDevice struct{ driver.Device }

func (d graphedDevice) Kill(cause error) { d.Device.(interface{ Kill(error) }).Kill(cause) }

func (d graphedDevice) Capture([]driver.Stream, func() error) (driver.Graph, error) {
	return nothing{d.Device}, d.Err()
}

type nothing struct{ d driver.Device }

func (g nothing) Launch(driver.Stream) error { return g.d.Err() }
func (g nothing) Destroy() error             { return g.d.Err() }

func wrap(t *testing.T, inner driver.Family) *world {
	t.Helper()
	w := &world{plan: &fault.Plan{}}
	w.family = fault.New(inner, w.plan)
	w.device = must(w.family.Open(0))
	w.stream = must(w.device.NewStream(0))
	w.event = must(w.device.NewEvent())
	w.pool = must(w.device.NewPool(driver.PoolConfig{}))
	w.blas = must(w.device.NewBLAS())
	w.solver = must(w.device.NewSolver())
	w.memory = must(w.device.Alloc(64))
	t.Cleanup(func() {
		w.plan.Clear()
		err := errors.Join(w.event.Destroy(), w.blas.Destroy(), w.solver.Destroy(),
			w.pool.Destroy(), w.stream.Destroy(), w.device.Free(w.memory))
		if err != nil && w.device.Err() == nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func second[T any](_ T, err error) error { return err }

// fill is a launch that sets the first element of the world's memory.
func (w *world) fill(v int64) error {
	return w.stream.Launch(&driver.Kernel{Op: driver.KernelFill, Alpha: complex(float64(v), 0),
		Out: driver.View{Ptr: w.memory, DType: dtype.Int64}})
}

// first reads the first element of the world's memory.
func (w *world) first(t *testing.T) byte {
	t.Helper()
	b := make([]byte, 1)
	if err := w.stream.CopyOut(b, w.memory); err != nil {
		t.Fatal(err)
	}
	return b[0]
}

// make makes one call of each kind.
func (w *world) make(call fault.Call) error {
	buffer := make([]byte, 8)
	switch call {
	case fault.FamilyOpen:
		return second(w.family.Open(0))
	case fault.DeviceSelect:
		return second(w.device.Select())
	case fault.DeviceMemory:
		_, _, err := w.device.Memory()
		return err
	case fault.DeviceNewStream:
		return second(w.device.NewStream(0))
	case fault.DeviceNewEvent:
		return second(w.device.NewEvent())
	case fault.DeviceNewMark:
		return second(w.device.NewMark())
	case fault.DeviceNewPool:
		return second(w.device.NewPool(driver.PoolConfig{}))
	case fault.DeviceAlloc:
		return second(w.device.Alloc(8))
	case fault.DeviceFree:
		return w.device.Free(must(w.device.Alloc(8)))
	case fault.DeviceAllocHost:
		return second(w.device.AllocHost(8))
	case fault.DeviceFreeHost:
		return w.device.FreeHost(must(w.device.AllocHost(8)))
	case fault.DeviceNewBLAS:
		return second(w.device.NewBLAS())
	case fault.DeviceNewSolver:
		return second(w.device.NewSolver())
	case fault.StreamRecord:
		return w.stream.Record(w.event)
	case fault.StreamWait:
		return w.stream.Wait(w.event)
	case fault.StreamMark:
		return w.stream.Mark(must(w.device.NewMark()))
	case fault.StreamNotify:
		return w.stream.Notify(waker{})
	case fault.StreamQuery:
		return second(w.stream.Query())
	case fault.StreamSynchronize:
		return w.stream.Synchronize()
	case fault.StreamDestroy:
		return must(w.device.NewStream(0)).Destroy()
	case fault.StreamCopy:
		return w.stream.Copy(w.memory, w.memory+8, 8)
	case fault.StreamCopyPeer:
		return w.stream.CopyPeer(w.memory, 0, w.memory+8, 0, 8)
	case fault.StreamCopyIn:
		return w.stream.CopyIn(w.memory, buffer)
	case fault.StreamCopyOut:
		return w.stream.CopyOut(buffer, w.memory)
	case fault.StreamZero:
		return w.stream.Zero(w.memory, 8)
	case fault.StreamLaunch:
		return w.fill(1)
	case fault.StreamCall:
		return w.stream.Call(func() {})
	case fault.EventQuery:
		return second(w.event.Query())
	case fault.EventSynchronize:
		return w.event.Synchronize()
	case fault.EventDestroy:
		return must(w.device.NewEvent()).Destroy()
	case fault.MarkSince:
		m := must(w.device.NewMark())
		if err := w.stream.Mark(m); err != nil {
			return err
		}
		return second(m.Since(m))
	case fault.MarkDestroy:
		return must(w.device.NewMark()).Destroy()
	case fault.PoolAlloc:
		return second(w.pool.Alloc(w.stream, 8))
	case fault.PoolFree:
		return w.pool.Free(w.stream, must(w.pool.Alloc(w.stream, 8)))
	case fault.PoolTrim:
		return w.pool.Trim(0)
	case fault.PoolStats:
		return second(w.pool.Stats())
	case fault.PoolDestroy:
		return must(w.device.NewPool(driver.PoolConfig{})).Destroy()
	case fault.BLASGemm:
		return w.blas.Gemm(w.stream, &driver.Gemm{DType: dtype.Float64, M: 1, N: 1, K: 1, Batch: 1, LDA: 1, LDB: 1, LDC: 1,
			A: w.memory, B: w.memory + 8, C: w.memory + 16})
	case fault.BLASGemmGroups:
		return w.blas.GemmGroups(w.stream, nil)
	case fault.BLASDestroy:
		return must(w.device.NewBLAS()).Destroy()
	case fault.SolverSVD:
		return w.solver.SVD(w.stream, &driver.SVD{DType: dtype.Float64, LDA: 1, LDU: 1, LDVH: 1})
	case fault.SolverDestroy:
		return must(w.device.NewSolver()).Destroy()
	case fault.DeviceCapture:
		return second(w.device.Capture([]driver.Stream{w.stream}, func() error { return nil }))
	case fault.GraphLaunch:
		return must(w.device.Capture([]driver.Stream{w.stream}, func() error { return nil })).Launch(w.stream)
	case fault.GraphDestroy:
		return must(w.device.Capture([]driver.Stream{w.stream}, func() error { return nil })).Destroy()
	}
	panic("no call " + string(call))
}

type waker struct{ woken chan error }

func (w waker) Wake(err error) {
	if w.woken != nil {
		w.woken <- err
	}
}

func TestCallsAreTheMethodsThatAnswerAnError(t *testing.T) {
	fail := reflect.TypeFor[error]()
	var want []fault.Call
	for _, i := range []reflect.Type{
		reflect.TypeFor[driver.Family](), reflect.TypeFor[driver.Device](), reflect.TypeFor[driver.Stream](),
		reflect.TypeFor[driver.Event](), reflect.TypeFor[driver.Mark](), reflect.TypeFor[driver.Pool](), reflect.TypeFor[driver.BLAS](), reflect.TypeFor[driver.Solver](), reflect.TypeFor[driver.Graph](),
	} {
		for m := range i.Methods() {
			if n := m.Type.NumOut(); n > 0 && m.Type.Out(n-1) == fail {
				want = append(want, fault.Call(i.Name()+"."+m.Name))
			}
		}
	}
	// These report a state; they do nothing that could fail.
	want = slices.DeleteFunc(want, func(c fault.Call) bool { return c == "Family.Unavailable" || c == "Device.Err" })
	got := fault.Calls()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("Calls is %v; the interfaces have %v", got, want)
	}
}

func TestEveryCallCanBeMadeToFail(t *testing.T) {
	for _, call := range fault.Calls() {
		t.Run(string(call), func(t *testing.T) {
			w := newWorld(t)
			w.plan.FailNth(call, 1, nil)
			err := w.make(call)
			e, ok := err.(*weir.Error)
			if !ok || !errors.Is(err, fault.ErrInjected) {
				t.Fatalf("answered %v; expected an injected *weir.Error", err)
			}
			device := "host:0"
			if call == fault.FamilyOpen {
				device = ""
			}
			if e.Op != string(call) || e.Device != device || e.Name != "INJECTED" {
				t.Errorf("the error is of %q on %q with name %q", e.Op, e.Device, e.Name)
			}
			allocates := strings.Contains(string(call), "Alloc")
			if kind := e.Kind; errors.Is(err, weir.ErrOutOfMemory) != allocates || (kind == weir.KindOutOfMemory) != allocates {
				t.Errorf("the kind is %v of %v; expected out of memory just for allocations", kind, err)
			}
			if !allocates && e.Kind != weir.KindCUDA {
				t.Errorf("the kind is %v; expected cuda", e.Kind)
			}
		})
	}
}

func TestFailNthFailsThatCallAloneAndSubmitsNothing(t *testing.T) {
	w := newWorld(t)
	if err := w.fill(1); err != nil {
		t.Fatal(err)
	}
	w.plan.FailNth(fault.StreamLaunch, 2, nil)
	for i, want := range []byte{2, 2, 4} {
		err := w.fill(int64(i + 2))
		if (err != nil) != (i == 1) {
			t.Errorf("launch %d answered %v", i+1, err)
		}
		if got := w.first(t); got != want {
			t.Errorf("after launch %d the memory holds %d; expected %d", i+1, got, want)
		}
	}
}

func TestFailNthOfAnyCallCountsThemAll(t *testing.T) {
	w := newWorld(t)
	w.plan.FailNth(fault.Any, 3, nil)
	if err := errors.Join(w.make(fault.StreamZero), w.make(fault.EventQuery)); err != nil {
		t.Errorf("one of the first two calls failed: %v", err)
	}
	if err := w.make(fault.StreamCopy); !errors.Is(err, fault.ErrInjected) {
		t.Errorf("the third call answered %v", err)
	}
	if err := w.make(fault.StreamCopy); err != nil {
		t.Errorf("the fourth call answered %v", err)
	}
}

func TestFailFromLastsUntilClear(t *testing.T) {
	w := newWorld(t)
	w.plan.FailFrom(fault.PoolTrim, 2, nil)
	for i := 1; i <= 4; i++ {
		if err := w.make(fault.PoolTrim); (err != nil) != (i >= 2) {
			t.Errorf("call %d answered %v", i, err)
		}
	}
	if err := w.make(fault.PoolStats); err != nil {
		t.Errorf("another call answered %v", err)
	}
	w.plan.Clear()
	if err := w.make(fault.PoolTrim); err != nil {
		t.Errorf("after Clear: %v", err)
	}
}

func TestTheVerbSaidFirstActsFirst(t *testing.T) {
	w := newWorld(t)
	first, later := errors.New("first"), errors.New("later")
	w.plan.FailNth(fault.StreamZero, 1, first)
	w.plan.FailFrom(fault.StreamZero, 1, later)
	if err := w.make(fault.StreamZero); !errors.Is(err, first) {
		t.Errorf("answered %v; expected the first verb's error", err)
	}
	if err := w.make(fault.StreamZero); !errors.Is(err, later) {
		t.Errorf("answered %v; expected the other verb's error", err)
	}
}

func TestAGivenErrorIsAnsweredOrWrapped(t *testing.T) {
	w := newWorld(t)
	given := &weir.Error{Op: "own", Kind: weir.KindLogic, Err: weir.ErrBusy}
	w.plan.FailNth(fault.StreamZero, 1, given)
	if err := w.make(fault.StreamZero); err != error(given) {
		t.Errorf("answered %v; expected the given *weir.Error itself", err)
	}
	w.plan.FailNth(fault.StreamZero, 1, weir.ErrOutOfMemory)
	err := w.make(fault.StreamZero)
	if e, ok := err.(*weir.Error); !ok || e.Kind != weir.KindOutOfMemory || !errors.Is(err, weir.ErrOutOfMemory) {
		t.Errorf("answered %#v; expected a *weir.Error of the given sentinel's kind", err)
	}
}

func TestFailedCleanupsStillCleanUp(t *testing.T) {
	w := newWorld(t)
	before, _, err := w.device.Memory()
	if err != nil {
		t.Fatal(err)
	}
	at := must(w.pool.Alloc(w.stream, 1<<20))
	block, pinned := must(w.device.Alloc(1<<20)), must(w.device.AllocHost(1<<20))
	s := must(w.device.NewStream(0))
	for _, c := range fault.Calls() {
		if c.GivesUp() {
			w.plan.FailNth(c, 1, nil)
		}
	}
	for what, err := range map[string]error{
		"Pool.Free":       w.pool.Free(w.stream, at),
		"Device.Free":     w.device.Free(block),
		"Device.FreeHost": w.device.FreeHost(pinned),
		"Stream.Destroy":  s.Destroy(),
	} {
		if !errors.Is(err, fault.ErrInjected) {
			t.Errorf("%s answered %v", what, err)
		}
	}
	if st := must(w.pool.Stats()); st.Used != 0 {
		t.Errorf("%d bytes of the pool are still in use", st.Used)
	}
	if err := errors.Join(w.stream.Synchronize(), w.pool.Trim(0)); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := w.device.Memory(); after != before {
		t.Errorf("%d bytes of device memory leaked", before-after)
	}
	if err := s.Synchronize(); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("the stream lives on: %v", err)
	}
	if err := w.device.FreeHost(pinned); err == nil {
		t.Errorf("the page-locked memory was not given back")
	}
}

func TestKillNthKillsAtThatCall(t *testing.T) {
	w := newWorld(t)
	w.plan.KillNth(fault.StreamLaunch, 2, errCause)
	if err := w.fill(1); err != nil {
		t.Fatal(err)
	}
	if err := w.device.Err(); err != nil {
		t.Fatalf("dead before the call: %v", err)
	}
	for _, err := range []error{w.fill(2), w.fill(3), w.stream.Synchronize(), w.device.Err()} {
		if !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, errCause) {
			t.Errorf("answered %v; expected the loss of the device and its cause", err)
		}
	}
}

func TestKillNthOfOpenKillsTheOpenedDevice(t *testing.T) {
	w := newWorld(t)
	w.plan.KillNth(fault.FamilyOpen, 1, nil)
	d, err := w.family.Open(0)
	if err != nil || !errors.Is(d.Err(), weir.ErrDeviceLost) || !errors.Is(d.Err(), fault.ErrInjected) {
		t.Errorf("opened %v with error %v; expected a dead device", d, err)
	}
}

// immortal is a family whose devices have no Kill.
type immortal struct{ driver.Family }

func (f immortal) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	return struct{ driver.Device }{d}, err
}

func TestKillNthOfADeviceThatCannotDieIsNotSupported(t *testing.T) {
	w := wrap(t, immortal{host.New(host.Options{})})
	if _, ok := w.device.(interface{ Kill(error) }); ok {
		t.Errorf("the wrapper offers a Kill that the device does not have")
	}
	w.plan.KillNth(fault.StreamZero, 1, nil)
	if err := w.make(fault.StreamZero); !errors.Is(err, weir.ErrNotSupported) {
		t.Errorf("answered %v; expected not supported", err)
	}
	if err := w.make(fault.StreamZero); err != nil {
		t.Errorf("the next call answered %v", err)
	}
}

func TestDelayRunsBeforeItsCallWithoutALock(t *testing.T) {
	w := newWorld(t)
	var seen []int
	w.plan.Delay(fault.StreamLaunch, func() {
		seen = append(seen, w.plan.Counts()[fault.StreamLaunch])
		// What the hook submits comes before the call.
		if err := w.stream.Copy(w.memory+8, w.memory, 8); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(w.fill(1), w.fill(2)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if err := w.stream.CopyOut(b, w.memory); err != nil {
		t.Fatal(err)
	}
	if b[0] != 2 || b[8] != 1 || !slices.Equal(seen, []int{1, 2}) {
		t.Errorf("the hook ran at calls %v and copied %d before %d was written", seen, b[8], b[0])
	}
}

func TestDelayOrdersTwoGoroutines(t *testing.T) {
	w := newWorld(t)
	arrived, gate := make(chan struct{}), make(chan struct{})
	w.plan.Delay(fault.StreamZero, func() {
		close(arrived)
		<-gate
	})
	done := make(chan error)
	go func() { done <- w.stream.Zero(w.memory, 8) }()
	<-arrived
	if err := w.fill(5); err != nil {
		t.Fatal(err)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.first(t); got != 0 {
		t.Errorf("the memory holds %d; the delayed Zero was not last", got)
	}
}

func TestAHookCanMakeItsOwnCallFail(t *testing.T) {
	w := newWorld(t)
	w.plan.Delay(fault.StreamZero, sync.OnceFunc(func() { w.plan.FailFrom(fault.StreamZero, 1, nil) }))
	if err := w.make(fault.StreamZero); err != nil {
		t.Errorf("a verb counts from when it is said, yet the call under way failed: %v", err)
	}
	if err := w.make(fault.StreamZero); !errors.Is(err, fault.ErrInjected) {
		t.Errorf("the next call answered %v", err)
	}
}

func TestADroppedNotificationComesOnlyWithDeath(t *testing.T) {
	for name, die := range map[string]func(w *world){
		"by the wrapper": func(w *world) { w.device.(interface{ Kill(error) }).Kill(errCause) },
		"by the plan":    func(w *world) { w.plan.KillNth(fault.StreamZero, 1, errCause); _ = w.make(fault.StreamZero) },
		"seen by a call": func(w *world) { inner(w).Kill(errCause); _ = w.make(fault.StreamZero) },
		"seen by Err":    func(w *world) { inner(w).Kill(errCause); _ = w.device.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dropped, kept := waker{make(chan error, 4)}, waker{make(chan error, 4)}
			w.plan.DropNotify(1)
			if err := errors.Join(w.stream.Notify(dropped), w.stream.Notify(kept), w.stream.Synchronize()); err != nil {
				t.Fatal(err)
			}
			if err := <-kept.woken; err != nil {
				t.Errorf("the second notification came with %v", err)
			}
			if len(dropped.woken) != 0 {
				t.Errorf("the dropped notification came")
			}
			die(w)
			if err := <-dropped.woken; !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, errCause) {
				t.Errorf("woken with %v; expected the loss of the device and its cause", err)
			}
			if err := w.device.Err(); err == nil || len(dropped.woken) != 0 || len(kept.woken) != 0 {
				t.Errorf("a waker was woken again")
			}
		})
	}
}

func inner(w *world) interface{ Kill(error) } {
	return fault.Unwrap(w.device).(interface{ Kill(error) })
}

func TestADroppedNotificationOfADeadDeviceIsRefused(t *testing.T) {
	w := newWorld(t)
	inner(w).Kill(errCause)
	w.plan.DropNotify(1)
	dropped := waker{make(chan error, 4)}
	if err := w.stream.Notify(dropped); !errors.Is(err, weir.ErrDeviceLost) || len(dropped.woken) != 0 {
		t.Errorf("answered %v, and woke %d times", err, len(dropped.woken))
	}
}

func TestCountsIncludeFailures(t *testing.T) {
	w := newWorld(t)
	before := w.plan.Counts()
	w.plan.FailNth(fault.StreamZero, 1, nil)
	_, _ = w.make(fault.StreamZero), w.make(fault.StreamZero)
	_ = w.make(fault.EventQuery)
	after := w.plan.Counts()
	if z, q, all := after[fault.StreamZero]-before[fault.StreamZero], after[fault.EventQuery]-before[fault.EventQuery],
		after[fault.Any]-before[fault.Any]; z != 2 || q != 1 || all != 3 {
		t.Errorf("counted %d, %d and %d in all; expected 2, 1 and 3", z, q, all)
	}
	after[fault.StreamZero] = 100
	if w.plan.Counts()[fault.StreamZero] == 100 {
		t.Errorf("Counts answered the plan's own map")
	}
}

func TestOneFailureForManyGoroutines(t *testing.T) {
	w := newWorld(t)
	w.plan.FailNth(fault.StreamZero, 50, nil)
	failed := make(chan error, 100)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if err := w.stream.Zero(w.memory, 8); err != nil {
					failed <- err
				}
			}
		})
	}
	wg.Wait()
	if len(failed) != 1 {
		t.Errorf("%d of 100 calls failed; expected the 50th alone", len(failed))
	}
}

func TestUnwrapAnswersTheInnerObject(t *testing.T) {
	innerFamily := host.New(host.Options{})
	w := wrap(t, innerFamily)
	innerDevice := must(innerFamily.Open(0))
	if fault.Unwrap(w.family) != innerFamily || fault.Unwrap(w.device) != innerDevice {
		t.Errorf("the inner family and device are not what was wrapped")
	}
	if fault.Unwrap(innerDevice) != innerDevice {
		t.Errorf("Unwrap changed what is not wrapped")
	}
	if must(w.family.Open(0)) != w.device {
		t.Errorf("a second Open answered another wrapper")
	}
	// Inner and wrapped objects work together.
	s, e := fault.Unwrap(w.stream), fault.Unwrap(w.event)
	err := errors.Join(w.stream.Record(e), s.Record(e), w.stream.Wait(e), s.Wait(e),
		w.pool.Free(s, must(w.pool.Alloc(w.stream, 8))),
		fault.Unwrap(w.pool).Free(s, must(w.pool.Alloc(s, 8))),
		w.blas.Destroy(), fault.Unwrap(w.blas).Destroy(), fault.Unwrap(w.solver).Destroy())
	if err != nil {
		t.Error(err)
	}
}

func TestAVerbRefusesNonsense(t *testing.T) {
	for what, say := range map[string]func(p *fault.Plan){
		"call 0":          func(p *fault.Plan) { p.FailNth(fault.StreamZero, 0, nil) },
		"an unknown call": func(p *fault.Plan) { p.KillNth("Stream.Nothing", 1, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", what)
				}
			}()
			say(&fault.Plan{})
		}()
	}
}
