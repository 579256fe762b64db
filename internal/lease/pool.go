package lease

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/scheduler"
)

// Tail is the last work that a slot was given.
type Tail interface {
	// Done says whether the work is done; an error means that it never will be.
	Done() (bool, error)
	// Notify has w woken when it is.
	Notify(w driver.Waker) error
}

// watchInterval is how often a pool that somebody waits for asks on its own.
const watchInterval = 20 * time.Millisecond

// Pool is a fixed set of T. C is the type of their tails.
type Pool[T any, C Tail] struct {
	name   string        // of the things, for messages: "stream", "cublas handle"
	device driver.Device // whose death ends the pool
	remake func(T) (T, error)
	stacks bool

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
	refusals int // how often in a row the tail could not be asked
	broken   bool
	probing  bool
	recheck  bool
	armed    bool
	stack    string
}

// Handle is one holder's claim on a slot. It is a value; a copy is the same
// claim. The zero Handle is stale.
type Handle[T any, C Tail] struct {
	slot *slot[T, C]
	gen  uint64
	id   uint32
}

// Config configures a pool.
type Config[T any] struct {
	Name   string // what one thing is called in messages
	Device driver.Device
	Stacks bool // remember where each lease was taken
	// Remake replaces a thing that was released as broken; nil keeps it.
	Remake func(T) (T, error)
}

// New makes a pool of things, all idle.
func New[T any, C Tail](cfg Config[T], things []T) *Pool[T, C] {
	p := &Pool[T, C]{name: cfg.Name, device: cfg.Device, remake: cfg.Remake, stacks: cfg.Stacks}
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
	if err := p.unusable(); err != nil {
		return h, false, err
	}
	if p.waiters.Len() > 0 {
		return h, false, nil
	}
	if s := p.findIdle(); s != nil {
		return p.lease(s), true, nil
	}
	for i := range p.slots {
		s := p.slots[(p.cursor+i)%len(p.slots)]
		if s.state != pending || s.probing {
			continue
		}
		p.probe(s)
		if err := p.unusable(); err != nil {
			return h, false, err
		}
		if s.state == idle && p.waiters.Len() == 0 {
			return p.lease(s), true, nil
		}
	}
	return h, false, nil
}

// Acquire leases a slot, waiting its turn for one. See scheduler.Park for what
// a task's context adds.
func (p *Pool[T, C]) Acquire(ctx context.Context) (Handle[T, C], error) {
	if err := context.Cause(ctx); err != nil {
		return Handle[T, C]{}, p.cancelled(err)
	}
	h, ok, err := p.TryAcquire()
	if ok || err != nil {
		return h, err
	}
	p.mu.Lock()
	if err := p.unusable(); err != nil {
		p.mu.Unlock()
		return h, err
	}
	if p.waiters.Len() == 0 {
		if s := p.findIdle(); s != nil {
			h := p.lease(s)
			p.mu.Unlock()
			return h, nil
		}
	}
	w := p.waiters.Push()
	p.watchLocked()
	for _, s := range p.slots {
		p.attend(s)
	}
	p.mu.Unlock()

	s, delivered, err := w.Wait(ctx)
	if delivered {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiters.Recycle(w)
		if err != nil {
			return h, err
		}
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
			p.freed(s)
			p.mu.Unlock()
		}
	}
	return h, p.cancelled(err)
}

func (p *Pool[T, C]) cancelled(cause error) error {
	return &weir.Error{Op: p.name + ".Acquire", Device: p.device.Name(), Message: "gave up waiting", Err: cause}
}

// unusable is why no slot can be had.
func (p *Pool[T, C]) unusable() error {
	if p.closed {
		return &weir.Error{Op: p.name + ".Acquire", Device: p.device.Name(), Kind: weir.KindLogic, Message: "the pool is closed", Err: weir.ErrClosed}
	}
	if p.failed != nil {
		return &weir.Error{Op: p.name + ".Acquire", Device: p.device.Name(), Kind: weir.KindCUDA, Err: p.failed}
	}
	return nil
}

func (p *Pool[T, C]) findIdle() *slot[T, C] {
	for i := range p.slots {
		if s := p.slots[(p.cursor+i)%len(p.slots)]; s.state == idle {
			return s
		}
	}
	return nil
}

// lease marks an idle slot leased and answers its first handle.
func (p *Pool[T, C]) lease(s *slot[T, C]) Handle[T, C] {
	s.state = leased
	s.word.Store((s.word.Load()>>1+1)<<1 | 1)
	p.cursor = s.index + 1
	if p.stacks {
		s.stack = stack()
	}
	return p.handle(s)
}

func (p *Pool[T, C]) handle(s *slot[T, C]) Handle[T, C] {
	return Handle[T, C]{slot: s, gen: s.word.Load() >> 1}
}

// freed hands a slot whose work is done to the oldest waiter, or makes it
// idle.
func (p *Pool[T, C]) freed(s *slot[T, C]) {
	s.state = idle
	if p.closed || p.failed != nil {
		return
	}
	if w := p.waiters.Pop(); w != nil {
		p.lease(s)
		w.Deliver(s, nil)
	}
}

// probe asks the tail of a pending slot, again if a wake-up came meanwhile,
// and frees the slot if its work is done. It lets go of mu while it asks.
func (p *Pool[T, C]) probe(s *slot[T, C]) {
	s.probing = true
	for again := true; again; again = s.recheck {
		s.recheck = false
		tail := s.tail
		broken := s.broken
		p.mu.Unlock()
		done, err := tail.Done()
		if done && err == nil && broken {
			p.replace(s)
		}
		p.mu.Lock()
		if err != nil {
			if s.refusals++; s.refusals >= maxRefusals || p.device.Err() != nil {
				p.fail(err)
			}
			break
		}
		s.refusals = 0
		if done {
			s.probing = false
			s.broken = false
			p.freed(s)
			return
		}
	}
	s.probing = false
}

// maxRefusals is how often in a row asking a tail may fail on a living device.
// Its work may still run, so the slot stays pending and is asked again; past
// that the pool fails rather than hang.
const maxRefusals = 3

// replace makes a new thing in place of a broken one; if that fails, the old
// one stays and will be found broken again. The slot is pending and marked, so
// nobody else touches its value.
func (p *Pool[T, C]) replace(s *slot[T, C]) {
	if p.remake == nil {
		return
	}
	if fresh, err := p.remake(s.value); err == nil {
		s.value = fresh
	}
}

// attend sees to it that a pending slot's end will be noticed, while somebody
// waits. It lets go of mu while it asks or arms.
func (p *Pool[T, C]) attend(s *slot[T, C]) {
	if s.state != pending || p.waiters.Len() == 0 || p.failed != nil || p.closed {
		return
	}
	if s.probing {
		s.recheck = true
		return
	}
	p.probe(s)
	if s.state != pending || s.armed || s.probing || p.waiters.Len() == 0 || p.failed != nil {
		return
	}
	s.armed = true
	tail := s.tail
	p.mu.Unlock()
	err := tail.Notify(s)
	p.mu.Lock()
	if err != nil { // the timer goes on asking
		s.armed = false
		if p.device.Err() != nil {
			p.fail(err)
		}
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
		p.watch = time.AfterFunc(watchInterval, p.look)
	} else if p.waiters.Len() == 1 {
		p.watch.Reset(watchInterval)
	}
}

func (p *Pool[T, C]) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.waiters.Len() == 0 {
		return
	}
	if err := p.device.Err(); err != nil {
		p.fail(err)
		return
	}
	for _, s := range p.slots {
		p.attend(s)
	}
	p.watch.Reset(watchInterval)
}

// fail ends the pool: every waiter and every later caller gets err.
func (p *Pool[T, C]) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
	for w := p.waiters.Pop(); w != nil; w = p.waiters.Pop() {
		w.Deliver(nil, p.unusable())
	}
}

// Value is what the handle leases; ErrStale after its release.
func (h Handle[T, C]) Value() (T, error) {
	if h.Valid() {
		return h.slot.value, nil
	}
	var zero T
	return zero, h.stale()
}

// Index is the number of the slot in its pool, -1 of a zero handle.
func (h Handle[T, C]) Index() int {
	if h.slot == nil {
		return -1
	}
	return h.slot.index
}

// Valid says whether the handle still holds its slot.
func (h Handle[T, C]) Valid() bool {
	if h.slot == nil {
		return false
	}
	word := h.slot.word.Load()
	if h.id == 0 {
		return word == h.gen<<1|1
	}
	if word>>1 != h.gen {
		return false
	}
	h.slot.pool.mu.Lock()
	defer h.slot.pool.mu.Unlock()
	return h.holds()
}

// holds is Valid under the mutex.
func (h Handle[T, C]) holds() bool {
	word := h.slot.word.Load()
	if word>>1 != h.gen || h.slot.state != leased {
		return false
	}
	if h.id == 0 {
		return word&1 == 1
	}
	return slices.Contains(h.slot.holders, h.id)
}

func (h Handle[T, C]) stale() error {
	name := "lease"
	if h.slot != nil {
		name = fmt.Sprintf("%s %d", h.slot.pool.name, h.slot.index)
	}
	return &weir.Error{Op: name, Kind: weir.KindLogic, Message: "used after its release; expected a live lease", Err: weir.ErrStale}
}

// Retain answers a further handle of the same slot, to be released on its own.
func (h Handle[T, C]) Retain() (Handle[T, C], error) {
	if h.slot == nil {
		return h, h.stale()
	}
	p := h.slot.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.holds() {
		return Handle[T, C]{}, h.stale()
	}
	h.slot.nextID++
	h.id = h.slot.nextID
	h.slot.holders = append(h.slot.holders, h.id)
	return h, nil
}

// Last says whether h is the only handle of its slot that is still held.
func (h Handle[T, C]) Last() bool {
	if h.slot == nil {
		return false
	}
	p := h.slot.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.holds() && len(h.slot.holders)+int(h.slot.word.Load()&1) == 1
}

// Release gives the claim up; when it was the last one, the slot is pending
// until tail is done. A thing released as broken is remade before anyone gets
// it. A stale handle does nothing.
func (h Handle[T, C]) Release(tail C, broken bool) {
	if h.slot == nil {
		return
	}
	s, p := h.slot, h.slot.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.holds() {
		return
	}
	word := s.word.Load()
	if h.id == 0 {
		word &^= 1
		s.word.Store(word)
	} else {
		s.holders = slices.DeleteFunc(s.holders, func(id uint32) bool { return id == h.id })
	}
	s.broken = s.broken || broken
	if word&1 == 1 || len(s.holders) > 0 {
		return
	}
	s.state, s.tail, s.stack = pending, tail, ""
	p.attend(s)
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
	for w := p.waiters.Pop(); w != nil; w = p.waiters.Pop() {
		w.Deliver(nil, p.unusable())
	}
	things := make([]T, len(p.slots))
	for i, s := range p.slots {
		things[i] = s.value
	}
	return things
}

// stack is the caller's stack without this package's frames.
func stack() string {
	pcs := make([]uintptr, 32)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(2, pcs)])
	var b strings.Builder
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "weir/internal/lease.") {
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
