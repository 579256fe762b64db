package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

func TestATaskHasTheDeviceOfItsArena(t *testing.T) {
	startHosts(t, runtime.Options{})
	devices, err := runtime.Enrolled()
	if err != nil {
		t.Fatal(err)
	}
	here := func(ctx context.Context, want runtime.Device) error {
		if d, err := runtime.At(ctx); err != nil || d != want {
			t.Errorf("a task's context is on %v, %v; expected %v", d, err, want)
		}
		return nil
	}
	for _, r := range devices {
		d := r.Device()
		task := async.Go(runtime.On(t.Context(), d), "outer", func(ctx context.Context) error {
			inner := async.Go(ctx, "inner", func(ctx context.Context) error { return here(ctx, d) })
			return errors.Join(here(ctx, d), inner.Wait(ctx))
		})
		if err := task.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := async.Go(t.Context(), "default", func(ctx context.Context) error { return here(ctx, devices[0].Device()) }).Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEveryDeviceHasLanesOfItsOwn(t *testing.T) {
	startHosts(t, runtime.Options{Tasks: scheduler.Options{Lanes: 1}})
	devices, err := runtime.Enrolled()
	if err != nil {
		t.Fatal(err)
	}
	// Two tasks that need each other to run, each without giving its lane back.
	var both sync.WaitGroup
	both.Add(2)
	meet := func(context.Context) error { both.Done(); both.Wait(); return nil }
	first := async.Go(runtime.On(t.Context(), devices[0].Device()), "first", meet)
	second := async.Go(runtime.On(t.Context(), devices[1].Device()), "second", meet)
	if err := errors.Join(first.Wait(t.Context()), second.Wait(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestLanesAreIndependentOfStreams(t *testing.T) {
	startHosts(t, runtime.Options{Tasks: scheduler.Options{Lanes: 3}, ResourceOptions: runtime.ResourceOptions{Streams: 1}})
	all, err := runtime.Enrolled()
	if err != nil {
		t.Fatal(err)
	}
	if n := all[0].Streams().Size(); n != 1 {
		t.Fatalf("%d streams; expected one", n)
	}
	var three sync.WaitGroup
	three.Add(3)
	var tasks []*scheduler.Task
	for range 3 {
		tasks = append(tasks, async.Go(t.Context(), "meet", func(context.Context) error { three.Done(); three.Wait(); return nil }))
	}
	for _, task := range tasks {
		if err := task.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// closing closes rt, and returns when Close has begun. A lane is free.
func closing(rt *runtime.Runtime) <-chan error {
	closed := make(chan error)
	go func() { closed <- rt.Close() }()
	for {
		probe := async.Go(context.Background(), "probe", func(context.Context) error { return nil })
		if err := probe.Wait(context.Background()); errors.Is(err, weir.ErrClosed) {
			return closed
		}
	}
}

func TestCloseWaitsForTasksWhichStillFindTheirDevice(t *testing.T) {
	family, _ := hosts()
	rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{Tasks: scheduler.Options{Lanes: 2}})
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	task := async.Go(context.Background(), "late", func(ctx context.Context) error {
		<-gate
		r, err := runtime.Here(ctx)
		if err != nil {
			return err
		}
		s, err := r.Streams().Acquire(ctx)
		if err != nil {
			return err
		}
		return s.Release()
	})
	closed := closing(rt)
	close(gate)
	if err := <-closed; err != nil {
		t.Errorf("Close answers %v", err)
	}
	if err := task.Wait(context.Background()); err != nil {
		t.Errorf("a task that was running answers %v", err)
	}
}

func TestTasksThatCannotEndAreReportedWithNameAndSite(t *testing.T) {
	for _, debug := range []bool{false, true} {
		family, _ := hosts()
		rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Debug: debug}})
		if err != nil {
			t.Fatal(err)
		}
		v := async.New[int]("never")
		v.Write() // and nobody has it
		r := v.Read()
		task := async.Go(context.Background(), "waits for ever", func(ctx context.Context) error {
			_, err := r.Await(ctx)
			return err
		}, r)
		err = rt.Close()
		if !errors.Is(err, weir.ErrLeak) || !strings.Contains(err.Error(), `task "waits for ever" (#1) still waits for value "never"`) {
			t.Errorf("Close answers %v; expected the task by name", err)
		}
		report := weir.Report(err)
		if !strings.Contains(report, "tasks_test.go:") || strings.Contains(report, "TestTasksThatCannotEnd") != debug {
			t.Errorf("debug %v: the report is\n%s\nexpected where the task was made, and its stack only in debug mode", debug, report)
		}
		if err := task.Wait(context.Background()); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("the task's wait ended with %v; expected ErrClosed", err)
		}
	}
}

func TestATaskThatBlocksElsewhereIsGivenUpAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		family, _ := hosts()
		rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		task := async.Go(context.Background(), "blocks", func(context.Context) error { <-gate; return nil })
		if err := rt.Close(); !errors.Is(err, weir.ErrLeak) || !strings.Contains(err.Error(), `task "blocks" (#1) still runs, in code that is not Weir's`) {
			t.Errorf("Close answers %v; expected the task by name", err)
		}
		close(gate)
		if err := task.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestARuntimeOfADebugSchedulerRunsTasksInTheOrderOfItsSeed(t *testing.T) {
	orderOf := func(seed uint64) string {
		var names strings.Builder
		debug := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed, Trace: func(i scheduler.Info) { names.WriteString(i.Name) }})
		family, _ := hosts()
		rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{Scheduler: debug})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Split("abcdefgh", "") {
			async.Go(t.Context(), name, func(context.Context) error { return nil })
		}
		if err := errors.Join(debug.Run(), rt.Close()); err != nil {
			t.Fatal(err)
		}
		return names.String()
	}
	seen := map[string]bool{}
	for seed := range uint64(10) {
		order := orderOf(seed)
		if again := orderOf(seed); len(order) != 8 || again != order {
			t.Errorf("seed %d ran %q and then %q; expected the same eight twice", seed, order, again)
		}
		seen[order] = true
	}
	if len(seen) < 5 {
		t.Errorf("ten seeds gave %d orders", len(seen))
	}
}

func TestWhatTasksAskForWhileTheRuntimeClosesIsStillLaunched(t *testing.T) {
	family, _ := hosts()
	rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{Tasks: scheduler.Options{Lanes: 2}})
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	task := async.Go(context.Background(), "late", func(ctx context.Context) error {
		<-gate
		a, err := tensor.From(ctx, []float64{1, 2, 3, 4}, 2, 2)
		if err != nil {
			return err
		}
		b, err := flow.MatMul(ctx, async.Of(a), async.Of(a)).Get(ctx)
		if err != nil {
			return err
		}
		x, err := tensor.Data[float64](ctx, b)
		if err == nil && x[3] != 22 {
			t.Errorf("the product is %v", x)
		}
		return errors.Join(err, a.Free(), b.Free())
	})
	closed := closing(rt)
	close(gate)
	if err := <-closed; err != nil {
		t.Errorf("Close answers %v", err)
	}
	if err := task.Wait(context.Background()); err != nil {
		t.Errorf("the task answers %v", err)
	}
}

func TestWhoWaitsUnderARuntimeOfADebugSchedulerRunsItsTasks(t *testing.T) {
	family, _ := hosts()
	rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{Scheduler: scheduler.NewDebug(scheduler.DebugOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background() // which names no scheduler
	a, err := tensor.From(ctx, []float64{3}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := flow.MatMul(ctx, async.Of(a), async.Of(a)).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := tensor.Item[float64](ctx, b); err != nil || x != 9 {
		t.Errorf("3·3 = %v, %v", x, err)
	}
	if err := errors.Join(a.Free(), b.Free(), rt.Close()); err != nil {
		t.Error(err)
	}
	if s := scheduler.Of(ctx); s != nil {
		t.Errorf("after Close the scheduler is %v; expected none", s)
	}
}
