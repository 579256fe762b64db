package buffer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/stream"
)

// block has host:0 run nothing further on s until the answered function is called.
func (w *world) block(s stream.Stream) (release func()) {
	gate := make(chan struct{})
	w.ok(s.Call(func() { <-gate }))
	return func() { close(gate) }
}

// queue opens an access of b on s behind what s has, and ends it.
func (w *world) queue(s stream.Stream, b *buffer.Buffer, write bool) {
	acc := buffer.Begin(s)
	if write {
		acc.Write(b)
	} else {
		acc.Read(b)
	}
	w.ok(s.Call(func() {}))
	w.ok(acc.End())
}

func TestHoldWaitsForWhatEachBufferHasQueuedAndHoldsNothingMeanwhile(t *testing.T) {
	w := newWorld(t, options{})
	written, read, idle := w.new(64), w.new(64), w.new(64)
	s := w.streams(2)
	first := w.block(s[0])
	w.queue(s[0], written, true)
	second := w.block(s[1])
	w.queue(s[1], read, false)

	held := []buffer.Held{{Buffer: idle, Write: true}, {Buffer: written}, {Buffer: read, Write: true}}
	done := make(chan error)
	go func() { done <- buffer.Hold(context.Background(), "fit", held) }()
	first()
	// It still waits for the reader, with no access open: the others are free.
	for range 100 {
		select {
		case err := <-done:
			t.Fatalf("held before the reader was done: %v", err)
		default:
		}
	}
	second()
	w.ok(<-done)
	for i := range held {
		if held[i].Ptr == 0 || held[i].Bytes != 64 {
			t.Errorf("operand %d is %d bytes at %#x", i, held[i].Bytes, held[i].Ptr)
		}
	}
	if err := idle.Free(); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("a held buffer was freed: %v", err)
	}
	acc := buffer.Begin(s[0])
	if acc.Read(read); !errors.Is(acc.Err(), weir.ErrBusy) {
		t.Errorf("what is held for writing was read: %v", acc.Err())
	}
	_ = acc.End() // it has nothing
	buffer.Drop(held, stream.Completion{})
	w.free(written, read, idle)
}

func TestARequestToReadDoesNotWaitForReaders(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(64)
	s := w.streams(1)[0]
	release := w.block(s)
	w.queue(s, b, false)
	held := []buffer.Held{{Buffer: b}}
	w.ok(buffer.Hold(context.Background(), "fit", held)) // while the reader is blocked
	buffer.Drop(held, stream.Completion{})
	release()
	w.free(b)
}

func TestWhatForeignCodeSubmittedIsWaitedForByLaterUsers(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(64)
	s := w.streams(2)
	held := []buffer.Held{{Buffer: b, Write: true}}
	w.ok(buffer.Hold(context.Background(), "fit", held))
	release := w.block(s[0])
	buffer.Drop(held, must(s[0].Tail()))
	var order []string
	acc := buffer.Begin(s[1])
	acc.Read(b)
	w.ok(s[1].Call(func() { order = append(order, "reader") }))
	w.ok(acc.End())
	order = append(order, "released")
	release()
	w.ok(s[1].Synchronize(context.Background()))
	if len(order) != 2 || order[0] != "released" {
		t.Errorf("the order is %v; expected the reader last", order)
	}
	w.free(b)
}

func TestHoldIsAllOrNoneAndEndsWithItsContext(t *testing.T) {
	w := newWorld(t, options{})
	a, b, gone := w.new(64), w.new(64), w.new(64)
	w.free(gone)
	s := w.streams(1)[0]
	for _, c := range []struct {
		held     []buffer.Held
		sentinel error
		want     string
	}{
		{[]buffer.Held{{Buffer: a, Write: true}, {Buffer: gone}}, weir.ErrClosed, "fit on host:0: the buffer was freed or partitioned; expected a live one"},
		{[]buffer.Held{{Buffer: a, Write: true}, {Buffer: b}, {Buffer: b, Write: true}}, weir.ErrBusy, "fit on host:0: the buffer of 64 bytes has an open read; end that access first"},
		{[]buffer.Held{{Buffer: a}, {}}, weir.ErrArgument, "fit: the buffer is nil; expected one that a Memory made"},
	} {
		err := buffer.Hold(context.Background(), "fit", c.held)
		if !errors.Is(err, c.sentinel) || err.Error() != c.want {
			t.Errorf("\ngot      %v\nexpected %s", err, c.want)
		}
	}
	release := w.block(s)
	w.queue(s, b, true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := buffer.Hold(ctx, "fit", []buffer.Held{{Buffer: a, Write: true}, {Buffer: b}}); !errors.Is(err, context.Canceled) || !errors.Is(err, weir.ErrCancelled) {
		t.Errorf("got %v; expected the context's end", err)
	}
	release()
	w.free(a, b) // nothing is held
}

func TestHoldOfIdleBuffersAllocatesNothing(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	w := newWorld(t, options{bare: true})
	a, b := w.new(64), w.new(64)
	held := []buffer.Held{{Buffer: a}, {Buffer: b, Write: true}}
	if n := testing.AllocsPerRun(100, func() {
		w.ok(buffer.Hold(context.Background(), "fit", held))
		buffer.Drop(held, stream.Completion{})
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
	w.free(a, b)
}
