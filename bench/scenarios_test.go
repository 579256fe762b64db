package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/runtime"
)

func TestEveryScenarioRunsAndItsChecksHold(t *testing.T) {
	start(t)
	everyScenarioRuns(t)
}

// everyScenarioRuns runs all scenarios on the default device. Times are not
// asserted, since the machine may be busy; what they mean is: checks hold.
func everyScenarioRuns(t *testing.T) {
	t.Helper()
	device, err := runtime.Default()
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	err = Run(context.Background(), Options{Quick: true, Scenarios: Scenarios(), Report: func(r Result) error {
		if r.Skipped != "" {
			return nil
		}
		measured[r.Scenario]++
		if r.Err != nil {
			t.Errorf("%s: %s: %v", r.Scenario, r.Case, r.Err)
		}
		if r.Value <= 0 || r.Floor <= 0 || r.Ratio != r.Value/r.Floor || r.Rounds == 0 {
			t.Errorf("%s: %s: %+v; expected times", r.Scenario, r.Case, r)
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
	for _, s := range Scenarios() {
		if fits := s.On.fits(device) == ""; fits != (measured[s.Name] > 0) || s.About == "" {
			t.Errorf("%s: %d cases on %s, about %q; expected some of both where it fits", s.Name, measured[s.Name], device, s.About)
		}
	}
}

func TestAWrongProductFailsTheCheck(t *testing.T) {
	r := start(t)
	x, err := newMatrices[float32](runtime.On(context.Background(), r.Device()), 16)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}()
	direct := each(x.direct(hostblas.Default()))
	if err := x.agree(direct); err != nil {
		t.Errorf("the right product: %v", err)
	}
	for _, place := range []int{0, 37, 255} {
		err := x.agree(func(n int) (time.Duration, error) {
			d, err := direct(n)
			x.slice(2)[place] += 0.001
			return d, err
		})
		if !errors.Is(err, ErrCheck) {
			t.Errorf("with element %d changed: %v; expected a failed check", place, err)
		}
	}
}

// Each floor computes what the definition says.
func TestFloorsMultiplyRowMajorMatrices(t *testing.T) {
	start(t)
	multiply(t, newMatrices[float32])
	multiply(t, newMatrices[float64])
}

func multiply[T element](t *testing.T, make func(context.Context, int) (*matrices[T], error)) {
	const n = 5
	x, err := make(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}()
	bare, err := x.bare(hostblas.Default())
	if err != nil {
		t.Fatal(err)
	}
	for name, floor := range map[string]Loop{"direct": each(x.direct(hostblas.Default())), "bare": bare, "gonum": each(x.gonum())} {
		c := x.slice(2)
		for i := range c {
			c[i] = 99
		}
		if _, err := floor(1); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range n {
				want := 0.0
				for k := range n {
					want += float64(x.slice(0)[i*n+k]) * float64(x.slice(1)[k*n+j])
				}
				if got := float64(c[i*n+j]); got-want > 1e-5 || want-got > 1e-5 {
					t.Errorf("%sgemm, %s: element %d,%d is %v; expected %v", letter[T](), name, i, j, got, want)
				}
			}
		}
	}
}

// listQueue is a queue over a list, first come first served or the opposite.
type listQueue struct {
	latestFirst bool
	mu          sync.Mutex
	taken       bool
	turns       []chan struct{}
}

func (q *listQueue) acquire(ctx context.Context) error {
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.turns = append(q.turns, turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		q.turns = slices.DeleteFunc(q.turns, func(c chan struct{}) bool { return c == turn })
		return ctx.Err()
	}
}

func (q *listQueue) release() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		q.taken = false
		return nil
	}
	next := 0
	if q.latestFirst {
		next = len(q.turns) - 1
	}
	close(q.turns[next])
	q.turns = slices.Delete(q.turns, next, next+1)
	return nil
}

func (q *listQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.turns)
}

func TestAQueueThatServesTheLatestFailsTheCheck(t *testing.T) {
	if err := firstComeFirstServed(&listQueue{}, asGoroutine, 50); err != nil {
		t.Errorf("of a fair queue: %v", err)
	}
	if err := firstComeFirstServed(&listQueue{latestFirst: true}, asGoroutine, 50); !errors.Is(err, ErrCheck) {
		t.Errorf("of a queue that serves the latest: %v; expected a failed check", err)
	}
}

func TestALedgerThatGrowsFailsTheCheck(t *testing.T) {
	var kept [][]byte
	_, err := bounded(func() error {
		kept = append(kept, make([]byte, 16))
		return nil
	}, 100_000)
	if !errors.Is(err, ErrCheck) {
		t.Errorf("100,000 operations that keep 16 bytes each: %v; expected a failed check", err)
	}
	if growth, err := bounded(func() error { return nil }, 100_000); err != nil {
		t.Errorf("operations that keep nothing grew the heap by %d: %v", growth, err)
	}
	if len(kept) == 0 {
		t.Error("nothing was kept")
	}
}

func TestAPoolThatLacksAStreamFailsTheCheck(t *testing.T) {
	r := start(t)
	if err := exclusive(r); err != nil {
		t.Errorf("of a fair pool: %v", err)
	}
	s, err := r.Streams().Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := exclusive(r); !errors.Is(err, ErrCheck) {
		t.Errorf("with a stream leased to somebody else: %v; expected a failed check", err)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
}
