package native

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/tensor"
)

// Record is the rr_deposit that entry points fill. Its state is read and changed by
// atomic operations.
type Record struct {
	handle   uintptr
	device   int32
	state    int32
	owner    uintptr
	release  uintptr
	count    int32
	reserved int32
	regions  [maxRegions]View
}

// Deposit takes outputs whose size only a native call knows: the call fills it with
// memory of its own, of up to 8 arrays, and with what frees that. It is used once: in
// one scope or one job of its session, after which Arrays answers what it was filled
// with. It is safe for concurrent use.
//
// One that was filled, and whose arrays nobody asked for, is given up when it is
// closed or the collector finds it.
type Deposit struct {
	session *Session // which it keeps reachable
	owner   *owner

	mu     sync.Mutex // guards what follows
	used   bool       // it was bound once
	job    bool       // to a job
	over   bool       // it is closed, or was bound and is not any more
	taken  bool       // its arrays were made, or could not be
	arrays []*tensor.Array
	failed error // why they could not
}

// owner is the memory of a filled deposit: its arrays share it, and whoever has the
// last part releases it.
type owner struct {
	core   *core
	record *Record
	held   atomic.Bool // the session's handle is kept alive for it
	parts  atomic.Int64
}

// NewDeposit makes a deposit on the session.
func (s *Session) NewDeposit() (*Deposit, error) {
	const who = "Session.NewDeposit"
	c, err := s.use(who)
	if err != nil {
		return nil, err
	}
	handle, err := s.Handle()
	if err != nil {
		return nil, c.released(who)
	}
	o := &owner{core: c, record: &Record{handle: uintptr(handle), device: c.device}}
	d := &Deposit{session: s, owner: o}
	goruntime.SetFinalizer(d, func(*Deposit) { c.service.abandon(o.drop) })
	return d, nil
}

// bindable refuses, of kind logic, what can't be lent to a call.
func (d *Deposit) bindable(who string) error {
	if d == nil || d.owner == nil {
		return refuse(who, nil, "expected a deposit for a deposit parameter, given %s", none(d == nil, "Deposit"))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bindableLocked(who)
}

func (d *Deposit) bindableLocked(who string) error {
	switch {
	case d.over:
		return refuse(who, nil, "the deposit is closed")
	case d.used:
		return refuse(who, nil, "the deposit is in use by another call")
	}
	return nil
}

func (d *Deposit) bind(who string, job bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.bindableLocked(who); err != nil {
		return err
	}
	d.used, d.job = true, job
	return nil
}

// unbind ends the call that the deposit was lent to, whose session is entered still.
func (d *Deposit) unbind() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	d.owner.seal()
}

// state is the record's, which native threads change.
func (o *owner) state() int32 { return atomic.LoadInt32(&o.record.state) }

// seal closes a record that is not filled. One that was keeps the session's handle.
func (o *owner) seal() {
	for {
		state := o.state()
		if state == depositFilled {
			if !o.held.Swap(true) {
				o.parts.Store(1)
				o.core.hold()
			}
			return
		}
		if state == depositClosed || atomic.CompareAndSwapInt32(&o.record.state, state, depositClosed) {
			return
		}
	}
}

// drop gives one part up, and with the last one the memory.
func (o *owner) drop() error {
	if o.parts.Add(-1) != 0 {
		return nil
	}
	err := o.core.call("native.Deposit", o.core.depositRelease, o.core.native, address(o.record))
	return errors.Join(err, o.core.let())
}

// Arrays answers the arrays that the deposit was filled with, on the session's device
// and in ctx's scope; none if its call ended without filling it. They share memory of
// the library's, which is given back when all have been freed and the work that uses
// them is done. It answers the same each time. While the deposit is open, or a job
// has it, it is refused, of kind logic.
func (d *Deposit) Arrays(ctx context.Context) ([]*tensor.Array, error) {
	const who = "Deposit.Arrays"
	if d == nil || d.owner == nil {
		return nil, d.bindable(who)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.taken:
		return d.arrays, d.failed
	case d.owner.state() == depositClosed:
		return nil, nil
	case d.owner.state() != depositFilled, d.job && !d.over: // what fills it completes it until it returns
		return nil, refuse(who, nil, "the deposit is still open")
	}
	if err := tensor.Recordable(ctx, who); err != nil {
		return nil, err
	}
	m, err := buffer.Of(d.owner.core.resources)
	if err != nil {
		return nil, err
	}
	d.owner.seal()
	d.taken = true
	goruntime.SetFinalizer(d, nil)
	d.arrays, d.failed = d.owner.adopt(ctx, m)
	return d.arrays, d.failed
}

// adopt makes the arrays. Each has a part of the owner, and so does it until it is
// through.
func (o *owner) adopt(ctx context.Context, m *buffer.Memory) ([]*tensor.Array, error) {
	var all []*tensor.Array
	var errs []error
	count := min(max(o.record.count, 0), maxRegions)
	o.parts.Add(int64(count))
	for i := range count {
		v := &o.record.regions[i]
		rank := min(max(v.rank, 0), maxRank)
		a, err := tensor.Adopt(ctx, m, buffer.Ptr(v.data), dtype.DType(v.dtype), ints(v.shape[:rank]), ints(v.strides[:rank]), o.drop)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, a)
	}
	if len(errs) > 0 {
		for _, a := range all {
			errs = append(errs, a.Free())
		}
		all = nil
	}
	return all, errors.Join(append(errs, o.drop())...)
}

func ints(from []int64) []int {
	to := make([]int, len(from))
	for i, n := range from {
		to[i] = int(n)
	}
	return to
}

// Close gives the deposit up: it cannot be filled any more, and what it was filled
// with is released, unless Arrays answered it. A second Close does nothing. While a
// call has it, it is an ErrBusy.
func (d *Deposit) Close() error {
	const who = "Deposit.Close"
	if d == nil || d.owner == nil {
		return d.bindable(who)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.used && !d.over {
		return refuse(who, weir.ErrBusy, "a call still has the deposit")
	}
	d.over = true
	d.owner.seal()
	if d.taken || d.owner.state() != depositFilled {
		return nil
	}
	d.taken = true
	goruntime.SetFinalizer(d, nil)
	return d.owner.drop()
}
