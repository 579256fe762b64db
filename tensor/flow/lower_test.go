package flow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// inOneWindow starts a runtime whose scheduler runs nothing before somebody waits, so
// that all that was asked for until then is lowered together. plan may be nil.
func inOneWindow(t *testing.T, o runtime.ResourceOptions, plan *fault.Plan) context.Context {
	t.Helper()
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 1})
	families := where.open(false)
	if plan != nil {
		families[0] = fault.New(families[0], plan)
	}
	rt, err := runtime.StartFamilies(families, runtime.Options{Scheduler: d, ResourceOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	ctx, free := tensor.Scope(scheduler.With(context.Background(), d))
	t.Cleanup(func() {
		if err := errors.Join(free(), rt.Close()); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	return ctx
}

func lowering(l runtime.Lowering) runtime.ResourceOptions {
	return runtime.ResourceOptions{Lowering: l}
}

// product is the elements of a·b, of rows×inner and inner×cols ones.
func product(rows, inner, cols int, a, b []float64) []float64 {
	c := make([]float64, rows*cols)
	for i := range rows {
		for j := range cols {
			for k := range inner {
				c[i*cols+j] += a[i*inner+k] * b[k*cols+j]
			}
		}
	}
	return c
}

// asksFor asks for that many products of several shapes, and answers what they are
// to be.
func asksFor(ctx context.Context, count int) (all []*flow.Value, want [][]float64) {
	for i := range count {
		rows, inner, cols := 1+i%5, 2+i%3, 1+i%4
		a, b := matrix(ctx, i, rows, inner), matrix(ctx, i+1, inner, cols)
		all = append(all, flow.MatMul(ctx, a, b))
		want = append(want, product(rows, inner, cols, numbers(i, rows*inner), numbers(i+1, inner*cols)))
	}
	return all, want
}

// lowered is how what was asked for became launches.
type lowered struct{ batches, batched, alone, groups, plain int }

// lowerings counts what ask makes of it.
func lowerings(t *testing.T, ctx context.Context, plan *fault.Plan, ask func()) lowered {
	t.Helper()
	c, n := must(flow.Count(ctx)), plan.Counts()
	ask()
	d, m := must(flow.Count(ctx)), plan.Counts()
	batched := d.Operations().Batched - c.Operations().Batched
	return lowered{int(d.Batches - c.Batches), int(batched), int(d.Operations().Launched - c.Operations().Launched - batched),
		m[fault.BLASGemmGroups] - n[fault.BLASGemmGroups], m[fault.BLASGemm] - n[fault.BLASGemm]}
}

func TestProductsThatNeedNothingOfEachOtherShareALaunch(t *testing.T) {
	for name, c := range map[string]struct {
		lowering runtime.Lowering
		want     lowered
	}{
		"as it is":        {runtime.Lowering{}, lowered{1, 64, 0, 1, 0}},
		"two at most":     {runtime.Lowering{MostTogether: 2}, lowered{32, 64, 0, 32, 0}},
		"a few at most":   {runtime.Lowering{MostTogether: 9}, lowered{7, 63, 1, 7, 1}},
		"one at most":     {runtime.Lowering{MostTogether: 1}, lowered{0, 0, 64, 0, 64}},
		"separate":        {runtime.Lowering{Separate: true, MostTogether: 9}, lowered{0, 0, 64, 0, 64}},
		"reproducible":    {runtime.Lowering{Reproducible: true}, lowered{0, 0, 64, 0, 64}},
		"more than there": {runtime.Lowering{MostTogether: 1 << 30}, lowered{1, 64, 0, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &fault.Plan{}
			ctx := inOneWindow(t, lowering(c.lowering), plan)
			got := lowerings(t, ctx, plan, func() {
				all, want := asksFor(ctx, 64)
				for i, v := range all {
					wants(t, ctx, v, want[i]...)
				}
			})
			if got != c.want {
				t.Errorf("64 products became %+v; expected %+v", got, c.want)
			}
		})
	}
}

func TestALoweringHasToMakeSense(t *testing.T) {
	for _, f := range where.open(false) {
		rt, err := runtime.StartFamilies([]driver.Family{f}, runtime.Options{ResourceOptions: lowering(runtime.Lowering{MostTogether: -1})})
		if !errors.Is(err, weir.ErrArgument) || !strings.Contains(err.Error(), "at most -1 operations together; expected 1 or more, or 0 for the default") {
			t.Errorf("got %v", err)
		}
		if err == nil {
			_ = rt.Close()
		}
	}
}

// TestCountersAreOfWhatTheUserAskedFor: whatever became of it, and of nothing else.
func TestCountersAreOfWhatTheUserAskedFor(t *testing.T) {
	ctx := inOneWindow(t, runtime.ResourceOptions{}, nil)
	a := matrix(ctx, 1, 2, 2)
	apply := func(name string, ends func()) *flow.Value {
		return flow.Apply(ctx, name, func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) { ends(); return in[0], nil }, a)
	}
	gone, panics, good := apply("gone", goruntime.Goexit), apply("panics", func() { panic("mine") }), apply("good", func() {})
	ended, cancel := context.WithCancel(ctx)
	cancelled := flow.Add(ended, a, a)
	cancel()
	never := flow.Scale(ended, 2, flow.MatMul(ctx, gone, a))
	for _, v := range []*flow.Value{gone, panics, cancelled, never} {
		poisonOf(t, ctx, v)
	}
	wants(t, ctx, good, numbers(1, 4)...)
	inner, free := tensor.Scope(ctx)
	wants(t, ctx, flow.Copy(inner, a), numbers(1, 4)...)
	if err := free(); err != nil {
		t.Error(err)
	}
	want := map[string]flow.OperationCounters{"gone": {Launched: 1, Failed: 1}, "panics": {Launched: 1, Failed: 1}, "good": {Launched: 1},
		"flow.Add": {Launched: 1, Failed: 1}, "flow.Copy": {Launched: 1}}
	if got := must(flow.Count(ctx)).ByOperation; !maps.Equal(got, want) {
		t.Errorf("counted %+v; want %+v", got, want)
	}
}

// TestChainsAreLoweredStepByStep: the n-th products of all chains are one batch.
func TestChainsAreLoweredStepByStep(t *testing.T) {
	const chains, length = 8, 5
	plan := &fault.Plan{}
	ctx := inOneWindow(t, runtime.ResourceOptions{}, plan)
	got := lowerings(t, ctx, plan, func() {
		var last []*flow.Value
		for i := range chains {
			v := matrix(ctx, i, 2, 2)
			for range length {
				v = flow.MatMul(ctx, v, matrix(ctx, 1, 2, 2))
			}
			last = append(last, v)
		}
		for i, v := range last {
			want := numbers(i, 4)
			for range length {
				want = product(2, 2, 2, want, numbers(1, 4))
			}
			wants(t, ctx, v, want...)
		}
	})
	if want := (lowered{length, chains * length, 0, length, 0}); got != want {
		t.Errorf("%d chains of %d became %+v; expected %+v", chains, length, got, want)
	}
}

// rounded makes products whose bits depend on how they are summed.
func rounded(ctx context.Context) (bits []uint64, err error) {
	var last []*flow.Value
	for i := range 24 {
		x := make([]float64, 13*29)
		for k := range x {
			x[k] = 1 / float64(3+k*(i%5+1))
		}
		a := async.Of(must(tensor.From(ctx, x, 13, 29)))
		v := flow.MatMul(ctx, a, flow.T(ctx, a))
		flow.GemmInto(ctx, 0.1, v, v, 0.3, v)
		c := flow.Copy(ctx, v)
		flow.GemmInto(ctx, 0.7, v, v, 1.1, c)
		last = append(last, c)
		if i%7 == 0 { // so that windows differ
			if err := c.Wait(ctx); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range last {
		x, err := read(ctx, v)
		if err != nil {
			return nil, err
		}
		for _, f := range x {
			bits = append(bits, math.Float64bits(f))
		}
	}
	return bits, nil
}

func TestAReproducibleProgramHasTheSameBitsInEveryRun(t *testing.T) {
	var first []uint64
	for run := range 6 {
		s := situation{streams: 1 + run%4, lanes: 1 + run%2, debug: run%3 == 0, seed: uint64(run), inline: run == 1, scoped: true,
			lowering: runtime.Lowering{Reproducible: true}}
		var sched scheduler.Scheduler
		if s.debug {
			sched = scheduler.NewDebug(scheduler.DebugOptions{Seed: s.seed})
		}
		var bits []uint64
		if err := inside(s, sched, func(ctx context.Context) (err error) { bits, err = rounded(ctx); return err }); err != nil {
			t.Fatal(err)
		}
		if run == 0 {
			first = bits
		} else if !slices.Equal(bits, first) {
			t.Errorf("run %d has other bits than the first", run)
		}
	}
}

// TestAMemberOfABatchFailsAlone: what is wrong with one product is that one's.
func TestAMemberOfABatchFailsAlone(t *testing.T) {
	ctx := inOneWindow(t, runtime.ResourceOptions{}, nil)
	var good []*flow.Value
	var want [][]float64
	some := func() { // two products of no interest between those that are
		g, w := asksFor(ctx, 2)
		good, want = append(good, g...), append(want, w...)
	}
	a := matrix(ctx, 1, 2, 2)
	freed := must(tensor.From(ctx, numbers(1, 4), 2, 2))
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	// This one is freed by a Free in the same level, of another value: it may be
	// launched before the product or after it, and neither may harm others.
	raced := must(tensor.From(ctx, numbers(1, 4), 2, 2))
	mine, cancel := context.WithCancelCause(ctx)
	enough := errors.New("enough")
	some()
	poisoned, poisonedAt := flow.Reshape(ctx, a, 7), here()
	ofPoison := flow.MatMul(ctx, poisoned, a)
	some()
	shape, shapeAt := flow.MatMul(ctx, a, matrix(ctx, 1, 3, 2)), here()
	some()
	ofFreed, ofFreedAt := flow.MatMul(ctx, a, async.Of(freed)), here()
	some()
	cancelled, cancelledAt := flow.MatMul(mine, a, a), here()
	target := matrix(ctx, 2, 2, 2)
	flow.GemmInto(mine, 1, a, a, 1, target)
	some()
	imaginary, imaginaryAt := flow.GemmInto(ctx, 1i, a, a, 1, matrix(ctx, 1, 2, 2)), here()
	flow.Free(ctx, async.Of(raced))
	ofRaced := flow.MatMul(ctx, a, async.Of(raced))
	panics, panicsAt := flow.MatMul(ctx, a, a, hollow{}), here()
	some()
	cancel(enough)
	for i, v := range good {
		wants(t, ctx, v, want[i]...)
	}
	for _, c := range []struct {
		v        *flow.Value
		op, site string
		is       error
	}{
		{poisoned, "flow.Reshape", poisonedAt, weir.ErrArgument},
		{ofPoison, "flow.Reshape", poisonedAt, weir.ErrArgument},
		{shape, "flow.MatMul", shapeAt, weir.ErrArgument},
		{ofFreed, "flow.MatMul", ofFreedAt, weir.ErrClosed},
		{cancelled, "flow.MatMul", cancelledAt, enough},
		{imaginary, "flow.GemmInto", imaginaryAt, weir.ErrArgument},
		{panics, "flow.MatMul", panicsAt, weir.ErrPanic},
	} {
		if p := poisonOf(t, ctx, c.v); p.Op != c.op || p.Site() != c.site || !errors.Is(p, c.is) {
			t.Errorf("%v is poisoned by %v; expected %s (%s) and %v", c.v, p, c.op, c.site, c.is)
		}
	}
	if p := poisonOf(t, ctx, target); p.Op != "flow.GemmInto" || !errors.Is(p, enough) {
		t.Errorf("the target of a cancelled product: %v", p)
	}
	if got, err := read(ctx, ofRaced); err != nil && !errors.Is(err, weir.ErrClosed) ||
		err == nil && !slices.Equal(got, product(2, 2, 2, numbers(1, 4), numbers(1, 4))) {
		t.Errorf("what is freed beside it: %v, %v", got, err)
	}
}

// fragile is a context that panics once it is broken, when it is asked whether it ended,
// or else for what it carries.
type fragile struct {
	context.Context
	broken *bool
	ends   bool
}

func (f fragile) Done() <-chan struct{} { return make(chan struct{}) }

func (f fragile) Err() error {
	if *f.broken && f.ends {
		panic("asked whether it ended")
	}
	return nil
}

func (f fragile) Value(key any) any {
	if *f.broken && !f.ends {
		panic("asked for a value")
	}
	return f.Context.Value(key)
}

func TestAContextThatPanicsFailsItsOwnOperation(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprintf("ends %t", ends), func(t *testing.T) {
			ctx := inOneWindow(t, runtime.ResourceOptions{}, nil)
			broken := false
			mine := fragile{ctx, &broken, ends}
			a := matrix(ctx, 1, 2, 2)
			good, want := asksFor(ctx, 3)
			bad := []*flow.Value{flow.MatMul(mine, a, a), flow.Add(mine, a, a), flow.MatMul(mine, a, a)}
			more, wantMore := asksFor(ctx, 3)
			broken = true
			for i, v := range append(good, more...) {
				wants(t, ctx, v, append(want, wantMore...)[i]...)
			}
			for _, v := range bad {
				if p := poisonOf(t, ctx, v); !errors.Is(p, weir.ErrPanic) {
					t.Errorf("%v is poisoned by %v; expected a panic", v, p)
				}
			}
			if c := must(flow.Count(ctx)); c.Batches != 1 || c.Operations().Failed != 3 {
				t.Errorf("counted %+v; expected one batch and 3 failures", c)
			}
		})
	}
}

// hollow is an option that panics.
type hollow struct{ tensor.ProductOption }

// TestAFailureOfABatchIsOfItsMembers: of those that could have been changed twice.
// The others are computed by themselves.
func TestAFailureOfABatchIsOfItsMembers(t *testing.T) {
	for _, call := range []fault.Call{fault.BLASGemmGroups, fault.StreamRecord} {
		t.Run(string(call), func(t *testing.T) {
			plan := &fault.Plan{}
			ctx := inOneWindow(t, runtime.ResourceOptions{Streams: 1}, plan)
			a := matrix(ctx, 1, 2, 2)
			if _, err := read(ctx, a); err != nil { // nothing is unfinished
				t.Fatal(err)
			}
			var sites []string
			var changed, overwritten, made []*flow.Value
			for i := range 3 {
				v, at := flow.GemmInto(ctx, 1, a, a, 1, matrix(ctx, i, 2, 2)), here()
				changed, sites = append(changed, v), append(sites, at)
				overwritten = append(overwritten, flow.GemmInto(ctx, 1, a, a, 0, matrix(ctx, i, 2, 2)))
				made = append(made, flow.MatMul(ctx, a, a))
			}
			memory := must(buffer.Of(must(runtime.Here(ctx))))
			buffers := memory.Stats().Buffers
			plan.FailNth(call, 1, nil)
			square := product(2, 2, 2, numbers(1, 4), numbers(1, 4))
			failed := 0
			for i, v := range changed {
				_, err := v.Get(ctx)
				var p *async.Poison
				if err == nil {
					want := numbers(i, 4)
					for k := range want {
						want[k] += square[k]
					}
					wants(t, ctx, v, want...)
				} else if failed++; !errors.As(err, &p) || p.Op != "flow.GemmInto" || p.Site() != sites[i] || !errors.Is(err, fault.ErrInjected) {
					t.Errorf("product %d: %v; expected the fault, of flow.GemmInto (%s)", i, err, sites[i])
				}
			}
			if call == fault.BLASGemmGroups && failed != 3 {
				t.Errorf("%d products that change what is there failed; expected all of 3", failed)
			}
			for _, v := range append(overwritten, made...) {
				wants(t, ctx, v, square...)
			}
			if n := memory.Stats().Buffers - buffers; n != int64(len(made)) {
				t.Errorf("%d products made %d buffers", len(made), n)
			}
		})
	}
}

// TestABatchIsSplitWhereMemoryEnds: what there was memory for is computed, together,
// and the rest says that there was none.
func TestABatchIsSplitWhereMemoryEnds(t *testing.T) {
	const side, count = 256, 30 // 512 KiB each, of a column and a row
	plan := &fault.Plan{}
	ctx := inOneWindow(t, runtime.ResourceOptions{MemoryLimit: 8 << 20, ReleaseThreshold: -1}, plan)
	column, row := matrix(ctx, 1, side, 1), matrix(ctx, 2, 1, side)
	want := product(side, 1, side, numbers(1, side), numbers(2, side))
	var all []*flow.Value
	computed, failed := 0, 0
	got := lowerings(t, ctx, plan, func() {
		for range count {
			all = append(all, flow.MatMul(ctx, column, row))
		}
		for i, v := range all {
			_, err := v.Get(ctx)
			switch {
			case err == nil && failed == 0:
				computed++
			case errors.Is(err, weir.ErrOutOfMemory):
				failed++
			default:
				t.Errorf("product %d: %v after %d had no memory", i, err, failed)
			}
		}
	})
	if computed < 2 || failed == 0 || got.batches != 1 || got.batched != computed {
		t.Errorf("of %d products %d were computed and %d had no memory, as %+v; expected some of each, the former as one batch", count, computed, failed, got)
	}
	for _, v := range all[:computed] {
		wants(t, ctx, v, want...)
		flow.Free(ctx, v)
	}
	wants(t, ctx, flow.MatMul(ctx, column, row), want...)
}

// TestAProgramGoesOnInCallOrderWhereMemoryEnds: of each step of a loop little is left,
// but what all steps make first would not fit.
func TestAProgramGoesOnInCallOrderWhereMemoryEnds(t *testing.T) {
	const side, limit = 64, 8 << 20 // room for fewer matrices than there are steps
	for _, l := range []runtime.Lowering{{}, {Separate: true}, {MostTogether: 3}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			ctx := inOneWindow(t, runtime.ResourceOptions{MemoryLimit: limit, ReleaseThreshold: -1, Lowering: l}, nil)
			a, column := matrix(ctx, 1, side, side), matrix(ctx, 2, side, 1)
			var last []*flow.Value
			for range 600 {
				x := flow.MatMul(ctx, a, a)
				last = append(last, flow.MatMul(ctx, x, column))
				flow.Free(ctx, x)
			}
			square := product(side, side, side, numbers(1, side*side), numbers(1, side*side))
			want := product(side, side, 1, square, numbers(2, side))
			for i, v := range last {
				if got, err := read(ctx, v); err != nil || !slices.Equal(got, want) {
					t.Fatalf("step %d: %v, %v; expected %v", i, got, err, want)
				}
			}
		})
	}
}

// TestWhatIsLaunchedAheadLeavesRoomForTheRest: all of the first level would fill the
// memory, so that nothing that frees it could be launched.
func TestWhatIsLaunchedAheadLeavesRoomForTheRest(t *testing.T) {
	const side, limit = 64, 4 << 20
	ctx := inOneWindow(t, runtime.ResourceOptions{MemoryLimit: limit, ReleaseThreshold: -1}, nil)
	a, column := matrix(ctx, 1, side, side), matrix(ctx, 2, side, 1)
	var last []*flow.Value
	for range 600 {
		x := flow.MatMul(ctx, a, a)
		y := flow.MatMul(ctx, x, a)
		z := flow.Scale(ctx, 2, y)
		last = append(last, flow.MatMul(ctx, z, column))
		for _, v := range []*flow.Value{x, y, z} {
			flow.Free(ctx, v)
		}
	}
	m := must(tensor.From(ctx, numbers(1, side*side), side, side))
	want := must(tensor.Data[float64](ctx, must(tensor.MatMul(ctx, must(tensor.Scale(ctx, 2, must(tensor.MatMul(ctx, must(tensor.MatMul(ctx, m, m)), m)))),
		must(tensor.From(ctx, numbers(2, side), side, 1))))))
	for i, v := range last {
		if got, err := read(ctx, v); err != nil || !slices.Equal(got, want) {
			t.Fatalf("step %d: %v, %v; expected %v", i, got, err, want)
		}
	}
}

// TestALargeResultOfABatchIsGarbageByItself keeps one of eight, and lets the collector
// have the others.
func TestALargeResultOfABatchIsGarbageByItself(t *testing.T) {
	const n, limit = 512, 64 << 20 // 2 MiB a result, and one multiplication for each element
	ctx := start(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: limit}})
	a, b := matrix(ctx, 1, n, 1), matrix(ctx, 2, 1, n)
	var kept []*tensor.Array
	for range 16 {
		var all []*flow.Value
		for range 8 {
			all = append(all, flow.MatMul(ctx, a, b))
		}
		for _, v := range all {
			if _, err := v.Get(ctx); err != nil {
				t.Fatalf("with %d kept: %v", len(kept), err)
			}
		}
		kept = append(kept, must(all[0].Get(ctx)))
	}
	if c := must(flow.Count(ctx)); c.Batches == 0 {
		t.Error("no products went together")
	}
	for _, x := range kept {
		if err := x.Free(); err != nil {
			t.Error(err)
		}
	}
}

func TestALongChainOfProductsNeedsLittleMemory(t *testing.T) {
	const length, cols = 10_000, 2048 // all of them would be 320 MB
	for _, l := range []runtime.Lowering{{}, {Separate: true}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			ctx := start(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: 64 << 20, ReleaseThreshold: -1, Lowering: l}})
			turn := async.Of(must(tensor.From(ctx, []float64{0, -1, 1, 0}, 2, 2)))
			v := matrix(ctx, 1, 2, cols)
			for range length {
				next := flow.MatMul(ctx, turn, v)
				flow.Free(ctx, v)
				v = next
			}
			wants(t, ctx, v, numbers(1, 2*cols)...) // 10,000 quarter turns
		})
	}
}

func TestViewsOfOneBufferAreTargetsOfOneBatch(t *testing.T) {
	plan := &fault.Plan{}
	ctx := inOneWindow(t, runtime.ResourceOptions{}, plan)
	block := func(base *tensor.Array, i, j int) *flow.Value {
		return async.Of(must(base.Slice(tensor.Span(i, i+2), tensor.Span(j, j+2))))
	}
	a := matrix(ctx, 1, 2, 2)
	square := product(2, 2, 2, numbers(1, 4), numbers(1, 4))
	base := must(tensor.From(ctx, make([]float64, 16), 4, 4))
	var all []*flow.Value
	got := lowerings(t, ctx, plan, func() {
		for _, at := range [][2]int{{0, 0}, {0, 2}, {2, 0}, {2, 2}} {
			all = append(all, flow.GemmInto(ctx, 1, a, a, 1, block(base, at[0], at[1])))
		}
		for _, v := range all {
			wants(t, ctx, v, square...)
		}
	})
	if want := (lowered{1, 4, 0, 1, 0}); got != want {
		t.Errorf("four blocks of a matrix became %+v; expected %+v", got, want)
	}
	// Blocks that overlap are changed one after the other, in the order of the calls.
	base = must(tensor.From(ctx, make([]float64, 16), 4, 4))
	got = lowerings(t, ctx, plan, func() {
		for _, at := range [][2]int{{0, 0}, {1, 1}, {2, 2}} {
			flow.GemmInto(ctx, 1, a, a, 2, block(base, at[0], at[1]))
		}
		wants(t, ctx, flow.Scale(ctx, 1, flow.MatMul(ctx, a, a)), square...)
	})
	want := make([]float64, 16)
	for i := range 3 {
		for k, x := range square {
			at := (i+k/2)*4 + i + k%2
			want[at] = x + 2*want[at]
		}
	}
	if x := must(tensor.Data[float64](ctx, base)); !slices.Equal(x, want) {
		t.Errorf("blocks that overlap: %v; expected %v", x, want)
	}
	if got.batches != 0 || got.alone != 5 {
		t.Errorf("blocks that overlap became %+v; expected five launches", got)
	}
}

func TestAScopeFreesWhatABatchMade(t *testing.T) {
	for _, l := range []runtime.Lowering{{}, {MostTogether: 1}, {MostTogether: 3}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			ctx := inOneWindow(t, lowering(l), nil)
			scoped, free := tensor.Scope(ctx)
			all, want := asksFor(scoped, 7)
			outside, wantOutside := asksFor(ctx, 2)
			kept, err := all[3].Get(ctx)
			if err != nil {
				t.Fatal(err)
			}
			tensor.Keep(scoped, kept)
			if err := free(); err != nil {
				t.Error(err)
			}
			for i, v := range all {
				if i == 3 {
					wants(t, ctx, v, want[i]...)
				} else if _, err := read(ctx, v); !errors.Is(err, weir.ErrClosed) {
					t.Errorf("product %d outlived its scope: %v", i, err)
				}
			}
			for i, v := range outside {
				wants(t, ctx, v, wantOutside[i]...)
			}
		})
	}
}

// yields is a lane that tells when its goroutine is about to wait.
type yields chan struct{}

func (y yields) Yield(scheduler.Wait) { y <- struct{}{} }
func (yields) Resume()                {}

// TestWhatABatchMadeIsKnownBeforeTheNextOneWaits: a task that waits for a product has
// the only stream, which the next batch of the level waits for.
func TestWhatABatchMadeIsKnownBeforeTheNextOneWaits(t *testing.T) {
	plan := &fault.Plan{}
	families := where.open(false)
	families[0] = fault.New(families[0], plan)
	o := runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1, Lowering: runtime.Lowering{MostTogether: 2}}}
	o.Tasks.Lanes = 2
	rt := must(runtime.StartFamilies(families, o))
	ctx, free := tensor.Scope(context.Background())
	a := matrix(ctx, 1, 2, 2)
	gate := async.New[*tensor.Array]("gate")
	w := gate.Write()
	blocks := flow.Apply(ctx, "blocks", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) { return gate.Get(ctx) }, a)
	all, want := asksFor(ctx, 4)
	waits := make(yields, 8)
	took := make(chan error, 1)
	first := true
	plan.Delay(fault.BLASGemmGroups, func() {
		if !first {
			return
		}
		first = false
		ctx := scheduler.WithLane(ctx, waits)
		go func() {
			s, err := must(runtime.Here(ctx)).Streams().Acquire(ctx)
			if err == nil {
				_, failed := all[0].Get(ctx)
				err = errors.Join(failed, s.Release())
			}
			took <- err
		}()
		<-waits // it is the next to have the stream
	})
	if err := w.Set(must(a.Get(ctx))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(blocks.Wait(ctx), <-took); err != nil {
		t.Error(err)
	}
	for i, v := range all {
		wants(t, ctx, v, want[i]...)
	}
	if err := errors.Join(free(), rt.Close()); err != nil {
		t.Error(err)
	}
}

// batchProgram asks for products of one level, which change, overwrite and make, and
// answers what is in their arrays whatever became of them.
func batchProgram(ctx context.Context) (all []outcome, targets [][]float64) {
	ctx, free := tensor.Scope(ctx)
	defer func() { _ = free() }()
	from := func(x ...float64) *tensor.Array {
		a, err := tensor.From(ctx, x, 2, 2)
		if err != nil {
			return nil
		}
		return a
	}
	a, b := from(1, 2, -1, 3), from(2, 0, 1, 1)
	c := []*tensor.Array{from(1, 1, 1, 1), from(2, 2, 2, 2), from(3, 3, 3, 3)}
	if slices.Contains(append(c, a, b), nil) {
		return nil, nil
	}
	va, vb := async.Of(a), async.Of(b)
	values := []*flow.Value{
		flow.GemmInto(ctx, 1, va, vb, 1, async.Of(c[0])),
		flow.MatMul(ctx, va, vb),
		flow.GemmInto(ctx, 2, va, vb, -1, async.Of(c[1])),
		flow.GemmInto(ctx, 1, vb, va, 0, async.Of(c[2])),
		flow.MatMul(ctx, flow.T(ctx, va), vb),
		flow.MatMul(ctx, vb, vb),
	}
	for i, v := range values {
		o := outcome{name: fmt.Sprint("product ", i)}
		o.got, o.err = read(ctx, v)
		all = append(all, o)
	}
	for _, x := range c {
		got, err := tensor.Data[float64](ctx, x)
		if err != nil {
			got = nil
		}
		targets = append(targets, got)
	}
	return all, targets
}

// TestNoProductOfABatchIsAppliedTwice makes each driver call fail in turn: a value is
// right or poisoned, and a target is as it was or changed once.
func TestNoProductOfABatchIsAppliedTwice(t *testing.T) {
	noneTwice(t, false, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func() {})
	noneTwice(t, true, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func() {})
}

func noneTwice(t *testing.T, death bool, open func() driver.Family, after func()) {
	want := [][]float64{{5, 3, 2, 4}, {4, 2, 1, 3}, {6, 2, 0, 4}, {2, 4, 0, 5}, {1, -1, 7, 3}, {4, 0, 3, 1}}
	was := [][]float64{{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}
	poisons, batches := 0, uint64(0)
	for n := 0; ; n++ {
		plan := &fault.Plan{}
		family := fault.New(open(), plan)
		d := scheduler.NewDebug(scheduler.DebugOptions{Seed: uint64(n)})
		rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{Scheduler: d, Devices: []string{family.Name() + ":0"},
			ResourceOptions: runtime.ResourceOptions{Streams: 2}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := scheduler.With(context.Background(), d)
		before := plan.Counts()[fault.Any]
		switch {
		case n == 0:
		case death:
			plan.KillNth(fault.Any, n, nil)
		default:
			plan.FailNth(fault.Any, n, nil)
		}
		all, targets := batchProgram(ctx)
		calls := plan.Counts()[fault.Any] - before
		plan.Clear()
		if c, err := flow.Count(ctx); err == nil {
			batches += c.Batches
		}
		closed := rt.Close()
		after()
		for i, o := range all {
			var p *async.Poison
			switch {
			case o.err == nil && !slices.Equal(o.got, want[i]):
				t.Errorf("call %d: %s is %v; expected %v", n, o.name, o.got, want[i])
			case errors.As(o.err, &p):
				poisons++
				if !strings.HasPrefix(p.Op, "flow.") || !strings.Contains(p.Site(), "/lower_test.go:") {
					t.Errorf("call %d: %s is poisoned by %q at %q; expected an operation and a line of this file", n, o.name, p.Op, p.Site())
				}
			}
		}
		for i, got := range targets {
			if right := want[[]int{0, 2, 3}[i]]; got != nil && !slices.Equal(got, was[i]) && !slices.Equal(got, right) {
				t.Errorf("call %d: target %d is %v; expected %v or %v", n, i, got, was[i], right)
			}
		}
		if errors.Is(closed, weir.ErrLeak) || n == 0 && closed != nil {
			t.Errorf("call %d: %v", n, closed)
		}
		if n == 0 && batches == 0 {
			t.Error("without a fault there was no batch")
		}
		if calls < n {
			break
		}
	}
	if poisons == 0 {
		t.Error("no fault poisoned a value")
	}
}
