package buffer_test

import (
	"testing"

	"github.com/weirgo/weir/buffer"
)

func addressOf(w *world, b *buffer.Buffer) buffer.Ptr {
	s := w.lease(w.r)
	acc := buffer.Begin(s)
	p := acc.Read(b)
	w.ok(acc.End())
	w.ok(s.Release())
	return p
}

// TestTheBlockThatWasGivenBackLastIsTakenFirst: it is the likeliest to lie in a
// cache. While its users may still run, an older one is.
func TestTheBlockThatWasGivenBackLastIsTakenFirst(t *testing.T) {
	w := newWorld(t, options{})
	a, b, c := w.new(1000), w.new(1000), w.new(1000)
	at := map[string]buffer.Ptr{"a": addressOf(w, a), "b": addressOf(w, b), "c": addressOf(w, c)}
	w.free(a, c)
	s := w.lease(w.r)
	gate := make(chan struct{})
	acc := buffer.Begin(s)
	acc.Write(b)
	w.ok(s.Call(func() { <-gate }))
	w.ok(acc.End())
	w.free(b) // last, and in use
	d := w.new(1000)
	if p := addressOf(w, d); p == at["b"] {
		t.Error("a block in use was taken before one that is not")
	}
	close(gate)
	w.ok(s.Synchronize(t.Context()))
	w.ok(s.Release())
	w.free(d)
	for range 3 {
		e := w.new(1000)
		p := addressOf(w, e)
		w.free(e)
		f := w.new(1000)
		if q := addressOf(w, f); q != p {
			t.Errorf("the block at %#x was given back and the next is at %#x", p, q)
		}
		w.free(f)
	}
}
