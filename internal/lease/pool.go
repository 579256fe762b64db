package lease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/scheduler"
)

// Tail is the last work that a slot was given.
type Tail interface {
	comparable
	// Known says whether the work is known to be done, at no cost.
	Known() bool
	// Done says whether the work is done, however it ended. An error of work
	// that is not done means that it could not be asked, or never will be done.
	Done() (bool, error)
	// Notify has w woken when it is.
	Notify(w driver.Waker) error
}

// WatchInterval is how often somebody who waits for a notification asks on his
// own, in case it never comes.
const WatchInterval = 20 * time.Millisecond

// Pool is a fixed set of T. C is the type of their tails.
type Pool[T any, C Tail] struct {
	cfg   Config[T]
	first func(n int) int // see First

	mu      sync.Mutex // guards all below and the slots; see invariant 3
	slots   []*slot[T, C]
	cursor  int // where the search starts: after the slot leased last
	waiters scheduler.Queue[*slot[T, C]]
	closed  bool
	failed  error
	watch   *time.Timer
}

type state uint8

const (
	idle state = iota
	leased
	pending
)

func (s state) String() string { return [...]string{"idle", "leased", "pending"}[s] }

type slot[T any, C Tail] struct {
	pool  *Pool[T, C]
	index int
	value T

	// word is generation<<1 | whether the first holder still holds; it is
	// written under the pool's mutex and read without.
	word    atomic.Uint64
	holders []uint32 // ids of the further holders
	nextID  uint32

	state    state
	tail     C
	refusals int // how often in a row the tail could not be asked, or the thing not be remade
	broken   bool
	probing  bool
	armed    bool
	stack    string
	task     *scheduler.Task // that has it, if Acquire was called in one
}

// move takes the slot from one state to the next. From any other state it is a
// bug of Weir.
func (s *slot[T, C]) move(from, to state) {
	if s.state != from {
		panic(fmt.Sprintf("lease: %s %d was to go from %v to %v and is %v", s.pool.cfg.Name, s.index, from, to, s.state))
	}
	s.state = to
	s.task = nil
}

// Config configures a pool.
type Config[T any] struct {
	Name   string        // what one thing is called in messages: "stream", "blas handle"
	Device driver.Device // whose death ends the pool
	Stacks bool          // remember where each lease was taken
	// Make makes a thing in place of one that its holder called broken, and
	// Discard takes that one. Without Make, broken things stay.
	Make    func() (T, error)
	Discard func(T)
}

// First is for tests that nothing depends on which slot is leased: pools that are
// made while it is set ask it at which of their n slots to begin each search for
// an idle one. It is called under a pool's mutex, by several pools at once.
var First func(n int) int

// New makes a pool of things, all idle.
func New[T any, C Tail](cfg Config[T], things []T) *Pool[T, C] {
	p := &Pool[T, C]{cfg: cfg, first: First}
	for i, t := range things {
		p.slots = append(p.slots, &slot[T, C]{pool: p, index: i, value: t})
	}
	return p
}

// Size is the number of slots.
func (p *Pool[T, C]) Size() int { return len(p.slots) }

// TryAcquire leases an idle slot. ok is false when none is, or when others
// wait. The error is that of a closed or failed pool.
func (p *Pool[T, C]) TryAcquire() (h Handle[T, C], ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.try()
}

// try is TryAcquire under mu, which it lets go of while it asks tails.
func (p *Pool[T, C]) try() (h Handle[T, C], ok bool, err error) {
	if err := p.unusable(); err != nil || p.waiters.Len() > 0 {
		return h, false, err
	}
	if s := p.findIdle(); s != nil {
		return p.lease(s, idle), true, nil
	}
	// What is known to be done comes first, since asking is a driver call, and of
	// that the slot leased last: whoever waits for each operation has the same
	// stream and the same handle every time, and need not bind one to the other.
	n := len(p.slots)
	start := p.start() + n - 1
	for _, ask := range [...]bool{false, true} {
		for i := range p.slots {
			s := p.slots[(start+i)%n]
			if s.state == pending && !s.probing && (ask || s.tail.Known()) {
				p.probe(s)
			}
			// Others came and went while the tail was asked.
			if err := p.unusable(); err != nil || p.waiters.Len() > 0 {
				return h, false, err
			}
			if s.state == idle {
				return p.lease(s, idle), true, nil
			}
		}
		start++
	}
	if s := p.findIdle(); s != nil { // one that was not when it was passed
		return p.lease(s, idle), true, nil
	}
	return h, false, nil
}

// Continue leases the slot whose last work is tail, though that may not be done:
// for work that follows it in any case. ok is false when there is none, or when
// others wait.
func (p *Pool[T, C]) Continue(tail C) (h Handle[T, C], ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.failed != nil || p.waiters.Len() > 0 {
		return h, false
	}
	n := len(p.slots)
	for i := range p.slots { // the slot leased last is the likeliest
		s := p.slots[(p.cursor+n-1-i)%n]
		if s.tail == tail && s.state != leased && !s.probing && !s.broken {
			return p.lease(s, s.state), true
		}
	}
	return h, false
}

// Acquire leases a slot, waiting its turn for one. See scheduler.Park for what
// a task's context adds.
func (p *Pool[T, C]) Acquire(ctx context.Context) (Handle[T, C], error) {
	if err := context.Cause(ctx); err != nil {
		return Handle[T, C]{}, p.gaveUp(ctx, err)
	}
	p.mu.Lock()
	h, ok, err := p.try()
	if ok || err != nil {
		if ok {
			h.slot.task = scheduler.TaskOf(ctx)
		}
		p.mu.Unlock()
		return h, err
	}
	w := p.waiters.Push(ctx)
	var what scheduler.Wait = queueing[T, C]{p}
	if p.waiters.Len() <= p.moving() {
		what = coming[T, C]{queueing[T, C]{p}}
	}
	p.watchLocked()
	for _, s := range p.slots {
		p.attend(s)
	}
	p.mu.Unlock()

	s, delivered, err := w.Wait(ctx, what)
	if delivered {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiters.Recycle(w)
		if err != nil {
			return h, err
		}
		s.task = scheduler.TaskOf(ctx)
		return p.handle(s), nil
	}
	p.mu.Lock()
	left := p.waiters.Remove(w)
	if left {
		p.waiters.Recycle(w)
	}
	p.mu.Unlock()
	if !left {
		if s, gone := w.Result(); gone == nil { // it came too late: the next in line has it
			p.mu.Lock()
			s.move(leased, idle)
			p.offer(s)
			p.mu.Unlock()
		}
	}
	return h, p.gaveUp(ctx, err)
}

// queueing is the wait for a slot.
type queueing[T any, C Tail] struct{ p *Pool[T, C] }

func (q queueing[T, C]) String() string {
	return fmt.Sprintf("one of %d of pool %s of %s", q.p.Size(), q.p.cfg.Name, q.p.cfg.Device.Name())
}

// Ends says that a device is to give a slot to the first in line if work that
// nobody holds is under way.
func (q queueing[T, C]) Ends() scheduler.Ending {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if q.p.moving() > 0 {
		return scheduler.ByQueue
	}
	return scheduler.ByHolder
}

// Holders are the tasks that hold slots, nil for those that Acquire was not told.
func (q queueing[T, C]) Holders() (all []*scheduler.Task) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	for _, s := range q.p.slots {
		if s.state == leased {
			all = append(all, s.task)
		}
	}
	return all
}

// coming is the wait of who has no more in line before him than slots are pending.
type coming[T any, C Tail] struct{ queueing[T, C] }

func (coming[T, C]) Ends() scheduler.Ending { return scheduler.ByDevice }

// moving is, under mu, how many slots a device is to give.
func (p *Pool[T, C]) moving() (n int) {
	for _, s := range p.slots {
		if s.state == pending {
			n++
		}
	}
	return n
}

func (p *Pool[T, C]) gaveUp(ctx context.Context, cause error) error {
	return &weir.Error{Op: p.cfg.Name + ".Acquire", Device: p.cfg.Device.Name(), Message: "gave up waiting", Err: scheduler.GaveUp(ctx, cause)}
}

// unusable is why no slot can be had.
func (p *Pool[T, C]) unusable() error {
	if p.closed {
		return &weir.Error{Op: p.cfg.Name + ".Acquire", Device: p.cfg.Device.Name(), Kind: weir.KindLogic, Message: "the pool is closed", Err: weir.ErrClosed}
	}
	if p.failed != nil {
		return &weir.Error{Op: p.cfg.Name + ".Acquire", Device: p.cfg.Device.Name(), Kind: weir.KindCUDA, Err: p.failed}
	}
	return nil
}

// start is where a search begins.
func (p *Pool[T, C]) start() int {
	if p.first != nil {
		return p.first(len(p.slots))
	}
	return p.cursor
}

func (p *Pool[T, C]) findIdle() *slot[T, C] {
	start := p.start()
	for i := range p.slots {
		if s := p.slots[(start+i)%len(p.slots)]; s.state == idle {
			return s
		}
	}
	return nil
}

// lease marks a free slot leased and answers its first handle.
func (p *Pool[T, C]) lease(s *slot[T, C], from state) Handle[T, C] {
	s.move(from, leased)
	s.word.Store((s.word.Load()>>1+1)<<1 | 1)
	s.nextID = 0
	p.cursor = s.index + 1
	if p.cfg.Stacks {
		s.stack = callers.Stack()
	}
	return p.handle(s)
}

func (p *Pool[T, C]) handle(s *slot[T, C]) Handle[T, C] {
	return Handle[T, C]{slot: s, gen: s.word.Load() >> 1}
}

// offer hands an idle slot to the oldest waiter, if there is one.
func (p *Pool[T, C]) offer(s *slot[T, C]) {
	if w := p.waiters.Pop(); w != nil {
		p.lease(s, idle)
		w.Deliver(s, nil)
	}
}

// maxRefusals is how often in a row asking a tail may fail on a living device.
// Its work may still run, so the slot stays pending and is asked again; past
// that the pool fails rather than hang. It is also how often in a row remaking
// a thing may fail before that is answered to whose turn it is.
const maxRefusals = 3

// probe asks the tail of a pending slot. If its work is done, the slot is free;
// else, while somebody waits, a notification is armed. It lets go of mu while
// it does either.
func (p *Pool[T, C]) probe(s *slot[T, C]) {
	if s.tail.Known() && !s.broken {
		s.refusals = 0
		s.move(pending, idle)
		p.offer(s)
		return
	}
	s.probing = true
	tail := s.tail
	p.mu.Unlock()
	done, err := tail.Done()
	p.mu.Lock()
	var failure error
	if done && s.broken {
		failure = p.renew(s)
	}
	s.probing = false
	switch {
	case failure != nil: // nothing to be notified of; the timer has it tried again
		if s.refusals++; p.cfg.Device.Err() != nil {
			p.fail(failure)
		} else if s.refusals >= maxRefusals && p.waiters.Len() > 0 {
			p.waiters.Pop().Deliver(nil, failure)
		}
	case done:
		s.refusals = 0
		s.move(pending, idle)
		p.offer(s)
	case err != nil:
		if s.refusals++; s.refusals >= maxRefusals || p.cfg.Device.Err() != nil {
			p.fail(err)
		}
		p.arm(s)
	default:
		s.refusals = 0
		p.arm(s)
	}
}

// renew makes a new thing in place of a broken one. The slot is pending and
// marked, so that only Close may take the old one meanwhile, and then the new
// one is discarded. It lets go of mu.
func (p *Pool[T, C]) renew(s *slot[T, C]) error {
	p.mu.Unlock()
	unwanted, err := p.cfg.Make()
	p.mu.Lock()
	if err != nil {
		return &weir.Error{Op: p.cfg.Name + ".Acquire", Device: p.cfg.Device.Name(), Kind: weir.KindCUDA,
			Message: "one that answered an error could not be replaced", Err: err}
	}
	s.broken = false
	if !p.closed {
		s.value, unwanted = unwanted, s.value
	}
	p.mu.Unlock()
	p.cfg.Discard(unwanted)
	p.mu.Lock()
	return nil
}

// arm asks for a notification of a pending slot's end, while somebody waits and
// unless one is under way. It lets go of mu.
func (p *Pool[T, C]) arm(s *slot[T, C]) {
	if s.armed || p.waiters.Len() == 0 {
		return
	}
	s.armed = true
	tail := s.tail
	p.mu.Unlock()
	err := tail.Notify(s)
	p.mu.Lock()
	if err != nil { // the timer goes on asking
		s.armed = false
		if p.cfg.Device.Err() != nil {
			p.fail(err)
		}
	}
}

// attend sees to it that a pending slot's end will be noticed, while somebody
// waits. It lets go of mu while it asks or arms.
func (p *Pool[T, C]) attend(s *slot[T, C]) {
	if s.state == pending && !s.probing && p.waiters.Len() > 0 {
		p.probe(s)
	}
}

// Wake is called by the driver when the work that a notification was armed for
// is done, possibly long after the slot went on to other users.
func (s *slot[T, C]) Wake(error) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	s.armed = false
	p.attend(s)
}

// watchLocked starts the timer that asks on its own while somebody waits.
func (p *Pool[T, C]) watchLocked() {
	if p.watch == nil {
		p.watch = time.AfterFunc(WatchInterval, p.look)
	} else if p.waiters.Len() == 1 {
		p.watch.Reset(WatchInterval)
	}
}

func (p *Pool[T, C]) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters.Len() == 0 {
		return
	}
	if err := p.cfg.Device.Err(); err != nil {
		p.fail(err)
		return
	}
	for _, s := range p.slots {
		p.attend(s)
	}
	if p.waiters.Len() > 0 {
		p.watch.Reset(WatchInterval)
	}
}

// fail ends the pool: every waiter and every later caller gets err.
func (p *Pool[T, C]) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
	p.dismiss()
}

// dismiss answers every waiter why no slot can be had.
func (p *Pool[T, C]) dismiss() {
	for w := p.waiters.Pop(); w != nil; w = p.waiters.Pop() {
		w.Deliver(nil, p.unusable())
	}
}

// Things lists what the pool holds now.
func (p *Pool[T, C]) Things() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.things()
}

func (p *Pool[T, C]) things() []T {
	things := make([]T, len(p.slots))
	for i, s := range p.slots {
		things[i] = s.value
	}
	return things
}

// Held describes one leased slot of a pool.
type Held struct {
	Index int
	Stack string // where it was leased, if the pool remembers
}

// Leased lists what is leased now.
func (p *Pool[T, C]) Leased() []Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	var held []Held
	for _, s := range p.slots {
		if s.state == leased {
			held = append(held, Held{s.index, s.stack})
		}
	}
	return held
}

// Counts answers how many slots are in each state and how many callers wait.
func (p *Pool[T, C]) Counts() (nIdle, nLeased, nPending, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		switch s.state {
		case idle:
			nIdle++
		case leased:
			nLeased++
		case pending:
			nPending++
		}
	}
	return nIdle, nLeased, nPending, p.waiters.Len()
}

// Close refuses further leases, wakes every waiter with ErrClosed, and answers
// the things, for their owner to drain and destroy. It does not wait.
func (p *Pool[T, C]) Close() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.watch != nil {
		p.watch.Stop()
	}
	p.dismiss()
	return p.things()
}
