package provider_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/stream"
)

// step is one operation of a random sequence. The number chooses what it acts
// on.
type step struct {
	do  string
	arg int
}

var steps = rapid.Custom(func(t *rapid.T) step {
	return step{
		do: rapid.SampledFrom([]string{"try", "acquire", "acquire", "acquire", "stream", "stream", "work", "work", "retain",
			"release", "release", "release", "break", "end", "end", "end", "cancel"}).Draw(t, "do"),
		arg: rapid.IntRange(0, 1000).Draw(t, "arg"),
	}
})

// TestExecutionsDoWhatTheirModelDoes runs random sequences of operations with
// and without a handle against two plain queues: one for handles, one for
// streams, which whoever has its handle joins last. After each step everybody is
// let come to rest.
func TestExecutionsDoWhatTheirModelDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		streams := rapid.IntRange(1, 3).Draw(rt, "streams")
		tools := rapid.IntRange(1, streams).Draw(rt, "tools")
		n := rapid.IntRange(1, 60).Draw(rt, "length")
		sequence := rapid.SliceOfN(steps, n, n).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(t *testing.T) { err = playOut(t, streams, tools, sequence) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// model is the plain description of a device with one kind of tool.
type model struct {
	r       *rig
	lines   []line // by the stream's name
	tools   []place
	broken  []bool
	version []int     // of each slot: the tool that was last seen there
	held    []*holder // who holds a stream, with or without a tool
	forTool []*caller // in order
	forLine []*caller // in order
	gates   []*gate
}

// line is a stream: how many hold it, and the work that it was given.
type line struct {
	holders int
	work    []*gate
}

type gate struct {
	c    chan struct{}
	open bool
}

// place is where a tool is: with somebody, or at the tail of its last operation,
// which is after the first n pieces of a line's work.
type place struct {
	leased  bool
	line, n int
}

// holder holds a stream, and a tool unless tool is -1.
type holder struct {
	x    *execution
	s    stream.Stream
	line int
	tool int
}

// caller waits for a tool and then a stream, or for a stream only.
type caller struct {
	tool   int // -1: none, or none yet
	wants  bool
	cancel context.CancelCauseFunc
	result chan holder
	failed chan error
}

func (m *model) done(line, n int) bool {
	return !slices.ContainsFunc(m.lines[line].work[:n], func(g *gate) bool { return !g.open })
}

func (m *model) lineFree(i int) bool {
	return m.lines[i].holders == 0 && m.done(i, len(m.lines[i].work))
}

func (m *model) toolFree(i int) bool {
	p := m.tools[i]
	return !p.leased && (p.line < 0 || m.done(p.line, p.n))
}

func playOut(t *testing.T, streams, tools int, sequence []step) (err error) {
	m := &model{r: newRig(t, streams, tools), lines: make([]line, streams), tools: make([]place, tools), broken: make([]bool, tools)}
	for i := range tools {
		m.tools[i].line = -1
		m.version = append(m.version, i)
	}
	defer func() { m.end(err) }()
	for i, s := range sequence {
		if err := m.play(s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s.do, err)
		}
	}
	return nil
}

// end gives everything back, whatever err the sequence ended with.
func (m *model) end(err error) {
	waiting := append(slices.Clone(m.forTool), m.forLine...)
	for _, c := range waiting {
		c.cancel(errCause)
	}
	synctest.Wait()
	for _, g := range m.gates {
		if !g.open {
			close(g.c)
		}
	}
	for _, c := range waiting {
		if len(c.result) > 0 { // wrongly
			h := <-c.result
			m.held = append(m.held, &h)
		}
	}
	for _, h := range m.held {
		if h.x != nil {
			m.r.release(h.x)
		} else if err := h.s.Release(); err != nil {
			m.r.t.Error(err)
		}
	}
	if live := m.r.r.Live(); len(live) > 0 { // the runtime would collect garbage, which no bubble allows
		panic(fmt.Sprintf("%v are left, after %v", live, err))
	}
	m.r.close()
}

func (m *model) play(s step) error {
	if err := m.act(s); err != nil {
		return err
	}
	// A retained stream's later work delays the notification of its handle; then
	// the pool asks by itself.
	synctest.Wait()
	<-time.After(lease.WatchInterval)
	synctest.Wait()
	if err := m.settle(); err != nil {
		return err
	}
	return m.compare()
}

func (m *model) act(s step) error {
	switch s.do {
	case "try":
		x, ok, err := m.r.e.TryAcquire()
		expected := len(m.forTool) == 0 && len(m.forLine) == 0 && m.freeTool() >= 0 && m.freeLine() >= 0
		if ok != expected || err != nil {
			return fmt.Errorf("answers %v, %v; expected %v", ok, err, expected)
		}
		if ok {
			return m.got(holder{x: &x, s: x.Stream()}, true)
		}
	case "acquire", "stream":
		ctx, cancel := context.WithCancelCause(context.Background())
		c := &caller{tool: -1, wants: s.do == "acquire", cancel: cancel, result: make(chan holder, 1), failed: make(chan error, 1)}
		go func() {
			var h holder
			var err error
			if c.wants {
				var x execution
				x, err = m.r.e.Acquire(ctx)
				h = holder{x: &x, s: x.Stream()}
			} else {
				h.s, err = m.r.r.Streams().Acquire(ctx)
			}
			if err != nil {
				c.failed <- err
			} else {
				c.result <- h
			}
		}()
		if c.wants {
			m.forTool = append(m.forTool, c)
		} else {
			m.forLine = append(m.forLine, c)
		}
	case "cancel":
		queue := &m.forTool
		if s.arg%2 == 0 {
			queue = &m.forLine
		}
		if len(*queue) == 0 {
			return nil
		}
		i := s.arg % len(*queue)
		c := (*queue)[i]
		c.cancel(errCause)
		if err := <-c.failed; !errors.Is(err, errCause) {
			return fmt.Errorf("a cancelled caller got %v; expected the cause", err)
		}
		*queue = slices.Delete(*queue, i, i+1)
		if c.tool >= 0 { // it gives its tool back unused
			m.tools[c.tool] = place{line: -1}
		}
	case "end":
		var shut []*gate
		for _, g := range m.gates {
			if !g.open {
				shut = append(shut, g)
			}
		}
		if len(shut) > 0 {
			g := shut[s.arg%len(shut)]
			g.open = true
			close(g.c)
		}
	default:
		if len(m.held) > 0 {
			return m.use(s.do, s.arg%len(m.held))
		}
	}
	return nil
}

// use acts on something that is held.
func (m *model) use(do string, i int) error {
	h := m.held[i]
	l := &m.lines[h.line]
	switch do {
	case "work":
		g := &gate{c: make(chan struct{})}
		m.gates, l.work = append(m.gates, g), append(l.work, g)
		return h.s.Call(func() { <-g.c })
	case "retain":
		s, err := h.s.Retain()
		if err != nil {
			return err
		}
		l.holders++
		m.held = append(m.held, &holder{s: s, line: h.line, tool: -1})
	case "break":
		if h.tool >= 0 {
			h.x.Break()
			m.broken[h.tool] = true
		}
	case "release":
		m.held = slices.Delete(m.held, i, i+1)
		l.holders--
		if h.tool < 0 {
			return h.s.Release()
		}
		m.tools[h.tool] = place{line: h.line, n: len(l.work)}
		return h.x.Release()
	}
	return nil
}

func (m *model) freeTool() int {
	for i := range m.tools {
		if m.toolFree(i) {
			return i
		}
	}
	return -1
}

func (m *model) freeLine() int {
	for i := range m.lines {
		if m.lineFree(i) {
			return i
		}
	}
	return -1
}

// got notes that somebody holds h, which must have been free.
func (m *model) got(h holder, withTool bool) error {
	if _, err := fmt.Sscanf(h.s.String(), "host:0/%d", &h.line); err != nil {
		return err
	}
	if !m.lineFree(h.line) {
		return fmt.Errorf("%v was leased while it was held or worked", h.s)
	}
	m.lines[h.line].holders = 1
	h.tool = -1
	if withTool {
		h.tool = h.x.Index()
		for _, other := range m.held {
			if other.tool == h.tool {
				return fmt.Errorf("tool %d was leased to two", h.tool)
			}
		}
		if fresh := id(h.x) != m.version[h.tool]; fresh != m.broken[h.tool] {
			return fmt.Errorf("slot %d was remade %v; that it broke is %v", h.tool, fresh, m.broken[h.tool])
		}
		m.broken[h.tool], m.version[h.tool] = false, id(h.x)
		m.tools[h.tool].leased = true
	}
	m.held = append(m.held, &h)
	return nil
}

// settle serves the model's queues and checks that the same callers were
// answered.
func (m *model) settle() error {
	for len(m.forTool) > 0 && m.freeTool() >= 0 {
		c := m.forTool[0]
		m.forTool = m.forTool[1:]
		c.tool = m.freeTool() // which one is seen when it is answered
		m.tools[c.tool].leased = true
		m.forLine = append(m.forLine, c)
	}
	for len(m.forLine) > 0 && m.freeLine() >= 0 {
		c := m.forLine[0]
		m.forLine = m.forLine[1:]
		select {
		case h := <-c.result:
			if c.wants {
				m.swap(c.tool, h.x.Index())
			}
			if err := m.got(h, c.wants); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the oldest caller was not answered; a tool and a stream were free")
		}
	}
	for _, c := range append(slices.Clone(m.forTool), m.forLine...) {
		if len(c.result) > 0 {
			return fmt.Errorf("a caller was answered before its turn, or with what was not free")
		}
	}
	return nil
}

// swap corrects which of the free tools a caller was given.
func (m *model) swap(guessed, given int) {
	if guessed == given {
		return
	}
	for _, c := range m.forLine {
		if c.tool == given {
			c.tool = guessed
			return
		}
	}
	m.tools[guessed] = place{line: -1}
}

// compare checks the counts of both pools and how many tools were made.
func (m *model) compare() error {
	heldTools, heldLines := 0, 0
	for _, p := range m.tools {
		if p.leased {
			heldTools++
		}
	}
	for _, l := range m.lines {
		if l.holders > 0 {
			heldLines++
		}
	}
	_, a, _, b := m.r.e.Counts()
	_, c, _, d := m.r.r.Streams().Counts()
	if a != heldTools || b != len(m.forTool) || c != heldLines || d != len(m.forLine) {
		return fmt.Errorf("tools have %d leased and %d waiting, streams %d and %d; the model has %d, %d, %d and %d",
			a, b, c, d, heldTools, len(m.forTool), heldLines, len(m.forLine))
	}
	return nil
}
