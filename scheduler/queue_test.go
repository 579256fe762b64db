package scheduler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/scheduler"
)

// TestAQueueIsAListFromWhichAnybodyMayLeave compares it with a slice.
func TestAQueueIsAListFromWhichAnybodyMayLeave(t *testing.T) {
	type waiter = scheduler.Waiter[int]
	rapid.Check(t, func(t *rapid.T) {
		var q scheduler.Queue[int]
		var in, out []*waiter // out: those that left and are not recycled
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				w := q.Push(context.Background())
				if slices.Contains(in, w) || slices.Contains(out, w) {
					t.Fatal("Push answers a waiter that is in use")
				}
				in = append(in, w)
			},
			"pop": func(t *rapid.T) {
				w := q.Pop()
				if len(in) == 0 {
					if w != nil {
						t.Fatal("Pop of an empty queue answers a waiter")
					}
					return
				}
				if w != in[0] {
					t.Fatal("Pop does not answer the oldest")
				}
				in, out = in[1:], append(out, w)
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					t.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(in)-1).Draw(t, "i")
				if !q.Remove(in[i]) {
					t.Fatal("a waiter in the queue can't leave")
				}
				out = append(out, in[i])
				in = slices.Delete(in, i, i+1)
			},
			"remove again": func(t *rapid.T) {
				if len(out) > 0 && q.Remove(out[rapid.IntRange(0, len(out)-1).Draw(t, "i")]) {
					t.Fatal("a waiter left twice")
				}
			},
			"recycle": func(t *rapid.T) {
				if len(out) > 0 {
					q.Recycle(out[0])
					out = out[1:]
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != len(in) {
					t.Fatalf("%d wait; expected %d", q.Len(), len(in))
				}
			},
		})
	})
}

// TestManyWaitersAreQueuedInLinearTime would take minutes if leaving from the
// middle searched the queue.
func TestManyWaitersAreQueuedInLinearTime(t *testing.T) {
	const n = 300_000
	var q scheduler.Queue[int]
	all := make([]*scheduler.Waiter[int], n)
	for i := range all {
		all[i] = q.Push(context.Background())
	}
	random := rand.New(rand.NewPCG(3, 4))
	gone := make([]bool, n)
	for _, i := range random.Perm(n)[:n/3] {
		gone[i] = true
		q.Remove(all[i])
	}
	for i, w := range all {
		if !gone[i] && q.Pop() != w {
			t.Fatalf("waiter %d is not next", i)
		}
	}
	if q.Len() != 0 || q.Pop() != nil {
		t.Errorf("%d are left", q.Len())
	}
}

func TestAWaiterGetsWhatIsDelivered(t *testing.T) {
	refusal := errors.New("none left")
	synctest.Test(t, func(t *testing.T) {
		for _, expected := range []error{nil, refusal} {
			var q scheduler.Queue[string]
			w := q.Push(context.Background())
			type answer struct {
				value     string
				delivered bool
				err       error
			}
			got := make(chan answer)
			go func() {
				value, delivered, err := w.Wait(context.Background(), aWait)
				got <- answer{value, delivered, err}
			}()
			synctest.Wait()
			q.Pop().Deliver("a stream", expected) // it waits for nobody
			if a := <-got; a != (answer{"a stream", true, expected}) {
				t.Errorf("got %+v; expected the delivery of %v", a, expected)
			}
			q.Recycle(w)
			if again := q.Push(context.Background()); again != w {
				t.Error("a recycled waiter is not used again")
			}
		}
	})
}

// TestACancelledWaiterEitherLeavesOrWasDelivered: there is no third outcome.
func TestACancelledWaiterEitherLeavesOrWasDelivered(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)

	var q scheduler.Queue[int]
	w := q.Push(context.Background())
	if _, delivered, err := w.Wait(ctx, aWait); delivered || err != errCause {
		t.Errorf("got %v, %v; expected the cause", delivered, err)
	}
	if !q.Remove(w) || q.Len() != 0 {
		t.Error("a waiter that nothing was delivered to can't leave")
	}

	w = q.Push(context.Background())
	if _, delivered, _ := w.Wait(ctx, aWait); delivered {
		t.Error("delivered from nowhere")
	}
	next := q.Pop() // somebody is about to deliver
	if q.Remove(w) {
		t.Error("a waiter left that a delivery is on its way to")
	}
	go next.Deliver(7, nil)
	if v, err := w.Result(); v != 7 || err != nil {
		t.Errorf("the late delivery is %d, %v; expected 7", v, err)
	}
}
