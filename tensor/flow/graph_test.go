package flow_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// array is a rows×cols array of small integers that differ with seed.
func array(ctx context.Context, seed, rows, cols int) *tensor.Array {
	return must(tensor.From(ctx, numbers(seed, rows*cols), rows, cols))
}

// polynomial is x·y + 2·y·x, and its trace, of two matrices of numbers.
func polynomial(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
	sum := flow.Add(ctx, flow.MatMul(ctx, in[0], in[1]), flow.Scale(ctx, 2, flow.MatMul(ctx, in[1], in[0])))
	return []*flow.Value{sum, flow.Einsum(ctx, "ii->", sum)}, nil
}

// polynomialOf is what polynomial computes, of n×n matrices.
func polynomialOf(n int, x, y []float64) (sum []float64, trace float64) {
	sum = make([]float64, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				sum[i*n+j] += x[i*n+k]*y[k*n+j] + 2*y[i*n+k]*x[k*n+j]
			}
		}
		trace += sum[i*n+i]
	}
	return sum, trace
}

// recorded records a program, and closes its graph at the end.
func recorded(t *testing.T, ctx context.Context, program flow.Program, inputs ...*tensor.Array) *flow.Graph {
	t.Helper()
	g, err := flow.Record(ctx, program, inputs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("closing the graph: %v", err)
		}
	})
	return g
}

// holds checks what replaying polynomial made of inputs with the given seeds.
func holdsPolynomial(t *testing.T, ctx context.Context, outs []*tensor.Array, n, x, y int) {
	t.Helper()
	sum, trace := polynomialOf(n, numbers(x, n*n), numbers(y, n*n))
	if got := must(tensor.Data[float64](ctx, outs[0])); !slices.Equal(got, sum) {
		t.Errorf("of inputs %d and %d the sum is %v; want %v", x, y, got, sum)
	}
	if got := must(tensor.Item[float64](ctx, outs[1])); got != trace {
		t.Errorf("of inputs %d and %d the trace is %v; want %v", x, y, got, trace)
	}
}

func TestReplayWritesTheSameArraysAnew(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x, y := array(ctx, 1, 3, 3), array(ctx, 2, 3, 3)
		g := recorded(t, ctx, polynomial, x, y)
		first := must(g.Replay(ctx))
		holdsPolynomial(t, ctx, first, 3, 1, 2)
		again := func(a, b int, inputs ...*tensor.Array) {
			t.Helper()
			outs := must(g.Replay(ctx, inputs...))
			for i := range outs {
				if outs[i].Buffer() != first[i].Buffer() {
					t.Errorf("output %d lies elsewhere than at first", i)
				}
			}
			holdsPolynomial(t, ctx, outs, 3, a, b)
			holdsPolynomial(t, ctx, first, 3, a, b)
		}
		if err := tensor.SetData(ctx, x, numbers(5, 9)); err != nil {
			t.Fatal(err)
		}
		again(5, 2)
		again(2, 5, y, x)
		again(2, 5)
		for seed := range 7 { // more than are kept, in views that lie otherwise
			a, b := array(ctx, seed, 3, 3), array(ctx, seed+1, 3, 3)
			again(seed, seed+1, must(tensor.Copy(ctx, a.T())).T(), b)
		}
		again(5, 2, x, y)
		if err := first[0].Free(); err != nil {
			t.Error(err)
		}
		again(5, 2)
	})
}

// TestAResultIsTheNextReplaysInput iterates a map of two steps, of which the first one's
// array is as large as the result.
func TestAResultIsTheNextReplaysInput(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		shear := []float64{1, 1, 0, 1}
		w := async.Of(must(tensor.From(ctx, shear, 2, 2)))
		x := array(ctx, 1, 2, 2)
		g := recorded(t, ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			return []*flow.Value{flow.MatMul(ctx, flow.MatMul(ctx, in[0], w), w)}, nil
		}, x)
		want := numbers(1, 4)
		for i := range 8 {
			outs, err := g.Replay(ctx, x)
			if err != nil {
				t.Fatalf("replay %d: %v", i, err)
			}
			before := want
			want = product(2, 2, 2, product(2, 2, 2, want, shear), shear)
			if got := must(tensor.Data[float64](ctx, outs[0])); !slices.Equal(got, want) {
				t.Errorf("replay %d made %v; want %v", i, got, want)
			}
			if g.Reason() == nil { // else the results lie in the same array, which has been read
				if got := must(tensor.Data[float64](ctx, x)); !slices.Equal(got, before) {
					t.Errorf("replay %d left its input %v; want %v", i, got, before)
				}
			}
			x = outs[0]
		}
	})
}

func TestAGraphIsInTheOrderOfOtherOperations(t *testing.T) {
	under(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 2}}, func(t *testing.T, ctx context.Context) {
		x := array(ctx, 1, 2, 2)
		g := recorded(t, ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			double := flow.Scale(ctx, 2, in[0])
			flow.AddInto(ctx, 1, double, -1, in[0]) // 2·x - x: the input stays, by way of being changed
			return []*flow.Value{flow.Copy(ctx, in[0]), double}, nil
		}, x)
		var sums []*tensor.Array
		for range 20 {
			outs := must(g.Replay(ctx))
			sums = append(sums, must(tensor.Add(ctx, outs[0], outs[1])))
			if err := tensor.AddInto(ctx, 1, outs[0], 1, x); err != nil { // x doubles
				t.Fatal(err)
			}
		}
		for i, s := range sums {
			want := numbers(1, 4)
			for k := range want {
				want[k] *= float64(3 * (int(1) << i))
			}
			if got := must(tensor.Data[float64](ctx, s)); !slices.Equal(got, want) {
				t.Fatalf("replay %d made %v; want %v", i, got, want)
			}
		}
	})
}

func TestRecordingRefusesByName(t *testing.T) {
	ctx := start(t, runtime.Options{})
	pending := async.New[*tensor.Array]("pending")
	outside := array(ctx, 3, 2, 2)
	id := func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) { return in[0], nil }
	double := recorded(t, ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		return []*flow.Value{flow.Scale(ctx, 2, in[0])}, nil
	}, outside)
	for name, c := range map[string]struct {
		program flow.Program
		reason  string
		fails   error // what a replay answers, which runs the program
	}{
		"svd": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			_, s, _ := flow.SVD(ctx, in[0])
			return []*flow.Value{s}, nil
		}, "flow.SVD: it waits for the device: not recordable", nil},
		"svd unused": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			flow.SVD(ctx, in[0])
			return in, nil
		}, "flow.SVD: it waits for the device: not recordable", nil},
		"replay": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			outs, err := double.Replay(ctx)
			if err != nil {
				return nil, err
			}
			return []*flow.Value{flow.Add(ctx, async.Of(outs[0]), in[0])}, nil
		}, "flow.Replay: it launches a graph, which none can have in it: not recordable", nil},
		"apply": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			return []*flow.Value{flow.Apply(ctx, "mine", id, in[0])}, nil
		}, `flow.Apply "mine": it is not known to be recordable: not recordable`, nil},
		"get": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			x := flow.Add(ctx, in[0], in[0])
			return []*flow.Value{x}, x.Wait(context.Background())
		}, `async.Get: value "flow.Add" is recorded and not computed; a program that is recorded cannot wait for it: not recordable`, nil},
		"get whose error is dropped": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			x := flow.MatMul(ctx, in[0], in[0])
			_, _ = flow.T(ctx, x).Get(ctx)
			return []*flow.Value{x}, nil
		}, `async.Get: value "flow.T" is recorded and not computed; a program that is recorded cannot wait for it: not recordable`, nil},
		"reader": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			r := flow.Add(ctx, in[0], in[0]).Read()
			defer r.Release()
			x, err := r.Await(ctx)
			return []*flow.Value{async.Of(x)}, err
		}, `reader.Await: value "flow.Add" is recorded and not computed; a program that is recorded cannot wait for it: not recordable`, nil},
		"writer": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			x := flow.Add(ctx, in[0], in[0])
			a, err := x.Take(ctx)
			return []*flow.Value{async.Of(a)}, err
		}, `writer.Await: value "flow.Add" is recorded and not computed; a program that is recorded cannot wait for it: not recordable`, nil},
		"task": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			v := async.New[*tensor.Array]("made by a task")
			w := v.Write()
			async.Go(ctx, "maker", func(ctx context.Context) error { return w.Set(outside) }, w)
			return []*flow.Value{v}, nil
		}, `async.Go: task "maker" cannot be started by a program that is recorded: not recordable`, nil},
		"pending": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			return []*flow.Value{flow.Add(ctx, in[0], pending)}, nil
		}, `flow.Add: it waits for value "pending", to be written (write 0): not recordable`, nil},
		"pending result": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			return []*flow.Value{pending}, nil
		}, `flow.Record: value "pending", which the program answers, is not written yet: not recordable`, nil},
		"from": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			a, err := tensor.From(ctx, numbers(1, 4), 2, 2)
			return []*flow.Value{flow.Add(ctx, async.Of(a), in[0])}, err
		}, "tensor.From: it copies from host memory, which is not there when a graph is launched: not recordable", nil},
		"data": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			a, err := in[0].Get(ctx)
			if err == nil {
				_, err = tensor.Data[float64](ctx, a)
			}
			return in, err
		}, "tensor.Data: it copies to host memory and waits for the device: not recordable", nil},
		"set data": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			return in, tensor.SetData(ctx, outside, numbers(3, 4))
		}, "tensor.SetData: it copies from host memory, which is not there when a graph is launched: not recordable", nil},
		"direct svd": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			_, err := tensor.SingularValues(ctx, outside)
			return in, err
		}, "tensor.SingularValues: it waits for the device: not recordable", nil},
		"to": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			return []*flow.Value{flow.To(ctx, in[0], device(1))}, nil
		}, fmt.Sprintf("tensor.To: it copies from %v to %v; a graph is of one device: not recordable", device(0), device(1)), nil},
		"free": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			x := flow.Copy(ctx, in[0])
			flow.Free(ctx, in[0])
			return []*flow.Value{x}, nil
		}, "flow.Free: its array was not made in the program, and is gone after one replay: not recordable", nil},
		"elsewhere": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			there := runtime.On(ctx, device(1))
			x, err := tensor.Zeros(there, tensor.Float64, 2, 2)
			return []*flow.Value{async.Of(x)}, err
		}, fmt.Sprintf("tensor.Zeros: its result is on %v; a graph of %v has none of another device: not recordable", device(1), device(0)), nil},
		"elsewhere, made before": {func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			x, err := tensor.Zeros(runtime.On(context.Background(), device(1)), tensor.Float64, 2, 2)
			return []*flow.Value{flow.Scale(ctx, 2, async.Of(x))}, err
		}, fmt.Sprintf("tensor.Scale: its result is on %v; a graph of %v has none of another device: not recordable", device(1), device(0)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "pending") { // what it waits for comes before the replay
				pending = async.New[*tensor.Array]("pending")
				w := pending.Write()
				defer func() { _ = w.Set(outside) }()
			}
			g := recorded(t, ctx, c.program, array(ctx, 1, 2, 2))
			why := g.Reason()
			if !errors.Is(why, weir.ErrNotRecordable) {
				t.Fatalf("the reason is %v; want %s", why, c.reason)
			}
			if got := siteless(why.Error()); got != c.reason {
				t.Errorf("the reason is\n%s; want\n%s", got, c.reason)
			}
			if strings.HasPrefix(name, "pending") {
				return
			}
			for range 2 {
				if name == "free" {
					break
				}
				if outs, err := g.Replay(ctx); err != nil || len(outs) != 1 {
					t.Errorf("a replay answers %v, %v", outs, err)
				}
			}
		})
	}
}

// siteless is a message with SITE in the place of what depends on where files lie.
func siteless(text string) string {
	return regexp.MustCompile(`\(?[^ (]*graph_test\.go:\d+( \([^)]*\))?\)?`).ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "(") {
			return "(SITE)"
		}
		return "SITE"
	})
}

func TestWhatIsWrongWithInputsIsNamed(t *testing.T) {
	ctx := start(t, runtime.Options{})
	x, freed, there := array(ctx, 1, 2, 3), array(ctx, 1, 2, 3), array(runtime.On(ctx, device(1)), 1, 2, 3)
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	double := func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		return []*flow.Value{flow.Add(ctx, in[0], in[1])}, nil
	}
	wants := func(err error, is error, want string) {
		t.Helper()
		if !errors.Is(err, is) || siteless(err.Error()) != want {
			t.Errorf("answered\n%v; want\n%s", err, want)
		}
	}
	record := func(program flow.Program, in ...*tensor.Array) error {
		g, err := flow.Record(ctx, program, in...)
		if g != nil {
			t.Errorf("answered a graph and %v", err)
		}
		return err
	}
	here, other := device(0).Name(), device(1).Name()
	wants(record(nil, x), weir.ErrArgument, "flow.Record: the program is nil; expected a function")
	wants(record(double, x, nil), weir.ErrArgument, "flow.Record: input 1 is nil; expected an array that a constructor or an operation made")
	wants(record(double, &tensor.Array{}, x), weir.ErrArgument, "flow.Record: input 0 is the zero Array; expected an array that a constructor or an operation made")
	wants(record(double, x, freed), weir.ErrClosed, "flow.Record on "+here+": input 1 was freed; expected a live array")
	wants(record(double, x, there), weir.ErrArgument, "flow.Record: input 1 is on "+other+"; expected "+here+", where the graph is")
	wants(record(func(context.Context, []*flow.Value) ([]*flow.Value, error) { return []*flow.Value{nil}, nil }), weir.ErrArgument,
		"flow.Record: value 0 of the program is nil; expected a value")
	wants(record(func(context.Context, []*flow.Value) ([]*flow.Value, error) { return nil, errEnd }), errEnd, errEnd.Error())
	wants(record(func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		return []*flow.Value{flow.MatMul(ctx, in[0], in[1])}, nil
	}, x, x), weir.ErrPoisoned, poisonText(func() *flow.Value { return flow.MatMul(ctx, async.Of(x), async.Of(x)) }))

	g := recorded(t, ctx, double, x, x)
	replay := func(in ...*tensor.Array) error {
		outs, err := g.Replay(ctx, in...)
		if outs != nil {
			t.Errorf("answered arrays and %v", err)
		}
		return err
	}
	wants(replay(x), weir.ErrArgument, "flow.Replay: 1 inputs; expected 2, as were recorded")
	wants(replay(x, nil), weir.ErrArgument, "flow.Replay: input 1 is nil; expected an array that a constructor or an operation made")
	wants(replay(x, freed), weir.ErrClosed, "flow.Replay on "+here+": input 1 was freed; expected a live array")
	wants(replay(there, x), weir.ErrArgument, "flow.Replay: input 0 is on "+other+"; expected "+here+", where the graph is")
	wants(replay(x, x.T()), weir.ErrArgument, "flow.Replay: input 1 is float64 3×2; expected float64 2×3, as was recorded")
	wants(replay(must(tensor.AsType(ctx, x, tensor.Float32)), x), weir.ErrArgument,
		"flow.Replay: input 0 is float32 2×3; expected float64 2×3, as was recorded")
	if _, err := g.Replay(ctx, x, x); err != nil {
		t.Errorf("after what was refused: %v", err)
	}
	y := array(ctx, 1, 2, 3)
	if _, err := g.Replay(ctx, x, y); err != nil {
		t.Error(err)
	}
	if err := y.Free(); err != nil {
		t.Error(err)
	}
	wants(replay(), weir.ErrClosed, "flow.Replay on "+here+": input 1 was freed; expected a live array")
	wants(replay(x, y), weir.ErrClosed, "flow.Replay on "+here+": input 1 was freed; expected a live array")
	if err := errors.Join(g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
	wants(replay(), weir.ErrClosed, "flow.Replay on "+here+": the graph was closed")
}

var errEnd = errors.New("the program's own failure")

// poisonText is what Get answers of the value that ask asks for.
func poisonText(ask func() *flow.Value) string {
	_, err := ask().Get(context.Background())
	return siteless(err.Error())
}

func TestReplaysOfSeveralGoroutinesAreOneAfterTheOther(t *testing.T) {
	ctx := start(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 3}})
	const n = 16
	fill := func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		return []*flow.Value{flow.Add(ctx, flow.MatMul(ctx, in[0], in[1]), in[0]), flow.Copy(ctx, in[0])}, nil
	}
	one := must(tensor.Full(ctx, 1, tensor.Float64, n, n))
	g := recorded(t, ctx, fill, one, one)
	var group sync.WaitGroup
	for k := range 6 {
		group.Go(func() {
			mine := must(tensor.Full(ctx, complex(float64(k), 0), tensor.Float64, n, n))
			for range 10 {
				outs, err := g.Replay(ctx, mine, one)
				if errors.Is(err, weir.ErrBusy) { // another one reads an output at this moment
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				got, err := tensor.Data[float64](ctx, outs[0])
				if errors.Is(err, weir.ErrBusy) { // another one's replay opens it at this moment
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if slices.Min(got) != slices.Max(got) || int(got[0])%(n+1) != 0 || got[0] >= 6*(n+1) {
					t.Errorf("an output has %v to %v; want what one replay made", slices.Min(got), slices.Max(got))
				}
			}
		})
	}
	group.Wait()
}

func TestAReplayGivesUpItsTurn(t *testing.T) {
	ctx := start(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}})
	x := array(ctx, 1, 2, 2)
	g := recorded(t, ctx, polynomial, x, x)
	s := must(must(runtime.Here(ctx)).Streams().Acquire(ctx)) // the first waits for it, the second for the first
	waits := make(chan error)
	first, cancelFirst := context.WithCancelCause(ctx)
	second, cancelSecond := context.WithCancelCause(ctx)
	go func() { _, err := g.Replay(first); waits <- err }()
	for { // until the first waits
		if _, _, _, waiting := must(runtime.Here(ctx)).Streams().Counts(); waiting == 1 {
			break
		}
	}
	go func() { _, err := g.Replay(second); waits <- err }()
	cancelSecond(errEnd)
	err := <-waits
	want := "flow.Replay: gave up waiting for an earlier replay of the graph to be submitted: " + errEnd.Error()
	if !errors.Is(err, weir.ErrCancelled) || err.Error() != want {
		t.Errorf("the second answered %v; want %s", err, want)
	}
	cancelFirst(errEnd)
	if err := s.Release(); err != nil { // a program that is run waits until it is launched
		t.Fatal(err)
	}
	if err := <-waits; err != nil && (!errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errEnd)) {
		t.Errorf("the first answered %v", err)
	}
	holdsPolynomial(t, ctx, must(g.Replay(ctx)), 2, 1, 1)
}

func TestArraysOfAnEarlierRuntimeAreNoInputs(t *testing.T) {
	ctx := context.Background()
	rt, err := runtime.StartFamilies(where.open(false), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old := array(ctx, 1, 2, 2)
	if err := rt.Close(); !errors.Is(err, weir.ErrLeak) { // that array
		t.Fatal(err)
	}
	ctx = start(t, runtime.Options{})
	x := array(ctx, 1, 2, 2)
	want := "input 1 belongs to a runtime that was closed; expected an array of the one that runs"
	if _, err := flow.Record(ctx, polynomial, x, old); !errors.Is(err, weir.ErrClosed) || err.Error() != "flow.Record: "+want {
		t.Errorf("Record answered %v; want %s", err, want)
	}
	g := recorded(t, ctx, polynomial, x, x)
	if _, err := g.Replay(ctx, x, old); !errors.Is(err, weir.ErrClosed) || err.Error() != "flow.Replay: "+want {
		t.Errorf("Replay answered %v; want %s", err, want)
	}
}

// TestAProgramDoesNotReplayItsOwnGraph: of one that is run, which would wait for itself.
func TestAProgramDoesNotReplayItsOwnGraph(t *testing.T) {
	ctx := start(t, runtime.Options{})
	x := array(ctx, 1, 2, 2)
	var g *flow.Graph
	g = recorded(t, ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		s := flow.Apply(ctx, "mine", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) { return in[0], nil }, in[0])
		if g == nil {
			return []*flow.Value{s}, nil
		}
		_, err := g.Replay(ctx)
		return []*flow.Value{s}, err
	}, x)
	_, err := g.Replay(ctx)
	want := "flow.Replay on " + device(0).Name() + ": the graph's own program asks for it, and it would wait for itself; expected another graph, or none"
	if !errors.Is(err, weir.ErrDeadlock) || err.Error() != want {
		t.Errorf("answered\n%v; want\n%s", err, want)
	}
}

func TestAGraphThatWasNotClosedIsNamed(t *testing.T) {
	rt, err := runtime.StartFamilies(where.open(false), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	x := array(ctx, 1, 2, 2)
	site := here()
	g := must(flow.Record(ctx, polynomial, x, x))
	must(g.Replay(ctx))
	err = rt.Close()
	if want := "graph recorded at "; !errors.Is(err, weir.ErrLeak) || !strings.Contains(err.Error(), want) {
		t.Errorf("Close answered %v; want one that names %q", err, want)
	}
	if file, _, _ := strings.Cut(site[strings.LastIndex(site, "/")+1:], ":"); !strings.Contains(err.Error(), file) {
		t.Errorf("Close answered %v; want one that says where it was recorded, in %s", err, file)
	}
	if _, err := g.Replay(ctx); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("a replay after the runtime's end answered %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestScopesDoNotFreeWhatAGraphHas(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x := array(ctx, 1, 2, 2)
		scope, free := tensor.Scope(ctx)
		g := recorded(t, scope, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
			ctx, free := tensor.Scope(ctx)
			square := flow.MatMul(ctx, in[0], in[0])
			sum := flow.Add(ctx, square, in[0])
			flow.Free(ctx, square)
			if g := tensor.BeforeFree(ctx, nothingToFlush{}); !g {
				return nil, errEnd
			}
			_ = free // what is made after it is what it would free
			return []*flow.Value{sum, in[0], flow.T(ctx, in[0])}, nil
		}, x)
		first := must(g.Replay(scope))
		if err := free(); err != nil {
			t.Fatal(err)
		}
		outs := must(g.Replay(ctx))
		for _, all := range [][]*tensor.Array{first, outs} {
			got := must(tensor.Data[float64](ctx, all[0]))
			in := numbers(1, 4)
			want := []float64{in[0]*in[0] + in[1]*in[2] + in[0], in[0]*in[1] + in[1]*in[3] + in[1],
				in[2]*in[0] + in[3]*in[2] + in[2], in[2]*in[1] + in[3]*in[3] + in[3]}
			if !slices.Equal(got, want) {
				t.Errorf("got %v; want %v", got, want)
			}
			if all[1].Buffer() != x.Buffer() || all[2].Buffer() != x.Buffer() {
				t.Error("a view of an input is none")
			}
		}
	})
}

type nothingToFlush struct{}

func (nothingToFlush) Flush(context.Context) uint64 { return 0 }

// TestReplayingHoldsNoMoreThanTheFirst counts what buffers use.
func TestReplayingHoldsNoMoreThanTheFirst(t *testing.T) {
	ctx := start(t, runtime.Options{})
	x, y := array(ctx, 1, 8, 8), array(ctx, 2, 8, 8)
	g := recorded(t, ctx, polynomial, x, y)
	m := must(buffer.Of(must(runtime.Here(ctx))))
	must(g.Replay(ctx))
	must(g.Replay(ctx, y, x))
	before := m.Stats()
	for i := range 1000 {
		in := []*tensor.Array{x, y}
		must(g.Replay(ctx, in[i%2], in[(i+1)%2]))
	}
	if after := m.Stats(); after.Used > before.Used || after.Buffers > before.Buffers || g.Reason() == nil && after.Held > before.Held {
		t.Errorf("after 1000 replays there is %+v; before, %+v", after, before)
	}
}

// TestWhatAProgramFreesStaysForTheNextReplay: two products that are gathered, and are
// freed before the end of the program; closing the graph gives all back.
func TestWhatAProgramFreesStaysForTheNextReplay(t *testing.T) {
	ctx := start(t, runtime.Options{})
	x, y := array(ctx, 1, 4, 4), array(ctx, 2, 4, 4)
	m := must(buffer.Of(must(runtime.Here(ctx))))
	before := m.Stats().Buffers
	g, err := flow.Record(ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		a, b := flow.MatMul(ctx, in[0], in[1]), flow.MatMul(ctx, in[1], in[0])
		sum := flow.Add(ctx, a, b)
		flow.Free(ctx, a)
		flow.Free(ctx, b)
		return []*flow.Value{sum}, nil
	}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	want := product(4, 4, 4, numbers(1, 16), numbers(2, 16))
	for i, v := range product(4, 4, 4, numbers(2, 16), numbers(1, 16)) {
		want[i] += v
	}
	for range 3 {
		outs, err := g.Replay(ctx)
		if err != nil {
			t.Fatal(err)
		}
		junk := must(tensor.Full(ctx, 7, tensor.Float64, 4, 4)) // which has the memory of what was given back
		if got := must(tensor.Data[float64](ctx, outs[0])); !slices.Equal(got, want) {
			t.Errorf("got %v; want %v", got, want)
		}
		if err := junk.Free(); err != nil {
			t.Error(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if n := m.Stats().Buffers - before; n != 0 {
		t.Errorf("the closed graph left %d buffers", n)
	}
}

func TestReplaysInTasks(t *testing.T) {
	for seed := range uint64(5) {
		d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed})
		rt, err := runtime.StartFamilies([]driver.Family{host.New(host.Options{HandOver: true})}, runtime.Options{Scheduler: d, ResourceOptions: runtime.ResourceOptions{Streams: 1}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := scheduler.With(context.Background(), d)
		x := array(ctx, 1, 3, 3)
		g := must(flow.Record(ctx, polynomial, x, x))
		var tasks []*scheduler.Task
		for k := range 5 {
			tasks = append(tasks, async.Go(ctx, fmt.Sprint(k), func(ctx context.Context) error {
				outs, err := g.Replay(ctx)
				if err == nil {
					_, err = tensor.Data[float64](ctx, outs[0])
				}
				return err
			}))
		}
		for _, task := range tasks {
			if err := task.Wait(ctx); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		if err := errors.Join(g.Close(), rt.Close()); err != nil {
			t.Error(err)
		}
	}
}
