package native

import (
	"context"
	"errors"
	goruntime "runtime"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

// Operand is what a scope, or a job, lends to native code: an array, for reading or
// writing, or a deposit.
type Operand struct {
	array   *tensor.Array
	write   bool
	deposit *Deposit
	kind    operandKind
}

type operandKind uint8

const (
	anArray operandKind = iota
	aDeposit
)

// In lends an array that is read. A nil one stands for none: its view is nil.
func In(a *tensor.Array) Operand { return Operand{array: a} }

// Out lends an array that is overwritten.
func Out(a *tensor.Array) Operand { return Operand{array: a, write: true} }

// InOut lends an array that is read and changed in place.
func InOut(a *tensor.Array) Operand { return Operand{array: a, write: true} }

// Into lends a deposit that is filled. At the scope's end it is closed, filled or not.
func Into(d *Deposit) Operand { return Operand{deposit: d, kind: aDeposit} }

// Scope is what a function that Session.Do calls has of the session and the operands.
// It is good until the function is left; afterwards Err says so, Handle is nil and
// views are cleared, all of which native code refuses as well.
type Scope struct {
	core     *core
	views    []View
	held     []buffer.Held
	deposits []*Deposit // by operand; nil without any
	inline   [4]buffer.Held
	args     bindArgs
	ended    bool
}

// Do lends the operands to native code while body runs, on the session's handle:
//
//	err := session.Do(ctx, func(sc *native.Scope) error {
//		return library.Check("kmeans-fit", func() int32 {
//			return fit(sc.Handle(), sc.View(0), nil, sc.View(1), 0, 300, 1e-4, 1, 0, 42, &inertia, &rounds)
//		})
//	}, native.In(x), native.InOut(centroids))
//
// Before body, it waits until the work that was queued on each array is done. When ctx
// ends before that, or has ended, body is not called. On every way out of body, a panic
// and runtime.Goexit included, the views are cleared; that waits for nothing, and later
// operations on the arrays come after what the session's stream has been given. An
// entry point that leaves work queued on another stream synchronises before it returns.
// Meanwhile the arrays cannot be freed, and operations that exclude their use here are
// ErrBusy.
//
// It answers body's error. An array of an element type other than float32, float64,
// int32 and int64, one that was freed, a deposit that cannot be filled any more and a
// closed session are refused, of kind logic, before body is called.
func (s *Session) Do(ctx context.Context, body func(*Scope) error, operands ...Operand) (err error) {
	const who = "Session.Do"
	c, err := s.use(who)
	if err != nil {
		return err
	}
	if body == nil {
		return weir.Argf(who, "the function is nil; expected one to call")
	}
	if err := tensor.Recordable(ctx, who); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &weir.Error{Op: who, Device: c.resources.Device().Name(), Message: "the function was not called", Err: weir.Cancelled(context.Cause(ctx))}
	}
	sc := &Scope{core: c}
	if err := sc.begin(ctx, who, operands); err != nil {
		return err
	}
	goruntime.KeepAlive(s) // from here on the scope keeps the core
	defer sc.end(&err)
	return body(sc)
}

func (sc *Scope) begin(ctx context.Context, who string, operands []Operand) error {
	c := sc.core
	sc.views = make([]View, len(operands))
	if sc.held = sc.inline[:0]; len(operands) > len(sc.inline) {
		sc.held = make([]buffer.Held, 0, len(operands))
	}
	for i := range operands {
		o := &operands[i]
		if o.kind == aDeposit {
			if sc.deposits == nil {
				sc.deposits = make([]*Deposit, len(operands))
			}
			if err := o.deposit.bindable(who); err != nil {
				return err
			}
		}
		if err := sc.views[i].describe(who, o.array); err != nil {
			return err
		}
		if o.array != nil {
			sc.held = append(sc.held, buffer.Held{Buffer: o.array.Buffer(), Write: o.write})
		}
	}
	if err := c.lend(ctx, who, "", sc.held); err != nil {
		return err
	}
	k := 0
	for i := range operands {
		o := &operands[i]
		if o.array == nil {
			continue
		}
		if err := c.bindView(who, &sc.views[i], o.array, &sc.held[k], &sc.args); err != nil {
			sc.end(&err)
			return err
		}
		k++
	}
	for i := range operands {
		if d := operands[i].deposit; d != nil {
			if err := d.bind(who, false); err != nil {
				sc.end(&err)
				return err
			}
			sc.deposits[i] = d
		}
	}
	return nil
}

// end takes back what was lent, and adds to *err what fails.
func (sc *Scope) end(err *error) {
	sc.ended = true
	for i := range sc.views {
		sc.views[i].clear()
	}
	for _, d := range sc.deposits {
		if d != nil {
			d.unbind()
		}
	}
	if failed := sc.core.takeBack("", sc.held); failed != nil {
		*err = errors.Join(*err, failed)
	}
}

// lend opens accesses of what native code is to use, once its queued work is done,
// and keeps the session until takeBack.
func (c *core) lend(ctx context.Context, who, job string, held []buffer.Held) error {
	if len(held) > 0 {
		if err := buffer.Hold(ctx, who, held); err != nil {
			if errors.Is(err, weir.ErrCancelled) {
				err = &weir.Error{Op: who, Device: c.resources.Device().Name(), Message: "the work that was queued on an array is not done", Err: err}
			}
			return err
		}
	}
	err := c.enter(who, job)
	if err != nil {
		buffer.Drop(held, stream.Completion{})
	}
	return err
}

// takeBack publishes what the session's stream has been given as the arrays' latest
// use, and lets the session go.
func (c *core) takeBack(job string, held []buffer.Held) error {
	var err error
	if len(held) > 0 {
		var done stream.Completion
		done, err = c.tail()
		buffer.Drop(held, done)
	}
	c.leave(job)
	return err
}

// Handle is the pointer that entry points take; nil after the end.
func (sc *Scope) Handle() unsafe.Pointer {
	if sc.ended {
		return nil
	}
	return sc.core.handle
}

// View is the view of operand i: nil where that is a nil array, or a deposit. After
// the end it is cleared.
func (sc *Scope) View(i int) *View {
	if sc.views[i].rank == rankAbsent {
		return nil
	}
	return &sc.views[i]
}

// Record is what entry points take of operand i, a deposit; nil where it is none, and
// after the end.
func (sc *Scope) Record(i int) *Record {
	if sc.ended || sc.deposits == nil || sc.deposits[i] == nil {
		return nil
	}
	return sc.deposits[i].owner.record
}

// Err is nil, or says that the scope ended.
func (sc *Scope) Err() error {
	if sc.ended {
		return refuse("native.Scope", weir.ErrClosed, "used after it ended")
	}
	return nil
}

// describe fills in what a view shows of an array, but for where that lies.
func (v *View) describe(who string, a *tensor.Array) error {
	v.clear()
	if a == nil {
		v.rank = rankAbsent
		return nil
	}
	if a.Buffer() == nil {
		return refuse(who, nil, "expected a device array or nil for a view, given the zero Array")
	}
	dt := a.DType()
	if !known(dt) {
		return refuse(who, nil, "expected an array of float32, float64, int32 or int64, given one of %v", dt)
	}
	rank := a.LayoutInto(v.shape[:], v.strides[:])
	if rank > maxRank {
		return refuse(who, nil, "expected an array of rank %d or less, given one of rank %d", maxRank, rank)
	}
	if !a.Buffer().Live() {
		return refuse(who, weir.ErrClosed, "the %v array of rank %d was freed; expected a live one", dt, rank)
	}
	v.dtype, v.rank = int32(dt), int32(rank)
	return nil
}

// place is where arrays of a device lie, as views name it.
func place(d runtime.Device) (memory, device int32) {
	if d.IsHost() {
		return memoryHost, 0
	}
	return memoryDevice, int32(d.Ordinal())
}

// bindArgs are the arguments of rr_view_bind, kept on the heap.
type bindArgs [6]uintptr

// bindView has the runtime library give a view its pointer, which it alone does.
func (c *core) bindView(who string, v *View, a *tensor.Array, h *buffer.Held, args *bindArgs) error {
	memory, device := c.memory, c.device
	if r := h.Buffer.Memory().Resources(); r != c.resources { // the native side refuses it, by its name there
		memory, device = place(r.Device())
	}
	*args = bindArgs{uintptr(h.Ptr), uintptr(h.Bytes), uintptr(memory), uintptr(device), uintptr(int64(a.Offset()) * a.DType().Size()), address(v)}
	if invoke(c.bind, args[:]...) == 0 {
		return nil
	}
	// The reason is the calling thread's, so it is called again on a locked one.
	return c.call(who, c.bind, args[:]...)
}
