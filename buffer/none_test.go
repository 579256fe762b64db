package buffer_test

import (
	"context"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
)

func TestAnAccessRefusesWhatIsNoBuffer(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	for name, b := range map[string]*buffer.Buffer{"nil": nil, "the zero Buffer": {}} {
		for op, open := range map[string]func(*buffer.Access, *buffer.Buffer) buffer.Ptr{"Read": (*buffer.Access).Read, "Write": (*buffer.Access).Write} {
			acc := buffer.Begin(s)
			if p := open(&acc, b); p != 0 {
				t.Errorf("%s of %s answers the address %#x", op, name, p)
			}
			refuses(t, acc.End(), weir.ErrArgument, "buffer.%s: the buffer is %s; expected one that a Memory made", op, name)
		}
	}
}

// TestWhatIsNoBufferIsRefusedAndHasNothing: a.Buffer() of no array is one.
func TestWhatIsNoBufferIsRefusedAndHasNothing(t *testing.T) {
	ctx := context.Background()
	for name, b := range map[string]*buffer.Buffer{"nil": nil, "the zero Buffer": {}} {
		look := func([]byte) error { t.Errorf("%s has contents", name); return nil }
		_, err := b.Partition(buffer.Range{Bytes: 1})
		for op, err := range map[string]error{
			"Partition": err,
			"HostRead":  b.HostRead(ctx, look),
			"HostWrite": b.HostWrite(ctx, look),
			"Wait":      b.Wait(ctx),
		} {
			refuses(t, err, weir.ErrArgument, "buffer.%s: the buffer is %s; expected one that a Memory made", op, name)
		}
		if err := b.Free(); err != nil || b.Bytes() != 0 || b.Live() || b.Memory() != nil {
			t.Errorf("%s: Free answers %v, and it has %d bytes, lives: %v, in %v", name, err, b.Bytes(), b.Live(), b.Memory())
		}
	}
}

func TestTheHostLooksAtContentsWithAFunction(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(64)
	for op, look := range map[string]func(context.Context, func([]byte) error) error{"HostRead": b.HostRead, "HostWrite": b.HostWrite} {
		refuses(t, look(context.Background(), nil), weir.ErrArgument, "buffer.%s: the function is nil; expected one that takes the contents", op)
	}
	w.free(b)
}
