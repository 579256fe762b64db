package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/lease"
)

// step is one operation of a random sequence. arg chooses what it acts on.
type step struct {
	do  string
	arg int
}

var steps = rapid.Custom(func(t *rapid.T) step {
	return step{
		do: rapid.SampledFrom([]string{"try", "try", "acquire", "acquire", "acquire", "release", "release", "release finished",
			"retain", "release again", "finish", "finish", "finish", "cancel", "wake", "time", "close"}).Draw(t, "do"),
		arg: rapid.IntRange(0, 1000).Draw(t, "arg"),
	}
})

// behaviour is how the tails of one run notify.
type behaviour string

const (
	prompt  behaviour = "prompt"  // a wake-up for each notification, at once
	twice   behaviour = "twice"   // every wake-up comes two times
	late    behaviour = "late"    // wake-ups come when the sequence says "wake", to whom it may concern by then
	never   behaviour = "never"   // no wake-up comes
	refused behaviour = "refused" // a notification can't be armed
)

// TestAPoolDoesWhatItsModelDoes runs random sequences against a pool and a
// plain list of slots and waiters. After each step all goroutines are let come
// to rest, and everything visible is compared.
func TestAPoolDoesWhatItsModelDoes(t *testing.T) {
	for _, b := range []behaviour{prompt, twice, late, never, refused} {
		t.Run(string(b), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				size := rapid.IntRange(1, 4).Draw(rt, "size")
				n := rapid.IntRange(1, 80).Draw(rt, "length")
				sequence := rapid.SliceOfN(steps, n, n).Draw(rt, "steps")
				var err error
				synctest.Test(t, func(*testing.T) { err = playOut(b, size, sequence) })
				if err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// model is the plain description of a pool.
type model struct {
	behaviour behaviour
	pool      *pool
	slots     []modelSlot
	claims    []claim // every handle that was ever got
	queue     []*waiter
	closed    bool
	wakeable  []*tail // of which wake-ups are outstanding
	armed     int     // notifications so far
}

type modelSlot struct {
	holders int
	tail    *tail // of the last user; nil before the first
}

func (s *modelSlot) free() bool { return s.holders == 0 && (s.tail == nil || s.tail.done) }

type claim struct {
	handle handle
	slot   int
	live   bool
}

type waiter struct {
	cancel context.CancelCauseFunc
	result chan result
}

type result struct {
	handle handle
	err    error
}

var errGaveUp = errors.New("the test gave up")

func playOut(b behaviour, size int, sequence []step) error {
	m := &model{behaviour: b, pool: newPool(size), slots: make([]modelSlot, size)}
	defer m.pool.Close()
	for i, s := range sequence {
		if err := m.play(s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s.do, err)
		}
	}
	return nil
}

func (m *model) play(s step) error {
	waitedBefore := len(m.queue) > 0
	if err := m.act(s); err != nil {
		return err
	}
	waited := waitedBefore || len(m.queue) > 0
	synctest.Wait()
	// Without prompt wake-ups a free slot may go unnoticed until the pool asks.
	settled := m.behaviour == prompt || m.behaviour == twice || s.do == "time"
	if err := m.deliver(settled); err != nil {
		return err
	}
	return m.compare(waited)
}

// act does one step to the pool and says at once what a call that does not
// wait answered wrongly.
func (m *model) act(s step) error {
	switch s.do {
	case "try":
		h, ok, err := m.pool.TryAcquire()
		return m.tried(h, ok, err)
	case "acquire":
		ctx, cancel := context.WithCancelCause(context.Background())
		w := &waiter{cancel, make(chan result, 1)}
		go func() {
			h, err := m.pool.Acquire(ctx)
			w.result <- result{h, err}
		}()
		synctest.Wait()
		m.queue = append(m.queue, w)
	case "release", "release finished":
		if c := m.live(s.arg); c != nil {
			t := &tail{done: s.do == "release finished", hold: m.behaviour == late || m.behaviour == never}
			if m.behaviour == refused {
				t.notifyErr = errors.New("no notification today")
			}
			c.handle.Release(t)
			c.live = false
			slot := &m.slots[c.slot]
			if slot.holders--; slot.holders == 0 {
				slot.tail = t
				m.wakeable = append(m.wakeable, t)
			}
		}
	case "retain":
		if c := m.live(s.arg); c != nil {
			h, err := c.handle.Retain()
			if err != nil {
				return fmt.Errorf("a live handle can't be retained: %w", err)
			}
			m.slots[c.slot].holders++
			m.claims = append(m.claims, claim{h, c.slot, true})
		}
	case "release again":
		if len(m.claims) > 0 {
			if c := m.claims[s.arg%len(m.claims)]; !c.live {
				c.handle.Release(&tail{})
				if _, err := c.handle.Retain(); !errors.Is(err, weir.ErrStale) {
					return fmt.Errorf("a stale handle is retained with %v; expected ErrStale", err)
				}
			}
		}
	case "finish":
		var busy []*tail
		for _, slot := range m.slots {
			if slot.tail != nil && !slot.tail.done && slot.holders == 0 {
				busy = append(busy, slot.tail)
			}
		}
		if len(busy) > 0 {
			t := busy[s.arg%len(busy)]
			again := slices.Clone(t.wakers)
			t.finish()
			if m.behaviour == twice {
				for _, w := range again {
					w.Wake(nil)
				}
			}
		}
	case "cancel":
		if len(m.queue) > 0 {
			i := s.arg % len(m.queue)
			w := m.queue[i]
			w.cancel(errGaveUp)
			synctest.Wait()
			if r := <-w.result; !errors.Is(r.err, errGaveUp) {
				return fmt.Errorf("the cancelled waiter answers %v; expected the cause", r.err)
			}
			m.queue = slices.Delete(m.queue, i, i+1)
		}
	case "wake":
		if m.behaviour == late && len(m.wakeable) > 0 {
			m.wakeable[s.arg%len(m.wakeable)].wake()
		}
	case "time":
		<-time.After(lease.WatchInterval) // of the bubble's clock
	case "close":
		if s.arg%5 == 0 { // not in most sequences
			m.pool.Close()
			m.closed = true
		}
	}
	return nil
}

// tried checks an attempt that does not wait.
func (m *model) tried(h handle, ok bool, err error) error {
	if m.closed {
		if !errors.Is(err, weir.ErrClosed) {
			return fmt.Errorf("a closed pool answers %v, %v; expected ErrClosed", ok, err)
		}
		return nil
	}
	expected := len(m.queue) == 0 && slices.ContainsFunc(m.slots, func(s modelSlot) bool { return s.free() })
	if err != nil || ok != expected {
		return fmt.Errorf("answers %v, %v; expected %v", ok, err, expected)
	}
	if ok {
		return m.got(h)
	}
	return nil
}

// got notes a lease of a slot, which must have been free.
func (m *model) got(h handle) error {
	i, err := h.Value()
	if err != nil {
		return err
	}
	if !m.slots[i].free() {
		return fmt.Errorf("slot %d was leased while it was held or worked", i)
	}
	m.slots[i].holders = 1
	m.claims = append(m.claims, claim{h, i, true})
	return nil
}

// deliver checks that the oldest waiters were answered, as many as there are
// free slots, or fewer if not all is settled.
func (m *model) deliver(settled bool) error {
	free, answered := 0, 0
	for _, s := range m.slots {
		if s.free() {
			free++
		}
	}
	for i, w := range m.queue {
		var r result
		select {
		case r = <-w.result:
		default:
			if m.closed || settled && i < free {
				return fmt.Errorf("waiter %d was not answered; %d slots were free, closed is %v", i, free, m.closed)
			}
			continue
		}
		if i != answered {
			return fmt.Errorf("waiter %d was answered before waiter %d", i, answered)
		}
		answered++
		if m.closed {
			if !errors.Is(r.err, weir.ErrClosed) {
				return fmt.Errorf("waiter %d of a closed pool got %v; expected ErrClosed", i, r.err)
			}
			continue
		}
		if r.err != nil {
			return fmt.Errorf("waiter %d got %w", i, r.err)
		}
		if err := m.got(r.handle); err != nil {
			return err
		}
	}
	m.queue = m.queue[answered:]
	return nil
}

// compare checks all else that can be seen of the pool.
func (m *model) compare(waited bool) error {
	leased, armed := 0, 0
	for _, s := range m.slots {
		if s.holders > 0 {
			leased++
		}
	}
	for _, t := range m.wakeable {
		_, n := t.counts()
		armed += n
	}
	if armed > m.armed && !waited {
		return fmt.Errorf("%d notifications were armed while nobody waited", armed-m.armed)
	}
	m.armed = armed
	i, l, p, w := m.pool.Counts()
	if l != leased || i+p != len(m.slots)-leased || w != len(m.queue) {
		return fmt.Errorf("idle, leased, pending, waiting are %d, %d, %d, %d; the model has %d leased of %d and %d waiting", i, l, p, w, leased, len(m.slots), len(m.queue))
	}
	for _, c := range m.claims {
		v, err := c.handle.Value()
		if c.live && (err != nil || v != c.slot) || !c.live && !errors.Is(err, weir.ErrStale) || c.handle.Valid() != c.live {
			return fmt.Errorf("a handle of slot %d, live is %v, answers %v, %v", c.slot, c.live, v, err)
		}
	}
	return nil
}

// live is one of the handles that are held, nil if none is.
func (m *model) live(arg int) *claim {
	var live []*claim
	for i := range m.claims {
		if m.claims[i].live {
			live = append(live, &m.claims[i])
		}
	}
	if len(live) == 0 {
		return nil
	}
	return live[arg%len(live)]
}
