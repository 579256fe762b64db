package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	var chain, inPlace []float64
	for _, death := range []bool{false, true} {
		for n := 0; ; n++ {
			name := fmt.Sprintf("call %d, death %t", n, death)
			plan := &fault.Plan{}
			families := []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)}
			rt, err := runtime.StartFamilies(families, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 2}})
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
			gotChain, gotInPlace, err := tryProgram(context.Background())
			calls := plan.Counts()[fault.Any] - before
			plan.Clear()
			closed := rt.Close()
			if n == 0 {
				if err != nil || closed != nil {
					t.Fatalf("without a fault: %v, %v", err, closed)
				}
				chain, inPlace = gotChain, gotInPlace
				continue
			}
			if err == nil && (!slices.Equal(gotChain, chain) || !slices.Equal(gotInPlace, inPlace)) {
				t.Errorf("%s: read %v and %v; want %v and %v", name, gotChain, gotInPlace, chain, inPlace)
			}
			if structured := (*weir.Error)(nil); err != nil && !errors.As(err, &structured) {
				t.Errorf("%s: %v is no *weir.Error", name, err)
			}
			if errors.Is(closed, weir.ErrLeak) {
				t.Errorf("%s: %v", name, closed)
			}
			if death && !errors.Is(err, weir.ErrDeviceLost) && calls >= n {
				t.Errorf("%s: the device died and the program answered %v", name, err)
			}
			if calls < n { // no call was left to fail
				break
			}
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
