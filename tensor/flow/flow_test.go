package flow_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is where tests run: two devices, the first the default one.
type world struct {
	names [2]string
	// open makes their families; inline: what a host device can do where it is
	// submitted is done there.
	open func(inline bool) []driver.Family
}

// where is two host devices, unless a test of another build says otherwise.
var where = world{[2]string{"host:0", "host:1"}, func(inline bool) []driver.Family {
	return []driver.Family{host.New(host.Options{Devices: 2, HandOver: !inline})}
}}

// device is the n-th of the two, again and again.
func device(n int) runtime.Device { return must(runtime.Get(where.names[n%2])) }

// start installs a runtime, and checks at the end that closing it finds nothing.
func start(tb testing.TB, o runtime.Options) context.Context {
	tb.Helper()
	rt, err := runtime.StartFamilies(where.open(false), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := rt.Close(); err != nil {
			tb.Errorf("closing the runtime: %v", err)
		}
	})
	return context.Background()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// matrix is a rows×cols value of small integers that differ with seed.
func matrix(ctx context.Context, seed, rows, cols int) *flow.Value {
	return async.Of(must(tensor.From(ctx, numbers(seed, rows*cols), rows, cols)))
}

func numbers(seed, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64((seed*5+i*3)%7 - 3)
	}
	return x
}

// read is the elements of what v is to be.
func read(ctx context.Context, v *flow.Value) ([]float64, error) {
	a, err := v.Get(ctx)
	if err != nil {
		return nil, err
	}
	return tensor.Data[float64](ctx, a)
}

// wants checks the elements of what v is to be.
func wants(tb testing.TB, ctx context.Context, v *flow.Value, want ...float64) {
	tb.Helper()
	if got, err := read(ctx, v); err != nil || !slices.Equal(got, want) {
		tb.Errorf("%v is %v, %v; want %v", v, got, err, want)
	}
}

// here is "file.go:12" of its call.
func here() string {
	_, file, line, _ := goruntime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line)
}

// poisonOf is the poison of what v is to be.
func poisonOf(tb testing.TB, ctx context.Context, v *flow.Value) *async.Poison {
	tb.Helper()
	var p *async.Poison
	if _, err := v.Get(ctx); !errors.As(err, &p) {
		tb.Fatalf("Get of %v answered %v; want a poison", v, err)
	}
	return p
}

// under names the ways of running tasks that every test of ordering is to work
// under.
func under(t *testing.T, o runtime.Options, test func(t *testing.T, ctx context.Context)) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprintf("debug %d", seed), func(t *testing.T) {
			o := o
			d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed})
			o.Scheduler = d
			test(t, scheduler.With(start(t, o), d))
		})
	}
	t.Run("one lane", func(t *testing.T) {
		o := o
		o.Tasks.Lanes = 1
		test(t, start(t, o))
	})
	t.Run("two lanes", func(t *testing.T) {
		o := o
		o.Tasks.Lanes = 2
		test(t, start(t, o))
	})
}

// TestAnOperationAsksOfAFullLog: that launches it, so that it cannot wait for room.
func TestAnOperationAsksOfAFullLog(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 1}) // which says so if it did
	ctx := scheduler.With(start(t, runtime.Options{Scheduler: d}), d)
	x := matrix(ctx, 1, 2, 2)
	asks := flow.Apply(ctx, "asks", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		for range 3 {
			flow.T(ctx, async.Of(in[0]))
		}
		return in[0], nil
	}, x)
	for range async.MaxQueued - 1 {
		flow.T(ctx, x)
	}
	if _, err := asks.Get(ctx); err != nil {
		t.Error(err)
	}
}

func BenchmarkSubmit(b *testing.B) {
	ctx := start(b, runtime.Options{})
	one, err := tensor.Full(ctx, 1, tensor.Float32, 64, 64)
	if err != nil {
		b.Fatal(err)
	}
	x := async.Of(one)
	b.ReportAllocs()
	var last *flow.Value
	n := 0
	for range b.N {
		last = flow.MatMul(ctx, x, x)
		if n++; n == 1000 {
			b.StopTimer()
			n = 0
			if err := last.Wait(ctx); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	if err := last.Wait(ctx); err != nil {
		b.Fatal(err)
	}
}
