package buffer_test

import (
	"testing"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
)

// Whether work is done is a question that costs a GPU more than a wait.

// TestAWriterThatIsMetOftenIsAskedOnceAndThenNotWaitedFor: the operand that many
// operations read.
func TestAWriterThatIsMetOftenIsAskedOnceAndThenNotWaitedFor(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(2), w.new(64)
	defer w.free(b)
	w.write(s[0], b, nil)
	d, err := s[0].Submit()
	w.ok(err)
	w.ok(d.Synchronize()) // done, and nobody above the driver knows
	for i, want := range []struct{ waits, questions int }{{1, 0}, {1, 0}, {0, 1}, {0, 0}, {0, 0}} {
		before := w.plan.Counts()
		acc := buffer.Begin(s[1])
		acc.Read(b)
		opened := w.plan.Counts()
		w.ok(acc.End())
		if waits, questions := opened[fault.StreamWait]-before[fault.StreamWait], opened[fault.EventQuery]-before[fault.EventQuery]; waits != want.waits || questions != want.questions {
			t.Errorf("access %d made %d waits and %d questions; expected %d and %d", i, waits, questions, want.waits, want.questions)
		}
	}
}

// TestAChainOnOneStreamAsksNothing of its own results, which are in order anyway,
// and waits for nothing.
func TestAChainOnOneStreamAsksNothing(t *testing.T) {
	const length = 12 // a ring is that long before it is asked
	w := newWorld(t, options{})
	s, x, y := w.lease(w.r), w.new(64), w.new(64)
	defer w.free(x, y)
	release := w.stall(s)
	before := w.plan.Counts()
	for range length {
		acc := buffer.Begin(s)
		acc.Read(x)
		acc.Write(y)
		_, err := s.Submit()
		w.ok(err)
		w.ok(acc.End())
		x, y = y, x
	}
	for range 5 { // its result is met often
		acc := buffer.Begin(s)
		acc.Read(x)
		w.ok(acc.End())
	}
	after := w.plan.Counts()
	for _, call := range []fault.Call{fault.EventQuery, fault.StreamQuery, fault.StreamWait} {
		if n := after[call] - before[call]; n != 0 {
			t.Errorf("%d calls of %s in a chain of %d", n, call, length)
		}
	}
	release()
	w.wait(s)
}

// TestAnAccessWaitsOnceForWhatTwoOperandsNeed: who reads a result overwrites what
// that was made of.
func TestAnAccessWaitsOnceForWhatTwoOperandsNeed(t *testing.T) {
	w := newWorld(t, options{})
	s, x, y := w.streams(2), w.new(64), w.new(64)
	defer w.free(x, y)
	release := w.stall(s[0])
	acc := buffer.Begin(s[0])
	acc.Read(x)
	acc.Write(y)
	w.ok(acc.End())
	if n := w.count(fault.StreamWait, func() {
		acc := buffer.Begin(s[1])
		acc.Write(x)
		acc.Read(y)
		w.ok(acc.End())
	}); n != 1 {
		t.Errorf("%d waits; expected 1", n)
	}
	release()
	w.wait(s[0])
}
