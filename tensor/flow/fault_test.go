package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// outcome is what was read of a value, or why not.
type outcome struct {
	name string
	got  []float64
	err  error
}

// contraction asks for operations of every kind and reads all that they make.
func contraction(ctx context.Context) (all []outcome, err error) {
	ctx, free := tensor.Scope(ctx)
	defer func() { err = errors.Join(err, free()) }()
	one, err := tensor.From(ctx, numbers(1, 24), 2, 3, 4)
	if err != nil {
		return nil, err
	}
	two, err := tensor.From(ctx, numbers(2, 60), 5, 4, 3)
	if err != nil {
		return nil, err
	}
	a, b := async.Of(one), async.Of(two)
	theta := flow.Einsum(ctx, "ijk,lkj->il", a, b)
	square := flow.MatMul(ctx, theta, flow.T(ctx, theta))
	sum := flow.Copy(ctx, square)
	flow.GemmInto(ctx, 2, square, square, 1, sum)
	flow.AddInto(ctx, 1, square, -1, sum)
	u, s, vh := flow.SVD(ctx, square)
	again := flow.Einsum(ctx, "ij,j,jk->ik", u, s, vh)
	byTask := async.New[*tensor.Array]("by a task")
	r, w := square.Read(), byTask.Write()
	async.Go(ctx, "task", func(ctx context.Context) error {
		x, err := r.Await(ctx)
		if err != nil {
			return err
		}
		y, err := tensor.Scale(ctx, 2, x)
		if err != nil {
			return err
		}
		return w.Set(y)
	}, r, w)
	flow.CopyInto(ctx, byTask, sum)
	last := flow.Reshape(ctx, flow.Add(ctx, byTask, again), 4)
	for _, v := range []*flow.Value{theta, square, sum, s, byTask, last} {
		o := outcome{name: v.String()}
		o.got, o.err = read(ctx, v)
		all = append(all, o)
	}
	return all, nil
}

// TestEveryFaultEndsInAPoisonOrTheRightValue makes each driver call of the
// program fail in turn, and each kill the device: nothing hangs, nothing is left,
// no value is wrong, and what is missing says who failed and where it was asked
// for.
func TestEveryFaultEndsInAPoisonOrTheRightValue(t *testing.T) {
	for _, debug := range []bool{true, false} {
		for _, death := range []bool{false, true} {
			t.Run(fmt.Sprintf("debug %t, death %t", debug, death), func(t *testing.T) {
				everyFault(t, debug, death, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func() {})
			})
		}
	}
}

// everyFault runs the program on the first device of a new family for each call
// that it makes of the driver. after is called when everything is closed.
func everyFault(t *testing.T, debug, death bool, open func() driver.Family, after func()) {
	var want []outcome
	poisons := 0
	for n := 0; ; n++ {
		plan := &fault.Plan{}
		ctx := context.Background()
		family := fault.New(open(), plan)
		o := runtime.Options{Devices: []string{family.Name() + ":0"}, ResourceOptions: runtime.ResourceOptions{Streams: 2}}
		if o.Tasks.Lanes = 1; debug {
			d := scheduler.NewDebug(scheduler.DebugOptions{Seed: uint64(n)})
			o.Scheduler, ctx = d, scheduler.With(ctx, d)
		}
		rt, err := runtime.StartFamilies([]driver.Family{family}, o)
		if err != nil {
			t.Fatal(err)
		}
		before := plan.Counts()[fault.Any]
		switch {
		case n == 0:
		case death:
			plan.KillNth(fault.Any, n, nil)
		default:
			plan.FailNth(fault.Any, n, nil)
		}
		all, err := contraction(ctx)
		calls := plan.Counts()[fault.Any] - before
		plan.Clear()
		closed := rt.Close()
		after()
		if n == 0 {
			if err != nil || closed != nil {
				t.Fatalf("without a fault: %v, %v", err, closed)
			}
			for _, o := range all {
				if o.err != nil {
					t.Fatalf("without a fault: %s: %v", o.name, o.err)
				}
			}
			want = all
			continue
		}
		at := fmt.Sprintf("call %d", n)
		failed := []error{err}
		for k, o := range all {
			failed = append(failed, o.err)
			if o.err == nil && !near(o.got, want[k].got) {
				t.Errorf("%s: %s is %v; want %v", at, o.name, o.got, want[k].got)
			}
			var p *async.Poison
			if !errors.As(o.err, &p) {
				continue
			}
			poisons++
			if op := strings.TrimPrefix(p.Op, `task "`); !strings.HasPrefix(op, "flow.") && !strings.HasPrefix(op, "task") || !strings.Contains(p.Site(), "/fault_test.go:") {
				t.Errorf("%s: %s is poisoned by %q at %q; expected an operation and a line of this file", at, o.name, p.Op, p.Site())
			}
			if !errors.Is(p, fault.ErrInjected) && !(death && errors.Is(p, weir.ErrDeviceLost)) {
				t.Errorf("%s: the poison of %s is not the fault: %v", at, o.name, p)
			}
		}
		if joined, structured := errors.Join(failed...), (*weir.Error)(nil); joined != nil && !errors.As(joined, &structured) {
			t.Errorf("%s: %v is no *weir.Error", at, joined)
		} else if death && !errors.Is(joined, weir.ErrDeviceLost) && calls >= n && !errors.Is(closed, weir.ErrDeviceLost) {
			t.Errorf("%s: the device died and the program answered %v", at, joined)
		}
		if errors.Is(closed, weir.ErrLeak) {
			t.Errorf("%s: %v", at, closed)
		}
		if calls < n { // no call was left to fail
			break
		}
	}
	if poisons == 0 {
		t.Error("no fault poisoned a value")
	}
}

// near allows for what a decomposition rounds.
func near(x, y []float64) bool {
	return slices.EqualFunc(x, y, func(a, b float64) bool { return max(a-b, b-a) <= 1e-9*max(1, a, -a) })
}
