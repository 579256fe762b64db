//go:build cuda

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// onGPU has a test start the runtime on a GPU and the host.
func onGPU(t *testing.T) {
	t.Helper()
	if cuda.New().Count() == 0 {
		t.Skip("there is no GPU")
	}
	before := where
	where = world{[2]string{"cuda:0", "host:0"}, func(inline bool) []driver.Family {
		return []driver.Family{cuda.New(), host.New(host.Options{HandOver: !inline})}
	}}
	t.Cleanup(func() {
		where = before
		if misuse := cudatest.Misuse(); misuse != "" {
			t.Errorf("the driver was misused:\n%s", misuse)
		}
	})
}

// TestGraphsOnAGPU is the tests of graphs that name no device.
func TestGraphsOnAGPU(t *testing.T) {
	onGPU(t)
	for name, test := range map[string]func(*testing.T){
		"replay":     TestReplayWritesTheSameArraysAnew,
		"result":     TestAResultIsTheNextReplaysInput,
		"order":      TestAGraphIsInTheOrderOfOtherOperations,
		"refusals":   TestRecordingRefusesByName,
		"inputs":     TestWhatIsWrongWithInputsIsNamed,
		"goroutines": TestReplaysOfSeveralGoroutinesAreOneAfterTheOther,
		"turn":       TestAReplayGivesUpItsTurn,
		"leak":       TestAGraphThatWasNotClosedIsNamed,
		"scopes":     TestScopesDoNotFreeWhatAGraphHas,
		"memory":     TestReplayingHoldsNoMoreThanTheFirst,
		"freed":      TestWhatAProgramFreesStaysForTheNextReplay,
	} {
		t.Run(name, test)
	}
}

// recordable are the verbs that graphs have.
var recordable = []string{"matmul", "add", "einsum", "einsum with", "network", "scale", "t", "h", "conj", "permute",
	"copy", "contiguous", "gemm into", "add into", "copy into", "matmul", "matmul", "gemm into"}

// TestRandomProgramsReplayedAreThoseOfTheDirectForms compares graphs on a GPU with
// flow there, and both with the direct forms on the host, one after the other.
func TestRandomProgramsReplayedAreThoseOfTheDirectForms(t *testing.T) {
	onGPU(t)
	ctx := start(t, runtime.Options{})
	host := runtime.On(ctx, device(1))
	rapid.Check(t, func(t *rapid.T) {
		const inputs = 3
		n := rapid.IntRange(1, 14).Draw(t, "steps")
		steps := make([]step, n)
		for i := range steps {
			steps[i] = step{do: rapid.SampledFrom(recordable).Draw(t, "do"), a: rapid.IntRange(0, 20).Draw(t, "a"),
				b: rapid.IntRange(0, 20).Draw(t, "b"), c: rapid.IntRange(0, 20).Draw(t, "c"), n: rapid.IntRange(0, 20).Draw(t, "n")}
		}
		program := func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			values := slices.Clone(in)
			for _, s := range steps {
				v := verbs[s.do]
				var operands []*flow.Value
				for _, k := range v.operands(s, func(i int) int { return i % len(values) }) {
					operands = append(operands, values[k])
				}
				if out := v.flow(ctx, s, operands); !v.change {
					values = append(values, out)
				}
			}
			return values, nil
		}
		direct := func(in []*tensor.Array) [][]float64 {
			arrays := slices.Clone(in)
			for _, s := range steps {
				v := verbs[s.do]
				var operands []*tensor.Array
				for _, k := range v.operands(s, func(i int) int { return i % len(arrays) }) {
					operands = append(operands, arrays[k])
				}
				if out := must(v.direct(host, s, operands)); !v.change {
					arrays = append(arrays, out)
				}
			}
			return contents(host, arrays)
		}
		fresh := func(ctx context.Context, seed int) (all []*tensor.Array) {
			for k := range inputs {
				a := array(ctx, seed+k, side, side)
				if k == 1 {
					a = a.T()
				}
				all = append(all, a)
			}
			return all
		}
		in := fresh(ctx, 1)
		g, err := flow.Record(ctx, program, in...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := g.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}()
		if g.Reason() != nil {
			t.Fatalf("not recorded: %v", g.Reason())
		}
		check := func(what string, in []*tensor.Array, model []*tensor.Array) {
			want := direct(model)
			outs, err := g.Replay(ctx, in...)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for k, got := range contents(ctx, outs) {
				if !slices.Equal(got, want[k]) {
					t.Fatalf("%s: value %d is %v; want %v", what, k, got, want[k])
				}
			}
		}
		model := fresh(host, 1)
		check("first", in, model)
		check("again, on what the first left", nil, model)
		for k := range inputs {
			if err := errors.Join(tensor.SetData(ctx, in[k], numbers(k+9, side*side)), tensor.SetData(host, model[k], numbers(k+9, side*side))); err != nil {
				t.Fatal(err)
			}
		}
		check("other contents", in, model)
		check("other inputs", fresh(ctx, 5), fresh(host, 5))
		if slices.ContainsFunc(steps, func(s step) bool { return verbs[s.do].change }) {
			return // views that were made elsewhere are values by themselves, in no order with each other
		}
		var back, modelBack []*tensor.Array // results as inputs, again and again
		for _, a := range must(g.Replay(ctx)) {
			if len(back) < inputs && slices.Equal(a.Shape(), []int{side, side}) {
				back = append(back, a)
			}
		}
		for round := range 3 {
			if len(back) < inputs {
				break
			}
			modelBack = nil
			for _, x := range contents(ctx, back) {
				modelBack = append(modelBack, must(tensor.From(host, x, side, side)))
			}
			for k := range back {
				if err := tensor.SetData(ctx, back[k], must(tensor.Data[float64](host, modelBack[k]))); err != nil { // bounded
					t.Fatal(err)
				}
			}
			check(fmt.Sprintf("results as inputs, round %d", round), back, modelBack)
			next := must(g.Replay(ctx, back...))
			back = nil
			for i := len(next) - 1; i >= 0 && len(back) < inputs; i-- {
				if slices.Equal(next[i].Shape(), []int{side, side}) {
					back = append(back, next[i])
				}
			}
		}
		one, modelOne := array(ctx, 3, side, side), array(host, 3, side, side)
		check("one array thrice", []*tensor.Array{one, one.T(), one}, []*tensor.Array{modelOne, modelOne.T(), modelOne})
	})
}

// contents are the elements of each array; integers beyond what floats hold are not
// compared.
func contents(ctx context.Context, arrays []*tensor.Array) (all [][]float64) {
	for _, a := range arrays {
		x := must(tensor.Data[float64](ctx, a))
		for i := range x {
			if x[i] > 1<<50 || x[i] < -1<<50 || x[i] != x[i] {
				x[i] = 0
			}
		}
		all = append(all, x)
	}
	return all
}

// manyProducts is a program of many small products of two shapes, in levels.
func manyProducts(ctx context.Context, in []*flow.Value) (out []*flow.Value, err error) {
	for i := range 8 {
		x := flow.MatMul(ctx, in[i%2], in[(i+1)%2])
		y := flow.MatMul(ctx, flow.Slice(ctx, in[0], tensor.At(0), tensor.At(0)), x)
		_ = y // of another shape, or refused: nobody asks
		out = append(out, flow.Add(ctx, x, flow.MatMul(ctx, x, in[0])))
	}
	return out, nil
}

func TestAReplayIsOneLaunch(t *testing.T) {
	onGPU(t)
	if cudatest.Simulator() == "" {
		t.Skip("the driver is no simulator")
	}
	ctx := start(t, runtime.Options{})
	x, y := array(ctx, 1, 4, 4), array(ctx, 2, 4, 4)
	g := recorded(t, ctx, manyProducts, x, y)
	must(g.Replay(ctx))
	calls := []string{"cuGraphLaunch", "cuLaunchKernel", "cuMemcpyAsync", "cublasDgemmBatched_64", "cublasDgemm_v2_64", "cuGraphInstantiateWithFlags", "cuMemAlloc_v2", "cuStreamBeginCapture_v2"}
	count := func(do func()) map[string]int {
		before := map[string]int{}
		for _, c := range calls {
			before[c] = cudatest.Count(c)
		}
		do()
		made := map[string]int{}
		for _, c := range calls {
			if n := cudatest.Count(c) - before[c]; n > 0 {
				made[c] = n
			}
		}
		return made
	}
	if got := count(func() {
		for range 10 {
			must(g.Replay(ctx))
		}
	}); len(got) != 1 || got["cuGraphLaunch"] != 10 {
		t.Errorf("10 replays called %v; want 10 of cuGraphLaunch", got)
	}
	sets := [][]*tensor.Array{{x, y}, {y, x}, {x, x}, {y, y}, {x.T(), y}}
	instantiated := func(k int) int {
		return count(func() { must(g.Replay(ctx, sets[k]...)) })["cuGraphInstantiateWithFlags"]
	}
	for k, want := range []int{0, 1, 1, 1, 1} {
		if got := instantiated(k); got != want {
			t.Errorf("inputs %d had %d graphs made; want %d", k, got, want)
		}
	}
	for _, c := range []struct{ k, want int }{{4, 0}, {3, 0}, {2, 0}, {1, 0}, {0, 1}, {4, 1}} { // 4 are kept
		if got := instantiated(c.k); got != c.want {
			t.Errorf("inputs %d once more had %d graphs made; want %d", c.k, got, c.want)
		}
	}
	small := recorded(t, ctx, polynomial, x, y)
	for range 1000 { // then there are events for all that may be under way
		must(small.Replay(ctx))
	}
	if n := testing.AllocsPerRun(200, func() { must(small.Replay(ctx)) }); n > 1 {
		t.Errorf("a replay allocates %v times; want at most 1, for its answer", n)
	}
}

// gate is an n×n array of zeros that whoever reads it has to wait for until release.
func gate(t *testing.T, ctx context.Context, n int) (zero *tensor.Array, release func()) {
	t.Helper()
	zero = must(tensor.Zeros(ctx, tensor.Float64, n, n))
	must(tensor.Data[float64](ctx, zero))
	s := must(must(runtime.Here(ctx)).Streams().Acquire(ctx))
	acc := buffer.Begin(s)
	acc.Write(zero.Buffer())
	release = must(cudatest.Stall(must(s.Submit())))
	if err := errors.Join(acc.End(), s.Release()); err != nil {
		t.Fatal(err)
	}
	return zero, release
}

// TestAGraphsMemoryIsThatOfNobodyElse: memory that a recording took comes after whoever
// used it before, though the recording failed and a later one uses it.
func TestAGraphsMemoryIsThatOfNobodyElse(t *testing.T) {
	onGPU(t)
	ctx := start(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 16, MemoryLimit: 64 << 20}})
	const n = 256
	x, y, x0, y0 := array(ctx, 1, n, n), array(ctx, 2, n, n), numbers(1, n*n), numbers(2, n*n)
	var fails error
	steps := 1
	g := recorded(t, ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		result := flow.Scale(ctx, 2, in[0])
		for v := result; steps > 1; steps-- {
			v = flow.Scale(ctx, 2, v)
		}
		return []*flow.Value{result}, fails
	}, x)
	must(g.Replay(ctx))
	zero, release := gate(t, ctx, n)
	sum := must(tensor.Add(ctx, x, zero))
	var former []*tensor.Array // all memory that there is, of which a part is freed
	for {
		a, err := tensor.Full(ctx, 1, tensor.Float64, n, n)
		if errors.Is(err, weir.ErrOutOfMemory) {
			break
		}
		former = append(former, must(a, err))
	}
	former = former[:4]
	for _, a := range former {
		if err := errors.Join(tensor.AddInto(ctx, 1, a, 1, sum), a.Free()); err != nil {
			t.Fatal(err)
		}
	}
	steps, fails = 4, errEnd
	if _, err := g.Replay(ctx, y); !errors.Is(err, errEnd) {
		t.Errorf("a replay whose program fails answers %v", err)
	}
	steps, fails = 4, nil
	outs := must(g.Replay(ctx, y))
	release()
	for i, got := range must(tensor.Data[float64](ctx, sum)) {
		if want := x0[i] + float64(len(former)); got != want {
			t.Fatalf("element %d of what the memory was read for is %v; want %v", i, got, want)
		}
	}
	for i, got := range must(tensor.Data[float64](ctx, outs[0])) {
		if want := 2 * y0[i]; got != want {
			t.Fatalf("element %d is %v; want %v", i, got, want)
		}
	}
}

// TestAResultIsReadBeforeItIsWrittenAnew: by whichever recording, be it as a result or in
// between.
func TestAResultIsReadBeforeItIsWrittenAnew(t *testing.T) {
	onGPU(t)
	ctx := start(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 3}})
	const n = 16
	x, y := array(ctx, 1, n, n), array(ctx, 2, n, n)
	steps := 1
	g := recorded(t, ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		v := in[0]
		for range steps {
			v = flow.Scale(ctx, 2, v)
		}
		return []*flow.Value{v}, nil
	}, x)
	steps = 3
	must(g.Replay(ctx, y)) // it is recorded while nobody uses anything
	outs := must(g.Replay(ctx, x))
	must(tensor.Data[float64](ctx, outs[0]))
	zero, release := gate(t, ctx, n)
	read := must(tensor.Add(ctx, outs[0], zero))
	must(g.Replay(ctx, y))
	release()
	for i, got := range must(tensor.Data[float64](ctx, read)) {
		if want := 2 * numbers(1, n*n)[i]; got != want {
			t.Fatalf("element %d of what was read is %v; want %v", i, got, want)
		}
	}
}

// TestEveryFaultOfAGraph makes each driver call of recording and replaying fail in
// turn, and the device die at each: nothing hangs or is left, and no value is wrong.
func TestEveryFaultOfAGraph(t *testing.T) {
	onGPU(t)
	if cudatest.Simulator() == "" {
		t.Skip("the driver is no simulator")
	}
	for _, death := range []bool{false, true} {
		t.Run(fmt.Sprintf("death %t", death), func(t *testing.T) {
			for n := 0; ; n++ {
				if !faultAt(t, n, death) {
					return
				}
			}
		})
	}
}

// faultAt has the n-th driver call fail, 0 none, and says whether there was one.
func faultAt(t *testing.T, n int, death bool) bool {
	plan := &fault.Plan{}
	rt, err := runtime.StartFamilies([]driver.Family{fault.New(mortal{cuda.New()}, plan)}, runtime.Options{Devices: []string{"cuda:0"}, ResourceOptions: runtime.ResourceOptions{Streams: 2}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	x, y, z := array(ctx, 1, 3, 3), array(ctx, 2, 3, 3), array(ctx, 5, 3, 3)
	before := plan.Counts()[fault.Any]
	switch {
	case n == 0:
	case death:
		plan.KillNth(fault.Any, n, nil)
	default:
		plan.FailNth(fault.Any, n, nil)
	}
	g, failed := flow.Record(ctx, polynomial, x, y)
	replay := func(a, b int, in ...*tensor.Array) {
		outs, err := g.Replay(ctx, in...)
		if err == nil {
			var sum []float64
			if sum, err = tensor.Data[float64](ctx, outs[0]); err == nil {
				if want, _ := polynomialOf(3, numbers(a, 9), numbers(b, 9)); !slices.Equal(sum, want) {
					t.Errorf("call %d: a replay made %v; want %v", n, sum, want)
				}
			}
		}
		failed = errors.Join(failed, err)
	}
	if g != nil {
		replay(1, 2)
		replay(5, 2, z, y)
		replay(1, 2, x, y)
		failed = errors.Join(failed, g.Close())
	}
	calls := plan.Counts()[fault.Any] - before
	plan.Clear()
	closed := rt.Close()
	if n == 0 && (failed != nil || closed != nil || g.Reason() != nil) {
		t.Fatalf("without a fault: %v, %v", failed, closed)
	}
	if structured := (*weir.Error)(nil); failed != nil && !errors.As(failed, &structured) {
		t.Errorf("call %d: %v is no *weir.Error", n, failed)
	}
	if errors.Is(closed, weir.ErrLeak) {
		t.Errorf("call %d: %v", n, closed)
	}
	if left := cudatest.Left("context"); left != "" {
		t.Fatalf("call %d: %s", n, left)
	}
	if death {
		cudatest.Revive()
	}
	return n == 0 || calls >= n
}
