package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

// einsumProgram contracts a chain whose steps pack, sum and multiply, beside a
// product in place, and answers what it read.
func einsumProgram(ctx context.Context) (chain, inPlace []float64, err error) {
	ctx, free := Scope(ctx)
	defer func() { err = errors.Join(err, free()) }()
	numbers := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(i%7 - 3)
		}
		return x
	}
	a, err := From(ctx, numbers(24), 2, 3, 4)
	if err != nil {
		return nil, nil, err
	}
	b, err := From(ctx, numbers(60), 5, 4, 3)
	if err != nil {
		return nil, nil, err
	}
	c, err := From(ctx, numbers(10), 2, 5)
	if err != nil {
		return nil, nil, err
	}
	out, err := Einsum(ctx, "ijk,lkj,ml,nn->mi", a, b, c, must(c.Slice(All(), Span(0, 2))))
	if err != nil {
		return nil, nil, err
	}
	if chain, err = Data[float64](ctx, out); err != nil {
		return nil, nil, err
	}
	square, err := Zeros(ctx, Float64, 3, 3)
	if err != nil {
		return nil, nil, err
	}
	if err := CopyInto(ctx, square, must(From(ctx, numbers(9), 3, 3)).T()); err != nil {
		return nil, nil, err
	}
	if err := GemmInto(ctx, 1, square, square.T(), 1, square); err != nil {
		return nil, nil, err
	}
	inPlace, err = Data[float64](ctx, square)
	return chain, inPlace, err
}

// TestEveryFaultOfTheEinsumPathEndsInAnErrorOrTheRightValue makes each driver
// call of the path fail in turn, and each kill the device: nothing hangs,
// nothing is left, no value is wrong.
func TestEveryFaultOfTheEinsumPathEndsInAnErrorOrTheRightValue(t *testing.T) {
	for _, death := range []bool{false, true} {
		everyFault(t, death, einsumValues, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func(int) {})
	}
}

// einsumValues is all that the program read.
func einsumValues(ctx context.Context) ([]float64, error) {
	chain, inPlace, err := tryProgram(ctx)
	return append(chain, inPlace...), err
}

// everyFault runs a program, which answers what it read, on the first device of a
// new family for each call that it makes of the driver, which fails or kills the
// device. after is called when everything is closed.
func everyFault(t *testing.T, death bool, program func(context.Context) ([]float64, error), open func() driver.Family, after func(n int)) {
	t.Helper()
	var want []float64
	noticed := 0
	for n := 0; ; n++ {
		name := fmt.Sprintf("call %d, death %t", n, death)
		plan := &fault.Plan{}
		family := fault.New(open(), plan)
		rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{
			Devices: []string{family.Name()}, ResourceOptions: runtime.ResourceOptions{Streams: 2}})
		if err != nil {
			t.Fatal(err)
		}
		// A call of a goroutine of the device's own may be the one that kills it, and
		// that may come when the program is through; it has to notice what happened
		// before it read its results.
		device, lost := must(runtime.Default()), atomic.Bool{}
		plan.Delay(fault.StreamCopyOut, func() {
			if device.Err() != nil {
				lost.Store(true)
			}
		})
		before := plan.Counts()[fault.Any]
		switch {
		case n == 0:
		case death:
			plan.KillNth(fault.Any, n, nil)
		default:
			plan.FailNth(fault.Any, n, nil)
		}
		got, err := program(context.Background())
		calls := plan.Counts()[fault.Any] - before
		plan.Clear()
		closed := rt.Close()
		after(n)
		if n == 0 {
			if err != nil || closed != nil {
				t.Fatalf("without a fault: %v, %v", err, closed)
			}
			want = got
			continue
		}
		if err == nil && !slices.Equal(got, want) {
			t.Errorf("%s: read %v; want %v", name, got, want)
		}
		if structured := (*weir.Error)(nil); err != nil && !errors.As(err, &structured) {
			t.Errorf("%s: %v is no *weir.Error", name, err)
		}
		if errors.Is(closed, weir.ErrLeak) {
			t.Errorf("%s: %v", name, closed)
		}
		if errors.Is(err, weir.ErrDeviceLost) {
			noticed++
		} else if death && lost.Load() {
			t.Errorf("%s: the device died and the program answered %v", name, err)
		}
		if calls < n { // no call was left to fail
			if death && noticed < n/2 {
				t.Errorf("%d of %d deaths were noticed", noticed, n)
			}
			return
		}
	}
}

// tryProgram runs the program, whose must calls panic with the error.
func tryProgram(ctx context.Context) (chain, inPlace []float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	return einsumProgram(ctx)
}

// TestSetDataThatCannotCopyItsDataLeavesTheArrayAsItIs: what it copies to first has
// undefined contents then.
func TestSetDataThatCannotCopyItsDataLeavesTheArrayAsItIs(t *testing.T) {
	plan := &fault.Plan{}
	ctx := startOn(t, []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)})
	a := must(From(ctx, []float64{1, 2, 3, 4}, 2, 2))
	plan.FailNth(fault.StreamCopyIn, 1, nil)
	if err := SetData(ctx, a.T(), []float64{5, 6, 7, 8}); !errors.Is(err, fault.ErrInjected) {
		t.Errorf("SetData answers %v; expected the injected failure", err)
	}
	if got := must(Data[float64](ctx, a)); !slices.Equal(got, []float64{1, 2, 3, 4}) {
		t.Errorf("the array is %v; expected it as it was", got)
	}
}
