package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// costing is a loop whose operations take so long by its own account, and that
// notes its calls.
func costing(cost time.Duration, calls *[]int) Loop {
	return func(n int) (time.Duration, error) {
		*calls = append(*calls, n)
		return time.Duration(n) * cost, nil
	}
}

func TestCalibrationFindsARoundThatLastsLongEnough(t *testing.T) {
	for _, cost := range []time.Duration{1, 7, 3 * time.Microsecond, 2 * time.Millisecond, time.Second} {
		var calls []int
		n, err := calibrate(costing(cost, &calls), 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Duration(n) * cost; took < 10*time.Millisecond || n > 1 && took > 13*time.Millisecond {
			t.Errorf("an operation of %v: a round of %d lasts %v; expected 10 to 13 ms, or one operation", cost, n, took)
		}
		if len(calls) > 6 {
			t.Errorf("an operation of %v: %d attempts; expected few", cost, len(calls))
		}
	}
}

func TestCalibrationEndsForAnOperationThatTakesNoTime(t *testing.T) {
	n, err := calibrate(func(int) (time.Duration, error) { return 0, nil }, time.Millisecond)
	if err != nil || n != maxOperations {
		t.Errorf("got %d, %v; expected %d", n, err, maxOperations)
	}
}

func TestValueAndFloorAreTimedInTurns(t *testing.T) {
	var order []string
	note := func(who string, cost time.Duration) Loop {
		return func(n int) (time.Duration, error) {
			order = append(order, who)
			return time.Duration(n) * cost, nil
		}
	}
	trial := Trial{Value: note("value", 3000), Floor: note("floor", 1000), Fixed: 10}
	ticks := 0
	values, floors, err := trial.time(context.Background(), effort{least: 3, most: 3}, Microseconds, func(float64) { ticks++ })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"value", "floor", "value", "floor", "value", "floor"}; !slices.Equal(order, want) {
		t.Errorf("ran %v; expected %v", order, want)
	}
	if !slices.Equal(values, []float64{3, 3, 3}) || !slices.Equal(floors, []float64{1, 1, 1}) || ticks != 3 {
		t.Errorf("samples %v and %v, %d ticks; expected 3 and 1 us three times", values, floors, ticks)
	}
}

func TestMeasuringEndsBetweenRoundsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	rounds := 0
	trial := Trial{Fixed: 1, Value: each(func() error { return nil }), Floor: each(func() error { return nil })}
	_, _, err := trial.time(ctx, effort{least: 100, most: 100}, Nanoseconds, func(float64) {
		if rounds++; rounds == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || rounds != 2 {
		t.Errorf("%d rounds, %v; expected 2 and a cancellation", rounds, err)
	}
}

func TestRoundsEndWhenThereAreEnoughOrTheBudgetIsSpent(t *testing.T) {
	for _, c := range []struct {
		cost time.Duration // of value and of floor
		want int
	}{
		{time.Microsecond, 20}, // the most
		{time.Millisecond, 5},  // 10 ms of 2 ms each
		{time.Second, 3},       // the least
	} {
		var calls []int
		trial := Trial{Value: costing(c.cost, &calls), Floor: costing(c.cost, &calls), Fixed: 1}
		last := 0.0
		values, _, err := trial.time(context.Background(), effort{least: 3, most: 20, budget: 10 * time.Millisecond}, Nanoseconds, func(part float64) {
			if part < last || part > 1 {
				t.Errorf("progress went from %v to %v", last, part)
			}
			last = part
		})
		if err != nil || len(values) != c.want || last != 1 {
			t.Errorf("rounds of twice %v: %d of them, progress to %v, %v; expected %d and 1", c.cost, len(values), last, err, c.want)
		}
	}
}

var escaped *[64]byte

func TestAllocationsAreCountedForEachOperation(t *testing.T) {
	for want := range int64(4) {
		got, err := allocations(each(func() error {
			for range want {
				escaped = new([64]byte)
			}
			return nil
		}).mallocs)
		if err != nil || *got != want {
			t.Errorf("%v allocations, %v; expected %d", got, err, want)
		}
	}
}

func TestATimeIsConvertedToTheUnit(t *testing.T) {
	for _, c := range []struct {
		u    Unit
		want float64
	}{{Nanoseconds, 2.5e6}, {Microseconds, 2500}, {Milliseconds, 2.5}} {
		if got := c.u.of(10*time.Millisecond, 4); got != c.want {
			t.Errorf("10 ms for 4 operations are %v %s; expected %v", got, c.u, c.want)
		}
		if got := c.u.seconds(c.want); got != 0.0025 {
			t.Errorf("%v %s are %v s; expected 0.0025", c.want, c.u, got)
		}
	}
}
