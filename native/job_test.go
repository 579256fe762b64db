package native_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
)

var echoParams = []native.Param{native.Int32, native.Int64, native.Uint64, native.Float32, native.Float64,
	native.OutInt32, native.OutInt64, native.OutUint64, native.OutFloat32, native.OutFloat64}

func TestEveryNumberGoesInAndComesOut(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	echo := job(t, lib, "rt_echo_job", echoParams...)
	type days int8
	for _, in := range [][]any{
		{int32(math.MinInt32), int64(math.MinInt64), uint64(math.MaxUint64), float32(math.MaxFloat32), math.MaxFloat64},
		{math.MaxInt32, math.MaxInt64, 0, 1 << 24, 1 << 53},
		{days(-3), uint8(200), uint16(7), -1, -1 << 53},
		{0, 0, 0, math.Inf(-1), math.Inf(1)},
		{0, uint64(math.MaxInt64), int64(5), 0.1, float32(0.5)},
		{0, 0, 0, math.NaN(), math.NaN()},
		{0, 0, 0, uint64(1 << 63), uint64(math.MaxUint64 - 2047)},
	} {
		var a int32
		var b int64
		var c uint64
		var d float32
		var e float64
		if err := echo.Run(ctx, s, "echo", append(in, &a, &b, &c, &d, &e)...); err != nil {
			t.Error(err)
			continue
		}
		got := fmt.Sprint(a, b, c, d, e)
		want := make([]any, 5)
		for i, x := range in {
			want[i] = x
			if f, ok := x.(float64); ok && i == 3 {
				want[i] = float32(f)
			}
			if n, ok := x.(int); ok && i == 3 {
				want[i] = float32(n)
			} else if ok && i == 4 {
				want[i] = float64(n)
			}
			if n, ok := x.(uint64); ok && i == 3 {
				want[i] = float32(n)
			} else if ok && i == 4 {
				want[i] = float64(n)
			}
		}
		if want := fmt.Sprint(want...); got != want {
			t.Errorf("in went %s and out came %s", want, got)
		}
	}
}

func TestANumberThatItsTypeRefusesIsAnArgumentError(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	echo := job(t, lib, "rt_echo_job", echoParams...)
	var a int32
	var b int64
	var c uint64
	var d float32
	var e float64
	good := []any{1, 2, 3, 4.0, 5.0, &a, &b, &c, &d, &e}
	for _, x := range []struct {
		index int
		arg   any
		want  string
	}{
		{0, int64(1) << 31, "argument 0: expected a number that int32 holds, given 2147483648"},
		{0, -1<<31 - 1, "argument 0: expected a number that int32 holds, given -2147483649"},
		{0, 1.0, "argument 0: expected a number that int32 holds, given 1"},
		{0, "1", `argument 0: expected a number that int32 holds, given "1"`},
		{0, nil, "argument 0: expected a number that int32 holds, given nil"},
		{0, true, "argument 0: expected a number that int32 holds, given true"},
		{1, uint64(1) << 63, "argument 1: expected a number that int64 holds, given 9223372036854775808"},
		{2, -1, "argument 2: expected a number that uint64 holds, given -1"},
		{3, 1e39, "argument 3: expected a number that float32 holds, given 1e+39"},
		{3, 1<<24 + 1, "argument 3: expected a number that float32 holds, given 16777217"},
		{4, 1<<53 + 1, "argument 4: expected a number that float64 holds, given 9007199254740993"},
		{4, int64(math.MaxInt64), "argument 4: expected a number that float64 holds, given 9223372036854775807"},
		{4, uint64(math.MaxUint64), "argument 4: expected a number that float64 holds, given 18446744073709551615"},
		{4, -1<<53 - 1, "argument 4: expected a number that float64 holds, given -9007199254740993"},
		{4, 1i, "argument 4: expected a number that float64 holds, given a complex128"},
		{5, &b, "argument 5: expected a *int32 for an output, given a *int64"},
		{9, nil, "argument 9: expected a *float64 for an output, given nil"},
		{9, (*float64)(nil), "argument 9: expected a *float64 for an output, given nil"},
	} {
		args := slices.Clone(good)
		args[x.index] = x.arg
		err := echo.Run(ctx, s, "echo", args...)
		says(t, err, weir.KindLogic, "echo: "+x.want)
		if !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%v is no argument error", err)
		}
	}
	err := echo.Run(ctx, s, "echo", good[:3]...)
	says(t, err, weir.KindLogic, "echo: 3 arguments; expected 10: [int32 int64 uint64 float32 float64 *int32 *int64 *uint64 *float32 *float64]")
}

// TestADeclarationHasTheSizeThatItsEntryExpects asks each entry of the canary what it
// expects: with a block that no job has.
func TestADeclarationHasTheSizeThatItsEntryExpects(t *testing.T) {
	ctx := start(t)
	c, s := openCanary(t, ctx), newSession(t, ctx)
	for symbol, params := range map[string][]native.Param{"kc_fit_job": fitParams, "kc_predict_job": predictParams, "kc_make_blobs_job": blobsParams, "kc_cluster_members_job": membersParams} {
		none := must(c.Job("canary", symbol))
		err := none.Run(ctx, s, "job")
		var expects int
		if _, failed := fmt.Sscanf(err.Error(), "job: the argument block is 0 bytes; the job expects %d", &expects); failed != nil {
			t.Fatal(err)
		}
		// A job that is given as many 8-byte numbers is not refused for its size.
		var as []native.Param
		for range expects / 8 {
			as = append(as, native.Uint64)
		}
		if got := native.BlockBytes(params); int(got) != expects || int(native.BlockBytes(as)) != expects {
			t.Errorf("%s is declared with %d bytes; it expects %d", symbol, got, expects)
		}
	}
}

func TestJobsOfOneSessionRunOneAtATimeInTheOrderInWhichTheyWereAskedFor(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	g := newGate(t, lib)
	var wg sync.WaitGroup
	wg.Go(func() {
		if n, err := g.run(ctx, s); n != 1 || err != nil {
			t.Errorf("%d ran at once, %v", n, err)
		}
	})
	g.begun()
	var mu sync.Mutex
	var order []int
	for i := range 5 {
		asked := native.Waiting(s)
		wg.Go(func() {
			if n, err := g.run(ctx, s); n != 1 || err != nil {
				t.Errorf("%d ran at once, %v", n, err)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
		for native.Waiting(s) == asked { // the next is asked for after this one
			goruntime.Gosched()
		}
	}
	for i := range 6 {
		g.open()
		if i < 5 {
			g.begun() // the next begins only when this one has returned
		}
		for mu.Lock(); len(order) < i; mu.Lock() {
			mu.Unlock()
			goruntime.Gosched()
		}
		mu.Unlock()
	}
	wg.Wait()
	if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
		t.Errorf("the order is %v", order)
	}
}

func TestJobsOfSeveralSessionsRunAtTheSameTime(t *testing.T) {
	ctx := start(t)
	lib := openTest(t, ctx)
	g := newGate(t, lib)
	const many = 4
	var wg sync.WaitGroup
	var most atomic.Int32
	for range many {
		s := newSession(t, ctx)
		wg.Go(func() {
			n, err := g.run(ctx, s)
			if err != nil {
				t.Error(err)
			}
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
		})
	}
	for range many {
		g.begun()
	}
	for range many {
		g.open()
	}
	wg.Wait()
	if n := most.Load(); n != many {
		t.Errorf("%d ran at once; expected %d", n, many)
	}
}

func TestAJobWithinACheckedCallOrADriverCallbackIsRefused(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	echo := job(t, lib, "rt_fail_job", native.Int32, native.Int32)
	var deep func(n int) error
	deep = func(n int) error {
		if n == 0 {
			return echo.Run(ctx, s, "fit", 0, 0)
		}
		return deep(n - 1)
	}
	for _, depth := range []int{0, 50, 1000} {
		var inside error
		if err := lib.Check("outer", func() int32 { inside = deep(depth); return 0 }); err != nil {
			t.Error(err)
		}
		says(t, inside, weir.KindLogic, "fit: a job was asked for inside a checked call, where nothing may wait; ask for it outside")
		if err := deep(depth); err != nil { // outside
			t.Error(err)
		}
	}
	// A goroutine that a checked call starts is none of its own.
	if err := lib.Check("outer", func() int32 {
		done := make(chan error)
		go func() { done <- echo.Run(ctx, s, "fit", 0, 0) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return 0
	}); err != nil {
		t.Error(err)
	}

	r := must(runtime.For(s.Device()))
	st := must(r.Streams().Acquire(ctx))
	defer st.Release()
	told := make(chan error, 1)
	if !onHost() {
		return // no Go code runs in stream order
	}
	if err := st.Call(func() { told <- echo.Run(ctx, s, "fit", 0, 0) }); err != nil {
		t.Fatal(err)
	}
	const want = "fit: a job was asked for inside a driver callback, where nothing may wait; ask for it outside"
	says(t, <-told, weir.KindLogic, want)
	gate := make(chan struct{})
	if err := st.Call(func() { <-gate }); err != nil {
		t.Fatal(err)
	}
	if err := must(st.Record()).Notify(waker(func(error) { told <- echo.Run(ctx, s, "fit", 0, 0) })); err != nil {
		t.Fatal(err)
	}
	close(gate)
	says(t, <-told, weir.KindLogic, want)
}

type waker func(error)

func (w waker) Wake(err error) { w(err) }

func TestAContextThatEndsBeforeDuringAndAfterAJob(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	g := newGate(t, lib)
	soon, cancel := context.WithCancelCause(ctx)
	why := errors.New("enough")

	// While it runs: it is answered when the job has returned.
	answered := make(chan error)
	running := int32(-1)
	started, proceed := int(g.started[1].Fd()), int(g.proceed[0].Fd())
	go func() { answered <- g.job.Run(soon, s, "wait", started, proceed, &running) }()
	g.begun()
	next := make(chan error) // and this one's turn has not come
	asked := native.Waiting(s)
	go func() { next <- g.job.Run(soon, s, "next", -1, -1, new(int32)) }()
	for native.Waiting(s) == asked {
		goruntime.Gosched()
	}
	cancel(why)
	err := <-next
	if !errors.Is(err, why) || !errors.Is(err, weir.ErrCancelled) || !strings.HasPrefix(err.Error(), "next on "+deviceName+": the job was not made: ") {
		t.Errorf("whose turn had not come: %v", err)
	}
	select {
	case err := <-answered:
		t.Errorf("answered while the job runs: %v", err)
	default:
	}
	g.open()
	err = <-answered
	says(t, err, weir.KindGeneric, "wait: the job has returned, after its context ended; its outputs are dropped: enough")
	if !errors.Is(err, why) || !errors.Is(err, weir.ErrCancelled) || running != -1 {
		t.Errorf("got %v and the output %d; expected the cause, and no output", err, running)
	}

	// Before.
	err = g.job.Run(soon, s, "wait", -1, -1, &running)
	if !errors.Is(err, why) || running != -1 {
		t.Errorf("after the end: %v and the output %d", err, running)
	}
	// One that fails too answers both.
	failing := job(t, lib, "rt_wait_job", native.Handle) // of the wrong size
	if err := failing.Run(ctx, s, "wait"); err == nil {
		t.Error("not refused")
	}
	// Afterwards it changes nothing.
	later, end := context.WithCancel(ctx)
	err = g.job.Run(later, s, "wait", -1, -1, &running)
	end()
	if err != nil || running != 1 {
		t.Errorf("got %v and the output %d; expected 1", err, running)
	}
}

func TestAJobInATaskGivesTheLaneBack(t *testing.T) {
	ctx := start(t, func(o *runtime.Options) { o.Tasks.Lanes = 1 })
	lib, s := openTest(t, ctx), newSession(t, ctx)
	g := newGate(t, lib)
	sched := must(runtime.Scheduler(ctx))
	task := func(name string, run func(context.Context) error) *scheduler.Task {
		x := scheduler.New(ctx, scheduler.Spec{Name: name, Run: run})
		sched.Start(x)
		return x
	}
	first := task("job", func(ctx context.Context) error {
		_, err := g.run(ctx, s)
		return err
	})
	g.begun()
	second := task("beside it", func(context.Context) error { g.open(); return nil })
	if err := errors.Join(second.Wait(ctx), first.Wait(ctx)); err != nil {
		t.Error(err)
	}
}

// TestJobsOfTasksRunUnderTheDebugScheduler, which waits for a job on the spot, and for a
// turn by letting other tasks run.
func TestJobsOfTasksRunUnderTheDebugScheduler(t *testing.T) {
	for seed := range uint64(5) {
		d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed})
		ctx, rt := begin(t, func(o *runtime.Options) { o.Scheduler = d })
		lib, s := openTest(t, ctx), must(native.NewSession(ctx))
		asJob := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
		a := must(tensor.Zeros(ctx, tensor.Int32, 4))
		done := 0
		for range 6 {
			d.Start(scheduler.New(ctx, scheduler.Spec{Name: "job", Run: func(ctx context.Context) error {
				done++
				return asJob.Run(ctx, s, "add", a, 1)
			}}))
		}
		if err := d.Run(); err != nil || done != 6 {
			t.Errorf("seed %d: %d tasks, %v", seed, done, err)
		}
		if got := must(tensor.Data[int32](ctx, a)); got[3] != 6 {
			t.Errorf("seed %d: the element is %d; expected 6", seed, got[3])
		}
		if err := errors.Join(a.Free(), s.Close(), rt.Close()); err != nil {
			t.Error(weir.Report(err))
		}
	}
}

// TestTheCollectorTakesNothingThatAJobUses: arrays that nobody but the job has are not
// given to others, who would find them changed.
func TestTheCollectorTakesNothingThatAJobUses(t *testing.T) {
	ctx, rt := begin(t) // no scope: the collector frees
	lib, s := openTest(t, ctx), must(native.NewSession(ctx))
	add := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	const n = 1 << 16
	stop := make(chan struct{})
	var collecting, working sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				goruntime.GC()
			}
		}
	})
	for range 4 {
		working.Go(func() {
			for range 30 {
				if err := add.Run(ctx, s, "add", must(tensor.Full(ctx, 5, tensor.Int32, n)), 1); err != nil {
					t.Error(err)
				}
				other := must(tensor.Full(ctx, 7, tensor.Int32, n))
				if got := must(tensor.Data[int32](ctx, other)); slices.ContainsFunc(got, func(x int32) bool { return x != 7 }) {
					t.Error("another's array was changed by a job")
				}
			}
		})
	}
	working.Wait()
	close(stop)
	collecting.Wait()
	if err := errors.Join(s.Close(), rt.Close()); err != nil {
		t.Error(weir.Report(err))
	}
}

// TestManyJobsOverManySessionsAreEachDoneOnce: arrays are shared, so that some calls
// are refused; what was not refused has been done.
func TestManyJobsOverManySessionsAreEachDoneOnce(t *testing.T) {
	ctx := start(t)
	lib := openTest(t, ctx)
	asJob := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	const rounds, workers = 60, 12
	var sessions []*native.Session
	for range 4 {
		sessions = append(sessions, newSession(t, ctx))
	}
	var arrays []*tensor.Array
	sums := make([]atomic.Int64, 8)
	for range sums {
		arrays = append(arrays, must(tensor.Zeros(ctx, tensor.Int64, 100)))
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				k, value := (i*7+w*3)%len(arrays), int32(i%5+1)
				var err error
				if i%3 == 0 {
					err = add(ctx, lib, sessions[(i+w)%len(sessions)], arrays[k], value)
				} else {
					err = asJob.Run(ctx, sessions[(i+w)%len(sessions)], "add", arrays[k], value)
				}
				switch {
				case err == nil:
					sums[k].Add(int64(value))
				case !errors.Is(err, weir.ErrBusy):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for k, a := range arrays {
		if got := must(tensor.Data[int64](ctx, a)); got[0] != sums[k].Load() || got[99] != got[0] {
			t.Errorf("array %d has %d and %d; expected %d", k, got[0], got[99], sums[k].Load())
		}
	}
}

func TestNilAndZeroJobsLibrariesAndFunctionsAreRefused(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	ofLibrary := func(l *native.Library) error {
		_, err := l.Job("who", "rt_wait_job")
		return err
	}
	for want, err := range map[string]error{
		"who: the job is nil; expected one that Library.Job made":               (*native.Job)(nil).Run(ctx, s, "who"),
		"who: the job is the zero Job; expected one that Library.Job made":      new(native.Job).Run(ctx, s, "who"),
		"who: the library is nil; expected one that Open loaded":                ofLibrary(nil),
		"who: the library is the zero Library; expected one that Open loaded":   ofLibrary(new(native.Library)),
		"who: the function is nil; expected one to call":                        lib.Check("who", nil),
		"who: the checker is that of no library; expected one that Open loaded": new(native.Library).Check("who", func() int32 { return 1 }),
	} {
		says(t, err, weir.KindLogic, want)
		if !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%v is no argument error", err)
		}
	}
}

func TestALibraryForOtherDevicesIsRefused(t *testing.T) {
	ctx := start(t)
	lib, s := native.ForOtherDevices(openTest(t, ctx)), newSession(t, ctx)
	err := job(t, lib, "rt_fail_job", native.Int32, native.Int32).Run(ctx, s, "fit", 0, 0)
	if !errors.Is(err, weir.ErrArgument) || !strings.HasPrefix(err.Error(), "fit: the library ") || !strings.HasSuffix(err.Error(), " devices and the session is on "+deviceName) {
		t.Errorf("got %v; expected an argument error with both", err)
	}
}

// TestWhatAJobHasExcludesConflictsAndIsNotFreed, until it has returned.
func TestWhatAJobHasExcludesConflictsAndIsNotFreed(t *testing.T) {
	ctx := start(t)
	s := newSession(t, ctx)
	lib := must(native.Open(ctx, "hold", compile(t, "libhold.so", `
#include <stdint.h>
#include <unistd.h>
const char *hold_last_error(void) { return ""; }
int hold_last_error_kind(void) { return 0; }
int hold_check_abi(const void *loaded) { return 0; }
void hold_job(char *args, size_t bytes, void *outcome) { /* a view, and two descriptors */
	int32_t *fd = (int32_t *)(args + 152);
	char byte = 1;
	*(int32_t *)outcome = !(write(fd[0], &byte, 1) == 1 && read(fd[1], &byte, 1) == 1);
}`), native.Exports{CheckABI: "hold_check_abi", LastError: "hold_last_error", LastErrorKind: "hold_last_error_kind"}))
	g := newGate(t, openTest(t, ctx))
	other := newSession(t, ctx)
	for mode, readable := range map[native.Param]bool{native.ViewIn: true, native.ViewOut: false, native.ViewInOut: false} {
		a := must(tensor.Zeros(ctx, tensor.Int32, 4))
		hold := job(t, lib, "hold_job", mode, native.Int32, native.Int32)
		done := make(chan error, 1)
		go func() { done <- hold.Run(ctx, s, "hold", a, int(g.started[1].Fd()), int(g.proceed[0].Fd())) }()
		g.begun()
		if err := a.Free(); !errors.Is(err, weir.ErrBusy) {
			t.Errorf("mode %d: freed while a job has it: %v", mode, err)
		}
		body := func(*native.Scope) error { return nil }
		if err := other.Do(ctx, body, native.InOut(a)); !errors.Is(err, weir.ErrBusy) {
			t.Errorf("mode %d: written while a job has it: %v", mode, err)
		}
		if err := other.Do(ctx, body, native.In(a)); errors.Is(err, weir.ErrBusy) == readable || readable && err != nil {
			t.Errorf("mode %d: read while a job has it: %v; expected that it can be: %t", mode, err, readable)
		}
		g.open()
		if err := errors.Join(<-done, other.Do(ctx, body, native.InOut(a)), a.Free()); err != nil {
			t.Errorf("mode %d: after the job: %v", mode, err)
		}
	}
}

// TestAJobsViewsAreReadOrWrittenByTheirMode: beside an open read a job may read.
func TestAJobsViewsAreReadOrWrittenByTheirMode(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	a := must(tensor.Zeros(ctx, tensor.Int32, 4))
	if err := s.Do(ctx, func(*native.Scope) error {
		for mode, busy := range map[native.Param]bool{native.ViewIn: false, native.ViewOut: true, native.ViewInOut: true} {
			var rank int32
			if err := job(t, lib, "rt_rank_job", mode, native.OutInt32).Run(ctx, s, "rank", a, &rank); errors.Is(err, weir.ErrBusy) != busy || err == nil && rank != 1 {
				t.Errorf("mode %d: rank %d, %v; expected ErrBusy: %t", mode, rank, err, busy)
			}
		}
		return nil
	}, native.In(a)); err != nil {
		t.Error(err)
	}
	before := a.Buffer().Writer()
	if err := job(t, lib, "rt_add_job", native.Handle, native.ViewIn, native.Int32).Run(ctx, s, "add", a, 1); err != nil || a.Buffer().Writer() != before {
		t.Errorf("%v; a read was published as a write: %t", err, a.Buffer().Writer() != before)
	}
}
