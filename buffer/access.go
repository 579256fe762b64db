package buffer

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/stream"
)

// Access is the scope of one operation on one stream:
//
//	acc := buffer.Begin(s)
//	x, y := acc.Read(a), acc.Write(b)
//	if err := acc.Err(); err == nil { … submit work with x and y to s … }
//	err := acc.End()
//
// Accesses validate and never wait on the host. Acquire whatever is scarce
// before Begin. It belongs to one goroutine and is not copied after its first
// use.
type Access struct {
	s       stream.Stream
	copying bool
	record  Recorder          // or nil
	waited  stream.Completion // the latest that the stream waits for on account of this access
	all     stream.Completion // whatever the stream is given
	err     error
	n       int
	first   [inlineOperands]operand
	more    *operands
}

// operands are those of an access past the first few, in memory that is used again.
type operands struct{ list []operand }

var spareOperands = sync.Pool{New: func() any { return &operands{} }}

const inlineOperands = 6

// operand keeps its buffer reachable: the collector frees none that an access
// still uses.
type operand struct {
	buffer *Buffer
	write  bool
}

// Begin opens the scope of one operation on s.
func Begin(s stream.Stream) Access { return Access{s: s} }

// BeginCopy is Begin for a copy, whose operands may lie on other devices than
// the stream's.
func BeginCopy(s stream.Stream) Access { return Access{s: s, copying: true} }

// Recorder is told of accesses that are recorded and not made.
type Recorder interface {
	// Memory is where all that is opened must lie.
	Memory() *Memory
	// Opened is told of each buffer that was opened.
	Opened(b *Buffer, write bool)
}

// BeginRecording opens the scope of one operation that is recorded: addresses are
// answered as ever, of buffers that are live, and no ledger is asked or told. They
// are good for as long as the buffer is.
func BeginRecording(r Recorder) Access { return Access{record: r} }

// Read makes the stream wait for b's latest writer and answers b's address for
// reading. One buffer may be read several times. On error it answers 0, and
// Err and End say why.
func (a *Access) Read(b *Buffer) Ptr { return a.open(b, false) }

// Write makes the stream wait for b's latest writer and every unfinished reader
// and answers b's address, for reading and writing. It excludes every other
// access, one of the same scope too: in-place use is one Write.
func (a *Access) Write(b *Buffer) Ptr { return a.open(b, true) }

// Err is the first error of the scope so far.
func (a *Access) Err() error { return a.err }

func (a *Access) open(b *Buffer, write bool) Ptr {
	if a.err != nil {
		return 0
	}
	op := "buffer.Read"
	if write {
		op = "buffer.Write"
	}
	if a.err = b.usable(op); a.err != nil { // as the Buffer method of no array answers
		return 0
	}
	c := b.core
	if a.record != nil {
		return a.note(op, b, write)
	}
	dev := a.s.Device()
	if dev == nil {
		a.err = &weir.Error{Op: op, Kind: weir.KindLogic, Message: "the access's stream was released; expected a live one", Err: weir.ErrStale}
		return 0
	}
	if dev != c.memory.drv && !a.copying {
		a.err = &weir.Error{Op: op, Device: dev.Name(), Kind: weir.KindLogic, Err: weir.ErrArgument,
			Message: fmt.Sprintf("the buffer is on %s and the stream on %s; copy the data to one device first", c.memory.drv.Name(), dev.Name())}
		return 0
	}
	e, err := c.enter(op, b.gen, write)
	if err != nil {
		a.err = err
		return 0
	}
	if err := a.order(c, write, &e); err != nil {
		c.leave(write, stream.Completion{}) // nobody got the address, so the ledger is still true
		a.err = err
		return 0
	}
	if a.n == 0 {
		a.all = a.s.Everything()
	}
	if a.n < inlineOperands {
		a.first[a.n] = operand{b, write}
	} else {
		if a.more == nil {
			a.more = spareOperands.Get().(*operands)
		}
		a.more.list = append(a.more.list, operand{b, write})
	}
	a.n++
	return e.addr
}

// note is open of what is recorded.
func (a *Access) note(op string, b *Buffer, write bool) Ptr {
	c := b.core
	if m := a.record.Memory(); m != c.memory {
		a.err = &weir.Error{Op: op, Device: c.memory.drv.Name(), Kind: weir.KindLogic, Err: weir.ErrNotRecordable,
			Message: fmt.Sprintf("the buffer is on %s; a graph of %s has none of another device", c.memory.drv.Name(), m.drv.Name())}
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gen.Load() != b.gen {
		a.err = c.gone(op)
		return 0
	}
	a.record.Opened(b, write)
	return c.block.ptr + Ptr(c.offset)
}

// order makes the stream wait for what the core's ledger demands. Whether work is
// done is asked only of what was met before: soon after its submission it is not,
// and on a GPU the question costs more than the wait.
func (a *Access) order(c *core, write bool, e *entered) error {
	if e.met && !a.s.Implies(e.writer) {
		if _, err := e.writer.Done(); err != nil {
			return err
		}
	}
	if err := a.wait(e.writer); err != nil || !write {
		return err
	}
	for _, r := range c.readers {
		if err := a.wait(r); err != nil && !over(err, a.s.Device()) {
			return err
		}
	}
	return nil
}

// wait is Stream.Wait, but for what it was called with just before: who reads what
// another operation wrote often overwrites what that one read.
func (a *Access) wait(c stream.Completion) error {
	if c == a.waited {
		return nil
	}
	err := a.s.Wait(c)
	if err == nil {
		a.waited = c
	}
	return err
}

// over says whether err, of waiting for a user of memory, says that another
// device than dev is lost: that user is over, and no concern of dev's.
func over(err error, dev driver.Device) bool {
	return errors.Is(err, weir.ErrDeviceLost) && dev != nil && dev.Err() == nil
}

// End closes the scope: it records one completion of all that was submitted
// and publishes it to every operand's ledger. It answers the scope's first
// error. When the record fails, the stream is waited for, so that no ledger
// holds a completion that is not true, and the failure is answered. A second
// End does nothing.
func (a *Access) End() error {
	if a.n == 0 {
		return a.err
	}
	done, failure := a.s.Tail()
	if errors.Is(failure, weir.ErrStale) { // its work may still be under way
		done = a.all
	}
	for i := range a.n {
		o := a.operand(i)
		o.buffer.core.leave(o.write, done)
		*o = operand{}
	}
	a.n = 0
	if a.more != nil {
		a.more.list = a.more.list[:0]
		spareOperands.Put(a.more)
		a.more = nil
	}
	if failure == nil {
		return a.err
	}
	return errors.Join(a.err, failure)
}

func (a *Access) operand(i int) *operand {
	if i < inlineOperands {
		return &a.first[i]
	}
	return &a.more.list[i-inlineOperands]
}
