package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/stream"
)

// step is one operation of a random sequence. The numbers choose what it acts
// on.
type step struct {
	do   string
	a, b int
}

var steps = rapid.Custom(func(t *rapid.T) step {
	return step{
		do: rapid.SampledFrom([]string{"try", "try", "acquire", "acquire", "release", "release", "retain", "release again",
			"work", "work", "work", "end", "end", "record", "record", "wait", "wait", "wait", "ask", "cancel", "close"}).Draw(t, "do"),
		a: rapid.IntRange(0, 1000).Draw(t, "a"),
		b: rapid.IntRange(0, 1000).Draw(t, "b"),
	}
})

// TestStreamsDoWhatTheirModelDoes runs random sequences of leases, work, records
// and waits over the streams of two devices, and compares all that can be seen
// with plain lists. After each step all goroutines are let come to rest.
func TestStreamsDoWhatTheirModelDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 3).Draw(rt, "size")
		n := rapid.IntRange(1, 80).Draw(rt, "length")
		sequence := rapid.SliceOfN(steps, n, n).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(t *testing.T) { err = playOut(t, size, sequence) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// world is the plain description of two devices.
type world struct {
	r      *rig
	lines  [2][]line
	claims []claim // every handle that was ever got
	tokens []token
	queue  [2][]*waiter
	closed [2]bool
	gates  []*item
}

// line is one stream: who holds it, and all that it was ever given.
type line struct {
	holders int
	items   []item
}

// item is work that ends when its gate is opened, or a wait for another place.
type item struct {
	gate chan struct{}
	open *bool
	wait *place
}

// place is a stream after its first n items.
type place struct{ dev, line, n int }

type token struct {
	c  stream.Completion
	at place
}

type claim struct {
	s         stream.Stream
	dev, line int
	live      bool
}

type waiter struct {
	cancel context.CancelCauseFunc
	result chan result
}

type result struct {
	s   stream.Stream
	err error
}

// done says whether all work before p has ended. Waits only look back in time,
// so it comes to an end.
func (w *world) done(p place) bool {
	for _, i := range w.lines[p.dev][p.line].items[:p.n] {
		if i.wait != nil && !w.done(*i.wait) || i.open != nil && !*i.open {
			return false
		}
	}
	return true
}

func (w *world) tail(dev, line int) place { return place{dev, line, len(w.lines[dev][line].items)} }

func (w *world) free(dev, line int) bool {
	return w.lines[dev][line].holders == 0 && w.done(w.tail(dev, line))
}

func playOut(t *testing.T, size int, sequence []step) error {
	w := &world{r: newRig(t, 2, size)}
	for i := range w.lines {
		w.lines[i] = make([]line, size)
	}
	defer func() {
		for _, g := range w.gates {
			if !*g.open {
				close(g.gate)
			}
		}
		for _, c := range w.claims {
			_ = c.s.Release()
		}
		w.r.close()
	}()
	for i, s := range sequence {
		if err := w.play(s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s.do, err)
		}
	}
	return nil
}

func (w *world) play(s step) error {
	waited := len(w.queue[0])+len(w.queue[1]) > 0
	notified := w.r.count(fault.StreamNotify)
	if err := w.act(s); err != nil {
		return err
	}
	waited = waited || len(w.queue[0])+len(w.queue[1]) > 0
	synctest.Wait()
	if n := w.r.count(fault.StreamNotify) - notified; n > 0 && !waited {
		return fmt.Errorf("%d notifications were armed while nobody waited", n)
	}
	for dev := range w.queue {
		if err := w.deliver(dev); err != nil {
			return err
		}
	}
	return w.compare()
}

func (w *world) act(s step) error {
	dev := s.a % 2
	pool := w.r.pools[dev]
	c := w.live(s.a)
	switch s.do {
	case "try":
		return w.try(dev)
	case "acquire":
		ctx, cancel := context.WithCancelCause(context.Background())
		x := &waiter{cancel, make(chan result, 1)}
		go func() {
			s, err := pool.Acquire(ctx)
			x.result <- result{s, err}
		}()
		synctest.Wait()
		w.queue[dev] = append(w.queue[dev], x)
	case "cancel":
		if len(w.queue[dev]) == 0 {
			return nil
		}
		i := s.b % len(w.queue[dev])
		x := w.queue[dev][i]
		x.cancel(errCause)
		if r := <-x.result; !errors.Is(r.err, errCause) {
			return fmt.Errorf("the cancelled waiter answers %v; expected the cause", r.err)
		}
		w.queue[dev] = slices.Delete(w.queue[dev], i, i+1)
	case "release again":
		if len(w.claims) > 0 {
			if c := w.claims[s.a%len(w.claims)]; !c.live {
				return c.s.Release()
			}
		}
	case "end":
		var busy []*item
		for _, g := range w.gates {
			if !*g.open {
				busy = append(busy, g)
			}
		}
		if len(busy) > 0 {
			g := busy[s.a%len(busy)]
			*g.open = true
			close(g.gate)
		}
	case "ask":
		for _, t := range w.tokens {
			if done, err := t.c.Done(); err != nil || done != w.done(t.at) {
				return fmt.Errorf("the completion at %+v is done %v, %v; expected %v", t.at, done, err, w.done(t.at))
			}
		}
	case "close":
		// It would wait for unfinished work, and is not in most sequences.
		for i := range w.lines[dev] {
			if !w.done(w.tail(dev, i)) {
				return nil
			}
		}
		if s.b%5 == 0 {
			w.closed[dev] = true
			return pool.Close()
		}
	default:
		if c != nil {
			return w.use(c, s)
		}
	}
	return nil
}

// use acts on a live handle.
func (w *world) use(c *claim, s step) error {
	l := &w.lines[c.dev][c.line]
	refused := func(err error) error {
		if !errors.Is(err, weir.ErrClosed) {
			return fmt.Errorf("a stream of a closed pool answers %v; expected ErrClosed", err)
		}
		return nil
	}
	switch s.do {
	case "release":
		c.live = false
		l.holders--
		return c.s.Release()
	case "retain":
		more, err := c.s.Retain()
		if err != nil {
			return err
		}
		l.holders++
		w.claims = append(w.claims, claim{more, c.dev, c.line, true})
	case "work":
		i := item{gate: make(chan struct{}), open: new(bool)}
		err := c.s.Call(func() { <-i.gate })
		if w.closed[c.dev] {
			return refused(err)
		}
		l.items = append(l.items, i)
		w.gates = append(w.gates, &i)
		return err
	case "record":
		t, err := c.s.Record()
		if w.closed[c.dev] {
			return refused(err)
		}
		w.tokens = append(w.tokens, token{t, w.tail(c.dev, c.line)})
		return err
	case "wait":
		if len(w.tokens) == 0 {
			return nil
		}
		t := w.tokens[s.b%len(w.tokens)]
		before, known := w.r.count(fault.StreamWait), t.c.Known()
		if known && !w.done(t.at) {
			return fmt.Errorf("%+v is known to be done, and is not", t.at)
		}
		err := c.s.Wait(t.c)
		if w.closed[c.dev] {
			return refused(err)
		}
		calls := 0
		if t.at.dev != c.dev && !w.done(t.at) || t.at.dev == c.dev && t.at.line != c.line && !known {
			calls = 1
			l.items = append(l.items, item{wait: &t.at})
		}
		if n := w.r.count(fault.StreamWait) - before; err != nil || n != calls {
			return fmt.Errorf("a wait for %+v made %d driver calls, %v; expected %d", t.at, n, err, calls)
		}
	}
	return nil
}

func (w *world) try(dev int) error {
	s, ok, err := w.r.pools[dev].TryAcquire()
	if w.closed[dev] {
		if ok || !errors.Is(err, weir.ErrClosed) {
			return fmt.Errorf("a closed pool answers %v, %v; expected ErrClosed", ok, err)
		}
		return nil
	}
	expected := false
	for i := range w.lines[dev] {
		expected = expected || len(w.queue[dev]) == 0 && w.free(dev, i)
	}
	if err != nil || ok != expected {
		return fmt.Errorf("answers %v, %v; expected %v", ok, err, expected)
	}
	if ok {
		return w.got(dev, s)
	}
	return nil
}

// got notes a lease, which must be of an idle stream.
func (w *world) got(dev int, s stream.Stream) error {
	name, index, _ := strings.Cut(s.String(), "/")
	i, err := strconv.Atoi(index)
	if err != nil || name != w.r.devs[dev].Name() || s.Device() != w.r.devs[dev] {
		return fmt.Errorf("a lease of device %d is named %q", dev, s)
	}
	if !w.free(dev, i) {
		return fmt.Errorf("%v was leased while it was held or worked", s)
	}
	w.lines[dev][i].holders = 1
	w.claims = append(w.claims, claim{s, dev, i, true})
	return nil
}

// deliver checks that as many waiters as there are idle streams were answered,
// oldest first.
func (w *world) deliver(dev int) error {
	n := 0
	for i := range w.lines[dev] {
		if w.free(dev, i) {
			n++
		}
	}
	n = min(n, len(w.queue[dev]))
	if w.closed[dev] {
		n = len(w.queue[dev])
	}
	for i, x := range w.queue[dev] {
		select {
		case r := <-x.result:
			if i >= n {
				return fmt.Errorf("waiter %d was answered; expected only %d to be", i, n)
			}
			if w.closed[dev] {
				if !errors.Is(r.err, weir.ErrClosed) {
					return fmt.Errorf("waiter %d of a closed pool got %v; expected ErrClosed", i, r.err)
				}
			} else if r.err != nil {
				return fmt.Errorf("waiter %d got %w", i, r.err)
			} else if err := w.got(dev, r.s); err != nil {
				return err
			}
		default:
			if i < n {
				return fmt.Errorf("waiter %d was not answered; expected %d to be", i, n)
			}
		}
	}
	w.queue[dev] = w.queue[dev][n:]
	return nil
}

// compare checks counts, handles and what is known of completions.
func (w *world) compare() error {
	for dev, p := range w.r.pools {
		held := 0
		for _, l := range w.lines[dev] {
			if l.holders > 0 {
				held++
			}
		}
		idle, leased, pending, waiting := p.Counts()
		if leased != held || idle+pending != len(w.lines[dev])-held || waiting != len(w.queue[dev]) {
			return fmt.Errorf("idle, leased, pending, waiting are %d, %d, %d, %d; the model has %d leased and %d waiting", idle, leased, pending, waiting, held, len(w.queue[dev]))
		}
	}
	for _, c := range w.claims {
		if c.s.Valid() != c.live {
			return fmt.Errorf("a handle of line %d of device %d is valid %v; expected %v", c.line, c.dev, c.s.Valid(), c.live)
		}
	}
	for _, t := range w.tokens {
		if t.c.Known() && !w.done(t.at) {
			return fmt.Errorf("the completion at %+v is taken for done", t.at)
		}
	}
	return nil
}

// live is one of the handles that are held, nil if none is.
func (w *world) live(n int) *claim {
	var live []*claim
	for i := range w.claims {
		if w.claims[i].live {
			live = append(live, &w.claims[i])
		}
	}
	if len(live) == 0 {
		return nil
	}
	return live[n%len(live)]
}
