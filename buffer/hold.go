package buffer

import (
	"context"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/stream"
)

// Held is one buffer that foreign code uses: Hold fills in where it is.
type Held struct {
	Buffer *Buffer
	Write  bool

	Ptr   Ptr
	Bytes int64
}

// Hold opens an access of each buffer, once the work that was queued on it is done:
// for foreign code, which may use the memory at once and from any thread. It is all
// or none, waits with no access open and ends with ctx; op says for whom, in errors.
// Whoever holds calls Drop.
func Hold(ctx context.Context, op string, held []Held) error {
	for i := 0; i < len(held); {
		h := &held[i]
		ready, err := h.enter(ctx, op)
		if ready && err == nil {
			i++
			continue
		}
		Drop(held[:i], stream.Completion{})
		if err != nil {
			return err
		}
		i = 0 // what was held before may be in use again
	}
	return nil
}

// Drop closes the accesses. done, of what the foreign code submitted to a stream, is
// what later users wait for; zero if it submitted nothing.
func Drop(held []Held, done stream.Completion) {
	for i := range held {
		held[i].Buffer.core.leave(held[i].Write, done)
	}
}

// enter opens an access. Where the buffer's work is not done, it waits for that
// instead, which ready tells apart.
func (h *Held) enter(ctx context.Context, op string) (ready bool, err error) {
	if err := h.Buffer.usable(op); err != nil {
		return false, err
	}
	c := h.Buffer.core
	if err := c.memory.drv.Err(); err != nil {
		return false, &weir.Error{Op: op, Device: c.memory.drv.Name(), Kind: weir.KindCUDA, Err: err}
	}
	e, err := c.enter(op, h.Buffer.gen, h.Write)
	if err != nil {
		return false, err
	}
	// While the access is open nothing that is looked at here changes.
	done, err := e.writer.Done()
	var readers []stream.Completion
	if h.Write && err == nil && !finished(c.readers) {
		readers = slices.Clone(c.readers)
	}
	if done && err == nil && readers == nil {
		h.Ptr, h.Bytes = e.addr, e.bytes
		return true, nil
	}
	c.leave(h.Write, stream.Completion{})
	if err == nil {
		err = e.writer.Wait(ctx)
	}
	for _, r := range readers {
		if err == nil {
			if err = r.Wait(ctx); err != nil && over(err, c.memory.drv) {
				err = nil
			}
		}
	}
	return false, err
}
