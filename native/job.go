package native

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/internal/sharedlib"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

// Job is a job entry of a library, with the types of the entry point's parameters. It
// is safe for concurrent use.
type Job struct {
	library *Library
	entry   uintptr
	params  []Param
	offsets []uintptr
	bytes   uintptr // of a block
	taken   int     // how many arguments Run takes
	frames  sync.Pool
}

// Job declares a job: the name of its entry, void f(void *args, size_t args_len,
// rr_job_outcome *outcome), and the types of the entry point's parameters in order:
//
//	fit, err := library.Job("canary", "kc_fit_job", native.Handle, native.ViewIn, native.ViewIn, native.ViewInOut,
//		native.Int32, native.Int32, native.Float64, native.Int32, native.Float64, native.Uint64,
//		native.OutFloat64, native.OutInt32)
//
// They must be those of the entry point. An entry refuses a block whose size differs
// from what its parameters take; of types of one size nobody can tell.
func (l *Library) Job(who, symbol string, params ...Param) (*Job, error) {
	for i, p := range params {
		if p >= paramCount {
			return nil, weir.Argf(who, "parameter %d of %s is %v; expected one of native's constants", i, symbol, p)
		}
	}
	at, err := l.Symbol(who, symbol)
	if err != nil {
		return nil, err
	}
	j := &Job{library: l, entry: at, params: slices.Clone(params)}
	j.offsets, j.bytes = layout(params)
	for _, p := range params {
		if p != Handle {
			j.taken++
		}
	}
	j.frames.New = func() any { return &frame{block: make([]uint64, max(j.bytes/8, 1))} }
	return j, nil
}

// outcome is the rr_job_outcome.
type outcome struct {
	status  int32
	kind    int32
	message [messageBytes]byte
}

// frame is what a job that was asked for has in memory. The worker writes to block
// and outcome, so they are pinned while it has them.
type frame struct {
	block    []uint64
	outcome  outcome
	pinner   goruntime.Pinner
	held     []buffer.Held
	deposits []*Deposit
	args     bindArgs
}

// Run runs the job on the session's worker and waits until it has returned; other
// goroutines run meanwhile, and a task gives its lane back. args are the arguments in
// order, without the handle, as Param says. Jobs of one session run one at a time, in
// the order in which they were asked for.
//
// Each array is lent once the work queued on it is done, and later operations on it
// come after the job. The job holds what it was given, and the session's handle, until
// it returns. A failure of the entry point is an error as Checker.Check makes it, with
// who, and the job's message and kind.
//
// Refused before the job is made are: a closed session or a freed array, an argument
// for a view that is neither a *tensor.Array nor nil, one for a deposit that is none,
// a deposit that cannot be filled any more, and a call from inside Checker.Check or a
// callback of a device, where nobody may wait, all of kind logic; and an argument that
// its type refuses, an ErrArgument. When ctx ends before the job's turn has come, it
// is not made. When ctx ends later, that is answered once the job has returned, and
// its outputs are dropped; a deposit that it filled stays filled.
func (j *Job) Run(ctx context.Context, s *Session, who string, args ...any) error {
	if inside := within(); inside != "" {
		return refuse(who, nil, "a job was asked for inside %s, where nothing may wait; ask for it outside", inside)
	}
	if j == nil || j.library == nil {
		return refuse(who, weir.ErrArgument, "the job is %s; expected one that Library.Job made", none(j == nil, "Job"))
	}
	c, err := s.use(who)
	if err != nil {
		return err
	}
	if c.flavour != j.library.runtime.flavour {
		return refuse(who, weir.ErrArgument, "the library %s was opened for %s and the session is on %s", j.library.file.Path, j.library.runtime.flavour.what, c.resources.Device())
	}
	if err := tensor.Recordable(ctx, who); err != nil {
		return err
	}
	if _, err := s.Handle(); err != nil {
		return c.released(who)
	}
	f := j.frames.Get().(*frame)
	defer j.recycle(f)
	if err := j.fill(f, c, who, args); err != nil {
		return err
	}
	defer goruntime.KeepAlive(s)
	turn, err := c.turns.Acquire(ctx)
	if err != nil {
		return c.noTurn(who, err)
	}
	if err := j.run(ctx, c, f, turn, who, args); err != nil {
		return err
	}
	return j.answer(ctx, f, who, args)
}

// recycle keeps the frame for a later job.
func (j *Job) recycle(f *frame) {
	clear(f.held)
	clear(f.deposits)
	f.held, f.deposits = f.held[:0], f.deposits[:0]
	j.frames.Put(f)
}

func (f *frame) at(offset uintptr) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(&f.block[0]), offset)
}

// fill writes the block, but for where arrays lie.
func (j *Job) fill(f *frame, c *core, who string, args []any) error {
	if len(args) != j.taken {
		return weir.Argf(who, "%d arguments; expected %d: %v", len(args), j.taken, slices.DeleteFunc(slices.Clone(j.params), func(p Param) bool { return p == Handle }))
	}
	clear(f.block)
	k := 0
	for i, p := range j.params {
		at := f.at(j.offsets[i])
		if p == Handle {
			*(*uintptr)(at) = uintptr(c.handle)
			continue
		}
		arg := args[k]
		if err := p.put(who, at, k, arg); err != nil {
			return err
		}
		k++
		switch x := arg.(type) {
		case *tensor.Array:
			if x != nil {
				f.held = append(f.held, buffer.Held{Buffer: x.Buffer(), Write: p != ViewIn})
			}
		case *Deposit:
			f.deposits = append(f.deposits, x)
			*(*uintptr)(at) = address(x.owner.record)
		}
	}
	return nil
}

// run makes the job, once its turn has come, and waits for it. When it returns the
// session has been let go and the next job may run.
func (j *Job) run(ctx context.Context, c *core, f *frame, turn lease.Handle[*worker, stream.Completion], who string, args []any) (err error) {
	if err := c.lend(ctx, who, who, f.held); err != nil {
		turn.Release(stream.Completion{})
		return err
	}
	lane := scheduler.LaneOf(ctx)
	yielded := false
	// Who closes the session, or waits for the next turn, may do so on the task's
	// lane: so that comes last.
	defer func() {
		for _, d := range f.deposits {
			d.unbind()
		}
		if failed := c.takeBack(who, f.held); failed != nil {
			err = errors.Join(err, failed)
		}
		turn.Release(stream.Completion{})
		if yielded {
			lane.Resume()
		}
	}()
	if err := j.bind(c, f, who, args); err != nil {
		return err
	}
	if c.worker.done == nil {
		if c.worker.done, err = newSignal(); err != nil {
			return &weir.Error{Op: who, Device: c.resources.Device().Name(), Message: "the job cannot be submitted", Err: err}
		}
	}
	f.outcome.status, f.outcome.kind, f.outcome.message[0] = 0, 0, 0
	f.pinner.Pin(&f.block[0])
	f.pinner.Pin(&f.outcome)
	for _, d := range f.deposits {
		f.pinner.Pin(d.owner.record)
	}
	defer f.pinner.Unpin()
	if err := c.call(who, c.entries.job, c.native, j.entry, address(&f.block[0]), j.bytes, address(&f.outcome), uintptr(c.worker.done.fd)); err != nil {
		return err
	}
	yielded = true
	lane.Yield(running{who, c})
	c.worker.done.wait()
	return nil
}

// bind gives views their pointers, and takes deposits for the job.
func (j *Job) bind(c *core, f *frame, who string, args []any) error {
	views, deposits := 0, 0
	k := 0
	for i, p := range j.params {
		if p == Handle {
			continue
		}
		arg := args[k]
		k++
		switch p {
		case ViewIn, ViewOut, ViewInOut:
			a, _ := arg.(*tensor.Array)
			if a == nil {
				continue
			}
			if err := c.bindView(who, (*View)(f.at(j.offsets[i])), a, &f.held[views], &f.args); err != nil {
				return err
			}
			views++
		case IntoDeposit:
			if err := f.deposits[deposits].bind(who, true); err != nil {
				f.deposits = f.deposits[:deposits] // what others have is theirs to end
				return err
			}
			deposits++
		}
	}
	return nil
}

// answer is how the job ended. Outputs go to where the caller wants them, unless it
// failed or ctx ended.
func (j *Job) answer(ctx context.Context, f *frame, who string, args []any) error {
	var err error
	if f.outcome.status != 0 {
		message := f.outcome.message[:]
		if n := slices.Index(message, 0); n >= 0 {
			message = message[:n]
		}
		err = j.library.failed(who, f.outcome.status, sharedlib.Valid(message), f.outcome.kind)
	}
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(&weir.Error{Op: who, Message: "the job has returned, after its context ended; its outputs are dropped", Err: weir.Cancelled(cause)}, err)
	}
	if err != nil {
		return err
	}
	k := 0
	for i, p := range j.params {
		if p == Handle {
			continue
		}
		if p >= OutInt32 {
			p.take(f.at(j.offsets[i]), args[k])
		}
		k++
	}
	return nil
}

// noTurn is why a job's turn never came.
func (c *core) noTurn(who string, err error) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed && !errors.Is(err, weir.ErrCancelled) {
		return c.released(who)
	}
	return &weir.Error{Op: who, Device: c.resources.Device().Name(), Message: "the job was not made", Err: err}
}

// running is the wait for a job.
type running struct {
	who  string
	core *core
}

func (r running) String() string {
	return fmt.Sprintf("the native job %s on %s", r.who, r.core.resources.Device())
}
func (running) Ends() scheduler.Ending     { return scheduler.ByDevice }
func (running) Holders() []*scheduler.Task { return nil }
