package buffer_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// The model of the allocator: each owner of memory marks both ends of it and
// finds its marks again, also after a stall in the middle of its work. An
// owner that got memory whose former owner's work is unfinished would overwrite
// the marks that this work still looks for.

const modelLimit = 48 << 20

type allocatorModel struct {
	t       *rapid.T
	m       *buffer.Memory
	streams []stream.Stream
	live    []*tenant
	gates   []chan struct{}
	used    int64
	high    int64
	marks   int64
}

// tenant is a live buffer and the mark that its latest work leaves.
type tenant struct {
	b    *buffer.Buffer
	mark int64 // 0: none yet
}

func (m *allocatorModel) add(b *buffer.Buffer, mark int64) {
	m.live = append(m.live, &tenant{b, mark})
	m.used += b.Bytes()
	m.high = max(m.high, m.used)
}

// take removes a tenant that is drawn; nil if there is none.
func (m *allocatorModel) take() *tenant {
	if len(m.live) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(m.live)-1).Draw(m.t, "tenant")
	x := m.live[i]
	m.live = slices.Delete(m.live, i, i+1)
	m.used -= x.b.Bytes()
	return x
}

func (m *allocatorModel) allocate() {
	bytes := rapid.SampledFrom([]int64{8, 300, 5000, 100_000, 900_000, 1 << 20, 3 << 20}).Draw(m.t, "bytes")
	if m.m.Stats().Held+(4<<20) > modelLimit {
		m.openAll() // memory may be exhausted, and then New waits for frees in flight
	}
	b, err := m.m.New(bytes)
	if err != nil {
		m.t.Fatalf("%d bytes with %+v: %v", bytes, m.m.Stats(), err)
	}
	m.add(b, 0)
}

func (m *allocatorModel) use() {
	if len(m.live) == 0 {
		return
	}
	x := rapid.SampledFrom(m.live).Draw(m.t, "tenant")
	s := rapid.SampledFrom(m.streams).Draw(m.t, "stream")
	acc := buffer.Begin(s)
	p := acc.Write(x.b)
	last := p + buffer.Ptr(x.b.Bytes()-8)&^7
	before := x.mark
	m.marks++
	x.mark = m.marks
	mark := m.marks
	find := func(want int64) {
		if want != 0 && (*word(p) != want || *word(last) != want) {
			m.t.Errorf("memory at %#x holds the marks %d and %d; its owner left %d", p, *word(p), *word(last), want)
		}
	}
	m.call(s, func() { find(before); *word(p), *word(last) = mark, mark })
	if rapid.Bool().Draw(m.t, "stalled") {
		gate := make(chan struct{})
		m.gates = append(m.gates, gate)
		m.call(s, func() { <-gate })
	}
	m.call(s, func() { find(mark) })
	if err := acc.End(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *allocatorModel) call(s stream.Stream, fn func()) {
	if err := s.Call(fn); err != nil {
		m.t.Fatal(err)
	}
}

func (m *allocatorModel) free() {
	if x := m.take(); x != nil {
		if err := x.b.Free(); err != nil {
			m.t.Fatal(err)
		}
	}
}

// cut partitions a buffer in two; the marks at its ends are found only through
// the whole.
func (m *allocatorModel) cut() {
	x := m.take()
	if x == nil {
		return
	}
	half := x.b.Bytes() / 16 * 8
	ranges := []buffer.Range{{Bytes: half}, {Offset: half, Bytes: x.b.Bytes() - half}}
	if half == 0 {
		ranges = ranges[1:]
	}
	parts, err := x.b.Partition(ranges...)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, p := range parts {
		m.add(p, 0)
	}
}

// forget leaves a buffer to the collector.
func (m *allocatorModel) forget() {
	if rapid.IntRange(0, 5).Draw(m.t, "rarely") == 0 && m.take() != nil {
		runtime.Collect()
		m.m.Live() // waits for the reclaimer
	}
}

func (m *allocatorModel) trim() {
	if err := m.m.Trim(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *allocatorModel) openOne() {
	if len(m.gates) > 0 {
		i := rapid.IntRange(0, len(m.gates)-1).Draw(m.t, "gate")
		close(m.gates[i])
		m.gates = slices.Delete(m.gates, i, i+1)
	}
}

func (m *allocatorModel) openAll() {
	for _, g := range m.gates {
		close(g)
	}
	m.gates = nil
}

func (m *allocatorModel) check() {
	s := m.m.Stats()
	if s.Buffers != int64(len(m.live)) || s.Used != m.used || s.HighUsed != m.high {
		m.t.Errorf("got %+v; expected %d buffers, %d used, %d at most", s, len(m.live), m.used, m.high)
	}
	if s.Held > modelLimit || s.Held < s.Used+s.Cached {
		m.t.Errorf("got %+v; held is over the limit, or less than what is used and cached", s)
	}
	slices.SortFunc(m.live, func(x, y *tenant) int { return int(buffer.Address(x.b)) - int(buffer.Address(y.b)) })
	for i, x := range m.live[min(1, len(m.live)):] {
		if before := m.live[i]; buffer.Address(before.b)+buffer.Ptr(before.b.Bytes()) > buffer.Address(x.b) {
			m.t.Errorf("two live buffers overlap: %#x of %d bytes and %#x", buffer.Address(before.b), before.b.Bytes(), buffer.Address(x.b))
		}
	}
}

func TestTheAllocatorAgreesWithItsModel(t *testing.T) {
	w := newWorld(t, limited(modelLimit))
	streams := w.streams(4)
	rapid.Check(t, func(t *rapid.T) {
		w.ok(w.m.Trim())
		w.m.ResetPeak()
		m := &allocatorModel{t: t, m: w.m, streams: streams}
		defer func() { // whatever became of the test
			m.openAll()
			for _, x := range m.live {
				w.free(x.b)
			}
			for _, s := range streams {
				w.wait(s)
			}
		}()
		do := func(action func()) func(*rapid.T) { return func(t *rapid.T) { m.t = t; action() } }
		t.Repeat(map[string]func(*rapid.T){
			"new": do(m.allocate), "new again": do(m.allocate), "use": do(m.use), "use again": do(m.use),
			"free": do(m.free), "cut": do(m.cut), "forget": do(m.forget), "trim": do(m.trim),
			"open a gate": do(m.openOne), "": do(m.check),
		})
	})
}
