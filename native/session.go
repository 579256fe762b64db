package native

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Session is the resources of native calls on one device: a handle that entry points
// take, a stream of its own on which they run, and a worker thread for jobs. Calls and
// jobs of several sessions run at the same time. It is safe for concurrent use.
//
// One that nobody uses any more is closed when the collector finds it.
type Session struct{ core *core }

// core is a session without the object that the collector watches: deposits and their
// arrays refer to it, and keep the handle alive after Close.
//
// mu guards what follows it and is held for a few instructions.
type core struct {
	*entries
	service   *sessions
	resources *runtime.Resources
	memory    int32 // of the device's arrays
	device    int32
	native    uintptr // its rr_resources
	handle    unsafe.Pointer
	streams   *stream.Pool
	stream    stream.Stream
	shared    stream.Stream // a second handle, see tail
	blas      driver.BLAS
	solver    driver.Solver
	turns     *lease.Pool[*worker, stream.Completion] // of one: jobs queue for it
	worker    worker
	stack     string

	mu      sync.Mutex
	closed  bool // to new use
	owned   bool // by somebody who has not closed it
	running int  // scopes, and jobs whose turn it is
	held    int  // deposits that were filled and not given up
	job     string
	freed   bool
	quiet   chan struct{} // closed when it is closed and nothing runs
}

// worker is the right to have the worker thread run a job.
type worker struct{ done *signal }

// NewSession makes a session on ctx's device. It ends with Close.
func NewSession(ctx context.Context) (*Session, error) {
	r, err := runtime.Here(ctx)
	if err != nil {
		return nil, err
	}
	return NewSessionOn(r)
}

// NewSessionOn makes a session on the device of r. The first one loads the runtime
// library for such devices; where it is not, the error is an ErrNotSupported.
func NewSessionOn(r *runtime.Resources) (*Session, error) {
	const op = "native.NewSession"
	if r == nil {
		return nil, weir.Argf(op, "the resources are nil; expected those of a device")
	}
	e, err := flavourOf(r.Device()).load(op)
	if err != nil {
		return nil, err
	}
	service, err := runtime.Use(r, runtime.StageSession, newSessions)
	if err != nil {
		return nil, err
	}
	c := &core{entries: e, service: service, resources: r, owned: true, quiet: make(chan struct{})}
	c.memory, c.device = place(r.Device())
	if r.Options().Debug {
		c.stack = callers.Stack()
	}
	if err := c.open(op); err != nil {
		return nil, errors.Join(err, c.dismantle())
	}
	c.turns = lease.New[*worker, stream.Completion](lease.Config[*worker]{Name: "native job", Device: r.Device().Driver()}, []*worker{&c.worker})
	if err := service.add(c); err != nil {
		return nil, errors.Join(err, c.dismantle())
	}
	s := &Session{c}
	goruntime.SetFinalizer(s, func(s *Session) {
		service.abandon(func() error { return c.shut(true) })
	})
	return s, nil
}

// open makes the parts, of which dismantle takes down those that there are.
func (c *core) open(op string) (err error) {
	d := c.resources.Device().Driver()
	if c.streams, err = stream.NewPool(d, stream.Options{Count: 1}); err != nil {
		return err
	}
	if c.stream, err = c.streams.Acquire(context.Background()); err != nil {
		return err
	}
	if c.shared, err = c.stream.Retain(); err != nil {
		return err
	}
	var raw, cublas, cusolver uintptr
	if c.memory == memoryDevice {
		if raw, err = c.stream.Native(); err != nil {
			return err
		}
		if c.blas, err = d.NewBLAS(); err != nil {
			return err
		}
		if c.solver, err = d.NewSolver(); err != nil {
			return err
		}
		cublas, cusolver = nativeOf(c.blas), nativeOf(c.solver)
	}
	var made, handle uintptr
	if err := c.call(op, c.create, uintptr(c.device), raw, cublas, cusolver, address(&made)); err != nil {
		return err
	}
	c.native = made
	if err := c.call(op, c.entries.handle, c.native, address(&handle)); err != nil {
		return err
	}
	c.handle = hostmem.Pointer(handle)
	return nil
}

// nativeOf is a library's own handle, 0 of a family that has none to show: RAFT makes
// one then.
func nativeOf(handle any) uintptr {
	if h, ok := handle.(interface{ Native() uintptr }); ok {
		return h.Native()
	}
	return 0
}

// dismantle takes the parts down. Nothing runs.
func (c *core) dismantle() error {
	var errs []error
	if c.native != 0 {
		const who = "Session.Close"
		errs = append(errs, c.call(who, c.synchronize, c.native), c.call(who, c.entries.release, c.native))
	}
	if c.solver != nil {
		errs = append(errs, c.solver.Destroy())
	}
	if c.blas != nil {
		errs = append(errs, c.blas.Destroy())
	}
	if c.streams != nil {
		errs = append(errs, c.shared.Release(), c.stream.Release(), c.streams.Close())
	}
	return errors.Join(append(errs, c.worker.done.close())...)
}

// Device is where the session's calls run.
func (s *Session) Device() runtime.Device { return s.core.resources.Device() }

// Handle answers the pointer that entry points take for the session: it is borrowed,
// and ends with the session, which the caller keeps reachable. A scope's handle needs
// no such care.
func (s *Session) Handle() (unsafe.Pointer, error) {
	const who = "Session.Handle"
	c, err := s.use(who)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, c.released(who)
	}
	return c.handle, nil
}

// use refuses what no session is.
func (s *Session) use(who string) (*core, error) {
	if s == nil || s.core == nil {
		return nil, refuse(who, weir.ErrArgument, "the session is %s; expected one that NewSession made", none(s == nil, "Session"))
	}
	return s.core, nil
}

func (c *core) released(who string) error {
	return refuse(who, weir.ErrClosed, "the device resources on device %d were released", c.device)
}

// enter says that a scope, or the job of that name, begins; leave that it ended.
func (c *core) enter(who, job string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.released(who)
	}
	c.running++
	if job != "" {
		c.job = job
	}
	return nil
}

func (c *core) leave(job string) {
	c.mu.Lock()
	c.running--
	if job != "" {
		c.job = ""
	}
	last := c.endLocked()
	c.mu.Unlock()
	if last {
		c.service.note(c.finish())
	}
}

// hold keeps the handle alive for a deposit's memory until let.
func (c *core) hold() {
	c.mu.Lock()
	c.held++
	c.mu.Unlock()
}

func (c *core) let() error {
	c.mu.Lock()
	c.held--
	last := c.endLocked()
	c.mu.Unlock()
	if last {
		return c.finish()
	}
	return nil
}

// finish dismantles the session, once. One that somebody still owns is kept in the
// list, as a leak.
func (c *core) finish() error {
	err := c.dismantle()
	c.mu.Lock()
	owned := c.owned
	c.mu.Unlock()
	if !owned {
		c.service.drop(c)
	}
	return err
}

// endLocked answers, once, that the closed session is to be dismantled now.
func (c *core) endLocked() (last bool) {
	if !c.closed || c.running > 0 {
		return false
	}
	select {
	case <-c.quiet:
	default:
		close(c.quiet)
	}
	if c.held > 0 || c.freed {
		return false
	}
	c.freed = true
	return true
}

// shut closes the session to new use, and dismantles it if nothing runs.
func (c *core) shut(disown bool) error {
	c.mu.Lock()
	c.closed = true
	c.owned = c.owned && !disown
	last := c.endLocked()
	freed := c.freed
	c.mu.Unlock()
	c.turns.Close() // who waits for his turn learns of it
	if last {
		return c.finish()
	}
	if disown && freed {
		c.service.drop(c)
	}
	return nil
}

// Close refuses further use of the session, and frees its handle once what runs has
// ended. It waits for that as runtime.Options.ExitWait says, and then answers an
// ErrLeak that names the job: what that holds, and the handle, are freed when it
// returns. Arrays of deposits stay good, and the handle with them. It must not be
// called from inside the session's own scopes. A second Close does nothing.
func (s *Session) Close() error {
	const who = "Session.Close"
	c, err := s.use(who)
	if err != nil {
		return err
	}
	c.mu.Lock()
	again := !c.owned
	c.mu.Unlock()
	if again {
		return nil
	}
	goruntime.SetFinalizer(s, nil)
	err = c.shut(true)
	return errors.Join(err, c.await(who, until(c.resources.Options().ExitWait)))
}

// until is a channel that says when wait is over; never, if that is negative.
func until(wait time.Duration) <-chan time.Time {
	if wait < 0 {
		return nil
	}
	return time.After(wait)
}

// await waits until nothing of the closed session runs. Past the deadline it says
// what does.
func (c *core) await(who string, deadline <-chan time.Time) error {
	select {
	case <-c.quiet:
		return nil
	default:
	}
	select {
	case <-c.quiet:
		return nil
	case <-deadline:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	what := "a scope of the session"
	if c.job != "" {
		what = "the job " + c.job
	}
	return &weir.Error{Op: who, Device: c.resources.Device().Name(), Kind: weir.KindLogic, Err: weir.ErrLeak, Stack: c.stack,
		Message: fmt.Sprintf("%s still runs after %v (Options.ExitWait); what it holds is freed when it returns", what, c.resources.Options().ExitWait)}
}

// tail is a completion of all that native code was given the stream for: zero where
// nothing is left, which is asked since a record would be one more thing that the next
// scope waits for. Native code may have submitted anything at any time, and another call
// may be submitting now, so what is recorded is never taken for all: a second handle of
// the stream sees to that.
func (c *core) tail() (stream.Completion, error) {
	if c.memory == memoryDevice {
		if idle, err := c.stream.Everything().Done(); idle && err == nil {
			return stream.Completion{}, nil
		}
		if _, err := c.stream.Submit(); err != nil {
			return stream.Completion{}, err
		}
	}
	done, err := c.stream.Tail()
	if err != nil && errors.Is(err, weir.ErrStale) {
		done = c.stream.Everything()
	}
	return done, err
}

// sessions are those of one device.
type sessions struct {
	resources *runtime.Resources

	mu      sync.Mutex // guards what follows; no session is called under it
	all     map[*core]bool
	drained bool
	leaving int       // what the collector found and is being given up
	settled sync.Cond // leaving became 0
	errs    []error
}

func newSessions(r *runtime.Resources) (*sessions, error) {
	s := &sessions{resources: r, all: map[*core]bool{}}
	s.settled.L = &s.mu
	return s, nil
}

func (s *sessions) add(c *core) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained {
		return &weir.Error{Op: "native.NewSession", Device: s.resources.Device().Name(), Kind: weir.KindLogic, Message: "the runtime is closing", Err: weir.ErrClosed}
	}
	s.all[c] = true
	return nil
}

func (s *sessions) drop(c *core) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
}

// note keeps an error that nobody waits for; Close answers it.
func (s *sessions) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

// abandon is for the collector: it has what was found given up, elsewhere.
func (s *sessions) abandon(giveUp func() error) {
	s.mu.Lock()
	s.leaving++
	s.mu.Unlock()
	go func() {
		err := giveUp()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.errs = append(s.errs, err)
		}
		if s.leaving--; s.leaving == 0 {
			s.settled.Broadcast()
		}
	}()
}

// settle waits until nothing is being given up.
func (s *sessions) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.leaving > 0 {
		s.settled.Wait()
	}
}

func (s *sessions) list() (all []*core) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		all = append(all, c)
	}
	return all
}

// Drain refuses new use of every session, and waits for what runs.
func (s *sessions) Drain() error {
	s.mu.Lock()
	again := s.drained
	s.drained = true
	s.mu.Unlock()
	if again { // what there was to say was said
		return nil
	}
	var errs []error
	all := s.list()
	for _, c := range all {
		errs = append(errs, c.shut(false))
	}
	deadline := until(s.resources.Options().ExitWait)
	for _, c := range all {
		err := c.await("runtime.Close", deadline)
		if errs = append(errs, err); err != nil { // the deadline is over for the others too
			over := make(chan time.Time)
			close(over)
			deadline = over
		}
	}
	return errors.Join(errs...)
}

// Close answers what failed meanwhile. What still runs is left alone.
func (s *sessions) Close() error {
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// Live lists the sessions that nobody closed, or whose handle a deposit's memory keeps.
func (s *sessions) Live() []runtime.Leak {
	s.settle()
	var live []runtime.Leak
	for _, c := range s.list() {
		c.mu.Lock()
		if c.owned || c.held > 0 {
			leak := runtime.Leak{Kind: "native session", Device: s.resources.Device().Name(), Stack: c.stack}
			if !c.owned {
				leak.Name = "of a deposit"
			}
			live = append(live, leak)
		}
		c.mu.Unlock()
	}
	return live
}
