package buffer

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/stream"
)

// Ptr is an address in a device's memory. Host code must not index it, except
// on a host device and in page-locked memory, through HostRead and HostWrite.
type Ptr = driver.Ptr

// Buffer is one logical allocation. It is made by Memory and must not be
// copied.
//
// Nil and the zero Buffer are no buffers. What answers an error refuses them with
// an ErrArgument, but for Free, which does nothing; the other methods have zero
// values for them.
type Buffer struct {
	core *core
	gen  uint64
}

func (b *Buffer) none() bool { return b == nil || b.core == nil }

// usable refuses what no Memory made.
func (b *Buffer) usable(op string) error {
	if b.none() {
		return weir.Argf(op, "the buffer is %s; expected one that a Memory made", map[bool]string{true: "nil", false: "the zero Buffer"}[b == nil])
	}
	return nil
}

// core is what a Buffer names: kept apart from it so that the collector can
// find the Buffer unreachable while the ledger is still needed, and reused for
// a later Buffer with another generation.
//
// mu guards everything but memory, and is held for a few instructions; nothing
// waits and no driver call happens under it. While writing is true the
// completions do not change, since no other access can end.
type core struct {
	memory *Memory

	mu      sync.Mutex
	gen     atomic.Uint64 // even: not in use; written under mu
	block   *block
	offset  int64
	bytes   int64
	writer  stream.Completion
	met     uint8               // how many accesses met writer, to a few
	watched bool                // the Buffer has a finalizer
	readers []stream.Completion // one a stream at most
	reading int
	writing bool
	stack   string
}

// Bytes is the size; 0 after Free.
func (b *Buffer) Bytes() int64 {
	if b.none() {
		return 0
	}
	b.core.mu.Lock()
	defer b.core.mu.Unlock()
	if b.core.gen.Load() != b.gen {
		return 0
	}
	return b.core.bytes
}

// Memory is the device memory that the buffer lies in.
func (b *Buffer) Memory() *Memory {
	if b.none() {
		return nil
	}
	return b.core.memory
}

// Live says whether the buffer has not been freed.
func (b *Buffer) Live() bool {
	if b.none() {
		return false
	}
	return b.core.gen.Load() == b.gen
}

func (c *core) gone(op string) error {
	return &weir.Error{Op: op, Device: c.memory.device().Name(), Kind: weir.KindLogic,
		Message: "the buffer was freed or partitioned; expected a live one", Err: weir.ErrClosed}
}

func (c *core) conflict(op string) error {
	holder := fmt.Sprintf("%d open reads", c.reading)
	switch {
	case c.writing:
		holder = "an open write"
	case c.reading == 1:
		holder = "an open read"
	}
	return &weir.Error{Op: op, Device: c.memory.device().Name(), Kind: weir.KindLogic,
		Message: fmt.Sprintf("the buffer of %d bytes has %s; end that access first", c.bytes, holder), Err: weir.ErrBusy}
}

// Writer is the completion of the latest write that has ended: what later work on
// the buffer follows in any case. It is done of a buffer that was freed.
func (b *Buffer) Writer() stream.Completion {
	if b.none() {
		return stream.Completion{}
	}
	b.core.mu.Lock()
	defer b.core.mu.Unlock()
	if b.core.gen.Load() != b.gen {
		return stream.Completion{}
	}
	return b.core.writer
}

// Free gives the memory back once all submitted work on it is done, without
// waiting. A second Free does nothing. While an access is open it is an
// ErrBusy and the buffer stays.
func (b *Buffer) Free() error {
	if b.none() {
		return nil
	}
	watched, err := b.core.free(b.gen)
	if watched {
		goruntime.SetFinalizer(b, nil)
	}
	return err
}

// free ends the generation, and answers whether its Buffer had a finalizer.
func (c *core) free(gen uint64) (watched bool, err error) {
	c.mu.Lock()
	if c.gen.Load() != gen {
		c.mu.Unlock()
		return false, nil
	}
	if c.reading > 0 || c.writing {
		defer c.mu.Unlock()
		return false, c.conflict("buffer.Free")
	}
	watched = c.watched
	c.gen.Add(1)
	c.mu.Unlock()
	return watched, c.memory.gaveUp(c)
}

// reset forgets what a core that is not in use any more was.
func (c *core) reset() {
	c.block, c.offset, c.bytes, c.stack = nil, 0, 0, ""
	c.writer, c.met, c.watched = stream.Completion{}, 0, false
	clear(c.readers)
	c.readers = c.readers[:0]
}

// addReader keeps one completion a stream, the latest, and of them those that
// are not known to be done; so a ledger is no longer than the number of streams.
func addReader(list []stream.Completion, c stream.Completion) []stream.Completion {
	kept := list[:0]
	for _, d := range list {
		if later, ok := d.Merge(c); ok {
			c = later // in d's stead, at the end
		} else if !d.Known() {
			kept = append(kept, d)
		}
	}
	if !c.Known() {
		kept = append(kept, c)
	}
	clear(list[min(len(kept), len(list)):])
	return kept
}

// Range is a part of a buffer, in bytes.
type Range struct{ Offset, Bytes int64 }

// Partition consumes the buffer and answers one buffer for each range, each
// with its own ledger over the same memory, which is freed with the last of
// them. Ranges are in order, do not overlap, and lie inside. On error the
// buffer is as it was.
func (b *Buffer) Partition(ranges ...Range) ([]*Buffer, error) {
	const op = "buffer.Partition"
	if err := b.usable(op); err != nil {
		return nil, err
	}
	c := b.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gen.Load() != b.gen {
		return nil, c.gone(op)
	}
	if c.reading > 0 || c.writing {
		return nil, c.conflict(op)
	}
	if len(ranges) == 0 {
		return nil, weir.Argf(op, "no ranges; expected at least one")
	}
	end := int64(0)
	for i, r := range ranges {
		if r.Bytes <= 0 || r.Offset < end || r.Offset > c.bytes || r.Bytes > c.bytes-r.Offset {
			return nil, weir.Argf(op, "range %d is %d bytes at %d; expected a positive size, from %d on, inside %d bytes",
				i, r.Bytes, r.Offset, end, c.bytes)
		}
		end = r.Offset + r.Bytes
	}
	m := c.memory
	m.share(c.block, c.bytes, ranges)
	parts := make([]*Buffer, len(ranges))
	for i, r := range ranges {
		part := m.newCore()
		part.mu.Lock()
		part.gen.Add(1)
		part.block, part.offset, part.bytes = c.block, c.offset+r.Offset, r.Bytes
		part.writer = c.writer
		part.readers = append(part.readers, c.readers...)
		part.stack = m.stack()
		parts[i] = &Buffer{part, part.gen.Load()}
		part.mu.Unlock()
		parts[i].watch()
	}
	if c.watched {
		goruntime.SetFinalizer(b, nil)
	}
	c.gen.Add(1)
	c.reset()
	m.recycle(c)
	return parts, nil
}

// watch lets the collector free the buffer when nothing refers to it any more.
// A finalizer, because a cleanup costs three allocations for each buffer.
func (b *Buffer) watch() {
	b.core.watched = true // of a Buffer that nobody else has yet
	goruntime.SetFinalizer(b, (*Buffer).Unreachable)
}

// Unreachable is for the collector: it has the buffer freed, soon and elsewhere. Of
// one that was freed, or never made, it does nothing.
func (b *Buffer) Unreachable() {
	if !b.none() && b.Live() {
		b.core.memory.reclaimLater(b.core, b.gen)
	}
}

// HostRead waits until the latest writer is done and calls fn with the
// contents, which fn must not keep or change. It works on host devices and
// page-locked memory; elsewhere it is ErrNotSupported.
func (b *Buffer) HostRead(ctx context.Context, fn func([]byte) error) error {
	return b.host(ctx, "buffer.HostRead", false, fn)
}

// HostWrite waits until the latest writer and every reader is done and calls fn
// with the contents, to be changed in place.
func (b *Buffer) HostWrite(ctx context.Context, fn func([]byte) error) error {
	return b.host(ctx, "buffer.HostWrite", true, fn)
}

func (b *Buffer) host(ctx context.Context, op string, write bool, fn func([]byte) error) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if fn == nil {
		return weir.Argf(op, "the function is nil; expected one that takes the contents")
	}
	c := b.core
	defer goruntime.KeepAlive(b) // the collector frees no buffer that fn uses
	for {
		// No access is open while the host waits; so another operation may come
		// between, and then its end is waited for too.
		if err := c.await(ctx, op, b.gen, write); err != nil {
			return err
		}
		e, err := c.enter(op, b.gen, write)
		if err != nil {
			return err
		}
		if c.settled(e.writer, write) {
			return c.during(write, hostmem.Bytes(uintptr(e.addr), e.bytes), fn)
		}
		c.leave(write, stream.Completion{})
	}
}

// during runs fn and closes the access, on every way out.
func (c *core) during(write bool, memory []byte, fn func([]byte) error) error {
	defer c.leave(write, stream.Completion{})
	return fn(memory)
}

// Wait waits until the latest writer is done, or ctx ends. It opens no access.
func (b *Buffer) Wait(ctx context.Context) error {
	const op = "buffer.Wait"
	if err := b.usable(op); err != nil {
		return err
	}
	c := b.core
	c.mu.Lock()
	if c.gen.Load() != b.gen {
		defer c.mu.Unlock()
		return c.gone(op)
	}
	writer := c.writer
	c.mu.Unlock()
	return writer.Wait(ctx)
}

// await waits for what an access from the host would have to wait for.
func (c *core) await(ctx context.Context, op string, gen uint64, write bool) error {
	c.mu.Lock()
	if c.gen.Load() != gen {
		defer c.mu.Unlock()
		return c.gone(op)
	}
	if c.writing || write && c.reading > 0 { // a conflict is refused at once
		defer c.mu.Unlock()
		return c.conflict(op)
	}
	reachable := c.memory.drv.Capabilities().UnifiedHostAddresses || c.block.pinned
	writer := c.writer
	var readers []stream.Completion
	if write {
		readers = slices.Clone(c.readers)
	}
	c.mu.Unlock()
	if !reachable {
		return &weir.Error{Op: op, Device: c.memory.device().Name(), Message: "host code cannot read this device's memory; copy it", Err: weir.ErrNotSupported}
	}
	if err := c.memory.usable(op); err != nil {
		return err
	}
	if err := writer.Wait(ctx); err != nil {
		return err
	}
	for _, r := range readers {
		if err := r.Wait(ctx); err != nil && !over(err, c.memory.drv) {
			return err
		}
	}
	return nil
}

// settled says whether what an open access waits for is done.
func (c *core) settled(writer stream.Completion, write bool) bool {
	if done, err := writer.Done(); !done && err == nil {
		return false
	}
	return !write || finished(c.readers)
}

// enter opens an access of the core. While it is open no write can end, so the
// writer stays what it is; while a write is open, so do the readers.
func (c *core) enter(op string, gen uint64, write bool) (e entered, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gen.Load() != gen {
		return e, c.gone(op)
	}
	if c.writing || write && c.reading > 0 {
		return e, c.conflict(op)
	}
	if write {
		c.writing = true
	} else {
		c.reading++
	}
	e = entered{c.block.ptr + Ptr(c.offset), c.bytes, c.writer, c.met == often}
	c.met = min(c.met+1, often)
	return e, nil
}

// often is how many accesses meet a writer before one asks whether it is done: more
// than a result has that is read once and overwritten.
const often = 2

// entered is what an access found.
type entered struct {
	addr   Ptr
	bytes  int64
	writer stream.Completion
	met    bool // often enough to be asked
}

// leave closes an access and publishes its completion. A done completion of a
// host access changes nothing in the ledger: what it waited for is done too.
func (c *core) leave(write bool, done stream.Completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !write:
		c.reading--
		c.readers = addReader(c.readers, done)
	case done.IsZero():
		c.writing = false
	default:
		c.writing = false
		c.writer, c.met = done, 0
		clear(c.readers)
		c.readers = c.readers[:0]
	}
}

// Elements are n elements of T at an address of a host device, for host kernels:
// valid inside stream.Call, on the stream and during the access that the address
// came from. Elsewhere the address is no memory of the processor's.
func Elements[T any](p Ptr, n int) []T { return hostmem.Slice[T](uintptr(p), int64(n)) }
