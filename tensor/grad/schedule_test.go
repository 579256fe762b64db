package grad_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
	"github.com/weirgo/weir/tensor/grad"
)

// panics is a failer for goroutines that are not the test's own.
type panics struct{}

func (panics) Helper()                   {}
func (panics) Fatal(x ...any)            { panic(fmt.Sprint(x...)) }
func (panics) Fatalf(f string, x ...any) { panic(fmt.Sprintf(f, x...)) }

// late is a value that a task writes.
func late(ctx context.Context, name string, x input) *flow.Value {
	v := async.New[*tensor.Array](name)
	w := v.Write()
	async.Go(ctx, "write "+name, func(ctx context.Context) error { return w.Set(x.array(ctx, panics{})) }, w)
	return v
}

// train takes steps of gradient descent in place on the two layers of a network
// whose inputs tasks write, and answers the bits of the layers and of a second
// derivative. If it is to be slow, every step waits for all before it.
func train(ctx context.Context, slow bool) []complex128 {
	rng := rand.New(rand.NewPCG(9, 9))
	draw := func(shape ...int) input { return random(rng, tensor.Complex128, shape...) }
	w1, w2 := late(ctx, "w1", draw(3, 2)), late(ctx, "w2", draw(3, 3))
	x, y := late(ctx, "x", draw(2, 4)), late(ctx, "y", draw(3, 4))
	var all []*flow.Value
	for range 3 {
		n1, n2 := grad.Leaf(w1), grad.Leaf(w2)
		// The second layer is used thrice, once as a view.
		h := grad.MatMul(ctx, grad.T(ctx, n2), grad.MatMul(ctx, n1, grad.Leaf(x)))
		r := grad.Add(ctx, grad.MatMul(ctx, n2, grad.MatMul(ctx, n2, h)), grad.Leaf(y))
		loss := square(ctx, r)
		g := grad.Gradients(ctx, loss, n1, n2)
		if slow {
			wait(ctx, g[0].Value(), g[1].Value())
		}
		second := grad.Gradients(ctx, square(ctx, g[0]), n2)[0]
		flow.AddInto(ctx, -0.01, g[0].Value(), 1, w1)
		flow.AddInto(ctx, -0.01, g[1].Value(), 1, w2)
		all = append(all, second.Value())
		if slow {
			wait(ctx, second.Value(), w1, w2)
		}
	}
	var bits []complex128
	for _, v := range append(all, w1, w2) {
		bits = append(bits, read(ctx, panics{}, v).data...)
	}
	return bits
}

func wait(ctx context.Context, all ...*flow.Value) {
	for _, v := range all {
		if err := v.Wait(ctx); err != nil {
			panic(err)
		}
	}
}

// reproducible: which products share a launch depends on when they were asked for, and
// a GPU's library may round them otherwise than one by itself.
var reproducible = runtime.ResourceOptions{Lowering: runtime.Lowering{Reproducible: true}}

// inOrder is what train answers if every step waits for the one before.
func inOrder(t *testing.T) []complex128 {
	t.Helper()
	var want []complex128
	t.Run("one lane", func(t *testing.T) {
		want = train(start(t, runtime.Options{Tasks: scheduler.Options{Lanes: 1}, ResourceOptions: reproducible}), true)
	})
	return want
}

func TestResultsAreTheSameUnderEverySchedule(t *testing.T) {
	want := inOrder(t)
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			ctx := start(t, runtime.Options{Scheduler: scheduler.NewDebug(scheduler.DebugOptions{Seed: seed}), ResourceOptions: reproducible})
			if got := train(ctx, false); !slices.Equal(got, want) {
				t.Errorf("got %v; want %v", got, want)
			}
		})
	}
}

func TestResultsAreTheSameFromRunToRun(t *testing.T) {
	want := inOrder(t)
	ctx := start(t, runtime.Options{ResourceOptions: reproducible})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 15 {
				run, free := tensor.Scope(ctx)
				if got := train(run, false); !slices.Equal(got, want) {
					t.Errorf("got %v; want %v", got, want)
				}
				if err := free(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestOneGraphIsDifferentiatedByManyGoroutines(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rng := rand.New(rand.NewPCG(4, 4))
	in := random(rng, tensor.Float64, 4, 4)
	x := leaves(ctx, t, []input{in})[0]
	y := grad.MatMul(ctx, grad.MatMul(ctx, x, x), grad.Add(ctx, x, grad.T(ctx, x)))
	loss := square(ctx, y)
	want := read(ctx, t, grad.Gradients(ctx, loss, x)[0].Value())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			g := grad.Gradients(ctx, loss, x)[0]
			if got := read(ctx, panics{}, g.Value()); !slices.Equal(got.data, want.data) {
				t.Errorf("got %v; want %v", got, want)
			}
		})
	}
	all.Wait()
}

func TestGradientsComeBackToTheDevice(t *testing.T) {
	ctx := start(t, runtime.Options{Host: runtime.HostOnly, HostDevices: 2})
	enrolled, err := runtime.Enrolled()
	if err != nil || len(enrolled) != 2 {
		t.Fatalf("devices %v, %v; want two", enrolled, err)
	}
	all := []runtime.Device{enrolled[0].Device(), enrolled[1].Device()}
	x := leaves(runtime.On(ctx, all[0]), t, []input{number(2)})[0]
	for _, on := range all { // whichever device's log has the operations
		ctx := runtime.On(ctx, on)
		there := grad.To(ctx, x, all[1])
		square := grad.MatMul(ctx, grad.Reshape(ctx, there, 1, 1), grad.Reshape(ctx, there, 1, 1))
		g := grad.Gradients(ctx, grad.Slice(ctx, square, tensor.At(0)), x, there)
		for i, g := range g {
			a, err := g.Value().Get(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if a.Device() != all[i] {
				t.Errorf("gradient %d is on %v; want %v", i, a.Device(), all[i])
			}
			near(t, "a gradient over two devices", read(ctx, t, g.Value()), number(4))
		}
	}
}
