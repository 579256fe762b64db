package tensor

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/graph"
	"github.com/weirgo/weir/provider/blas"
)

// Recording is operations that are noted in the order in which they were asked for,
// with their addresses, instead of being submitted. It is for tensor/flow, which
// makes graphs of it. Operations under its context are recorded; what cannot be is
// refused with an ErrNotRecordable.
//
// A recording has an order of its own: each operation comes after the latest that
// wrote what it reads, and after all that used what it writes. What it makes stays
// until its Arrays give it back, since each launch uses the same addresses; so
// freeing it does nothing.
type Recording struct {
	memory *buffer.Memory
	arrays *Arrays

	mu      sync.Mutex // guards what follows
	nodes   []graph.Node
	uses    map[*buffer.Buffer]*uses
	outside []*buffer.Buffer // what operations use and was not made here, in the order of first use
	refused error
	ended   bool
}

// uses are the nodes that a later user of a buffer comes after.
type uses struct {
	inside  bool // it was made here
	writer  int  // -1 if there is none
	readers []int
	written bool
}

// Outside is a buffer that a recording uses and did not make.
type Outside struct {
	Buffer  *buffer.Buffer
	Written bool
}

type recordingKey struct{}

// NewRecording begins a recording of operations on memory m, which takes what they
// make from arrays, but for those of the inputs' buffers.
func NewRecording(m *buffer.Memory, arrays *Arrays, inputs ...*buffer.Buffer) *Recording {
	arrays.again(inputs)
	return &Recording{memory: m, arrays: arrays, uses: map[*buffer.Buffer]*uses{}}
}

// Under is ctx for what is to be recorded: without its scope, since what is made
// belongs to the recording's arrays.
func (r *Recording) Under(ctx context.Context) context.Context {
	return context.WithValue(unscoped(ctx), recordingKey{}, r)
}

// recordingOf is the recording that operations under ctx are to be in, or nil.
func recordingOf(ctx context.Context) *Recording {
	r, _ := ctx.Value(recordingKey{}).(*Recording)
	return r
}

// End ends the recording, and answers why it is none if something was refused.
// What is asked for later is refused too.
func (r *Recording) End() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.refused
}

// Refuse notes that op cannot be recorded, and answers that.
func (r *Recording) Refuse(op, why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refuse(op, why)
}

func (r *Recording) refuse(op, why string) error {
	err := &weir.Error{Op: op, Kind: weir.KindLogic, Message: why, Err: weir.ErrNotRecordable}
	if r.refused == nil {
		r.refused = err
	}
	return err
}

// recordable is nil unless ctx is a recording's, which then refuses op.
func recordable(ctx context.Context, op, why string) error {
	if r := recordingOf(ctx); r != nil {
		return r.Refuse(op, why)
	}
	return nil
}

// Nodes are the operations, as a graph has them.
func (r *Recording) Nodes() []graph.Node { return r.nodes }

// Outside is what the operations use and was made elsewhere.
func (r *Recording) Outside() []Outside {
	all := make([]Outside, len(r.outside))
	for i, b := range r.outside {
		all[i] = Outside{b, r.uses[b].written}
	}
	return all
}

// Made says whether the buffer was made in the recording.
func (r *Recording) Made(b *buffer.Buffer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.uses[b]
	return u != nil && u.inside
}

// note is an operation that is being recorded. It becomes a node when it ends, so
// one that never does, because it panicked, is none and is in nobody's way.
type note struct {
	recording *Recording
	steps     []graph.Step
	opened    []opened
}

// begin opens an operation, which end closes.
func (r *Recording) begin() (*note, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, &weir.Error{Op: "tensor.Recording", Kind: weir.KindLogic, Message: "the recording has ended; its context is of no use any more", Err: weir.ErrClosed}
	}
	return &note{recording: r}, nil
}

// end closes the operation. One that failed, or submits nothing, is none.
func (n *note) end(err error) error {
	if err != nil || len(n.steps) == 0 {
		return err
	}
	r := n.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.nodes)
	node := graph.Node{Steps: n.steps}
	for _, o := range n.opened {
		r.follow(&node, i, o)
	}
	r.nodes = append(r.nodes, node)
	return nil
}

// follow has node i come after whoever used what it opened.
func (r *Recording) follow(n *graph.Node, i int, o opened) {
	u := r.uses[o.buffer]
	if u == nil {
		u = &uses{writer: -1}
		r.uses[o.buffer] = u
		r.outside = append(r.outside, o.buffer)
	}
	after := func(k int) {
		if k >= 0 && k != i && !slices.Contains(n.After, k) {
			n.After = append(n.After, k)
		}
	}
	after(u.writer)
	if !o.write {
		u.readers = append(u.readers, i)
		return
	}
	for _, k := range u.readers {
		after(k)
	}
	u.writer, u.readers, u.written = i, u.readers[:0], true
}

// record is lease of an operation that is recorded.
func (r *Recording) record(do func(*operation) error) error {
	n, err := r.begin()
	if err != nil {
		return err
	}
	x := &operation{note: n, acc: buffer.BeginRecording(n)}
	err = do(x)
	return n.end(join(err, x.acc.End()))
}

// Memory and Opened are of buffer.Recorder.
func (n *note) Memory() *buffer.Memory { return n.recording.memory }

func (n *note) Opened(b *buffer.Buffer, write bool) {
	n.opened = append(n.opened, opened{buffer: b, read: !write, write: write})
}

// step adds a submission to the operation.
func (n *note) step(product bool, submit func(driver.Stream, driver.BLAS) error) {
	n.steps = append(n.steps, graph.Step{Product: product, Submit: submit})
}

func (n *note) gemm(p *blas.Product) {
	g := *p
	n.step(true, func(s driver.Stream, h driver.BLAS) error { return h.Gemm(s, &g) })
}

func (n *note) groups(all []blas.Group) {
	all = slices.Clone(all)
	for i := range all {
		g := &all[i]
		g.As, g.Bs, g.Cs = slices.Clone(g.As), slices.Clone(g.Bs), slices.Clone(g.Cs)
	}
	n.step(true, func(s driver.Stream, h driver.BLAS) error { return h.GemmGroups(s, all) })
}

// tape is the stream of an operation that is recorded. Operations call no methods
// but these.
type tape struct {
	driver.Stream
	note *note
}

func (t tape) Launch(k *driver.Kernel) error {
	own := *k
	for _, v := range []*driver.View{&own.Out, &own.A, &own.B} {
		v.Shape, v.Strides = slices.Clone(v.Shape), slices.Clone(v.Strides)
	}
	t.note.step(false, func(s driver.Stream, _ driver.BLAS) error { return s.Launch(&own) })
	return nil
}

func (t tape) Zero(dst driver.Ptr, bytes int64) error {
	t.note.step(false, func(s driver.Stream, _ driver.BLAS) error { return s.Zero(dst, bytes) })
	return nil
}

func (t tape) CopyIn(driver.Ptr, []byte) error {
	return t.note.recording.Refuse("tensor", "a copy from host memory")
}

func (t tape) CopyOut([]byte, driver.Ptr) error {
	return t.note.recording.Refuse("tensor", "a copy to host memory waits for the device")
}

func (t tape) CopyPeer(driver.Ptr, int, driver.Ptr, int, int64) error {
	return t.note.recording.Refuse("tensor", "a copy between devices")
}

// empty makes an array of the recording.
func (r *Recording) empty(op string, m *buffer.Memory, dt DType, shape []int64, bytes int64) (*Array, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m != r.memory {
		return nil, r.refuse(op, fmt.Sprintf("its result is on %s; a graph of %s has none of another device", m.Resources().Device(), r.memory.Resources().Device()))
	}
	owner, err := r.arrays.take(m, bytes)
	if err != nil {
		return nil, err
	}
	r.uses[owner.Buffer()] = &uses{inside: true, writer: -1}
	return &Array{root: owner, dtype: dt, layout: rowMajor(shape)}, nil
}

// Arrays are the memory of recordings that are launched one after the other: a
// later one takes the same again, as far as it fits. It belongs to one goroutine at
// a time.
type Arrays struct {
	all  []*Array
	free map[int64][]*Array // by size, in the order in which they were made
}

// again has a recording begin with all that no input lies in.
func (x *Arrays) again(inputs []*buffer.Buffer) {
	x.free = map[int64][]*Array{}
	for _, a := range x.all {
		if slices.Contains(inputs, a.Buffer()) {
			continue
		}
		n := a.own.Bytes()
		x.free[n] = append(x.free[n], a)
	}
}

func (x *Arrays) take(m *buffer.Memory, bytes int64) (*Array, error) {
	if spare := x.free[bytes]; len(spare) > 0 {
		x.free[bytes] = spare[1:]
		return spare[0], nil
	}
	a := &Array{dtype: Int32, layout: rowMajor([]int64{bytes / 4}), kept: true}
	if err := m.Init(&a.own, bytes); err != nil {
		return nil, err
	}
	x.all = append(x.all, a)
	return a, nil
}

// Like makes one of a's shape, element type and device, for results of programs that
// are run and not launched.
func (x *Arrays) Like(a *Array) (*Array, error) {
	if err := a.usable("tensor.Arrays", "a"); err != nil {
		return nil, err
	}
	owner, err := x.take(a.memory(), max(a.size(), 1)*a.dtype.Size())
	if err != nil {
		return nil, err
	}
	return &Array{root: owner, dtype: a.dtype, layout: rowMajor(a.shape())}, nil
}

// All are the arrays that own the memory.
func (x *Arrays) All() []*Array { return x.all }

// Free gives the memory back; nothing that was recorded runs or will.
func (x *Arrays) Free() error {
	errs := make([]error, len(x.all))
	for i, a := range x.all {
		errs[i] = a.own.Free()
	}
	x.all, x.free = nil, nil
	return join(errs...)
}
