package buffer_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// The model of the ledger. An operation may run when the one before it on its
// stream has run, and what its operands' histories demand: of a read the
// buffer's latest write, of a write also every read since. A gate runs when it
// is opened. That is all that the device may wait for, so after each step
// exactly the operations that the model lets run have run.

type ledgerModel struct {
	t       *rapid.T
	streams []*modelStream
	buffers []*modelBuffer
	pending []*modelOp // submitted and, by the model, not yet run
	gates   []*modelOp // closed ones
}

type modelStream struct {
	s    stream.Stream
	dev  int
	last *modelOp
}

type modelBuffer struct {
	b       *buffer.Buffer
	dev     int
	writes  int64 // how many were submitted
	writer  *modelOp
	readers []*modelOp

	// What device work sees. These are plain variables: a missing wait is a
	// race. value must be the number of writes before.
	value int64
}

type modelOp struct {
	needs []*modelOp    // nil entries need nothing
	ran   bool          // in the model
	open  func()        // of a closed gate
	done  chan struct{} // closed by the device
}

func (m *ledgerModel) submit(s *modelStream, op *modelOp, work func()) {
	op.done = make(chan struct{})
	op.needs = append(op.needs, s.last)
	s.last = op
	m.pending = append(m.pending, op)
	err := s.s.Call(func() {
		defer close(op.done)
		work()
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// access submits one operation that reads and writes the buffers drawn.
func (m *ledgerModel) access() {
	s := rapid.SampledFrom(m.streams).Draw(m.t, "stream")
	chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, len(m.buffers)-1), 1, 4, rapid.ID).Draw(m.t, "buffers")
	acc := buffer.Begin(s.s)
	if slices.ContainsFunc(chosen, func(i int) bool { return m.buffers[i].dev != s.dev }) {
		acc = buffer.BeginCopy(s.s)
	}
	op := &modelOp{}
	var work []func()
	for _, i := range chosen {
		b := m.buffers[i]
		expected := b.writes
		op.needs = append(op.needs, b.writer)
		if rapid.Bool().Draw(m.t, "write") {
			p := acc.Write(b.b)
			b.writes++
			op.needs = append(op.needs, b.readers...)
			b.writer, b.readers = op, nil
			work = append(work, func() {
				m.check(p, b, expected)
				b.value++
				*word(p) = b.value
			})
		} else {
			p := acc.Read(b.b)
			b.readers = append(b.readers, op)
			work = append(work, func() { m.check(p, b, expected) })
		}
	}
	if err := acc.Err(); err != nil {
		m.t.Fatal(err)
	}
	m.submit(s, op, func() {
		for _, f := range work {
			f()
		}
	})
	if err := acc.End(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *ledgerModel) check(p buffer.Ptr, b *modelBuffer, expected int64) {
	if b.value != expected || *word(p) != expected {
		m.t.Errorf("an operation after %d writes found %d, and %d in memory", expected, b.value, *word(p))
	}
}

func word(p buffer.Ptr) *int64 { return &hostmem.Slice[int64](uintptr(p), 1)[0] }

func (m *ledgerModel) stall() {
	s := rapid.SampledFrom(m.streams).Draw(m.t, "stream")
	gate := make(chan struct{})
	op := &modelOp{open: func() { close(gate) }}
	m.gates = append(m.gates, op)
	m.submit(s, op, func() { <-gate })
}

func (m *ledgerModel) open(i int) {
	m.gates[i].open()
	m.gates[i].open = nil
	m.gates = slices.Delete(m.gates, i, i+1)
}

// settle runs the model on and checks that the device follows, and no further.
func (m *ledgerModel) settle() {
	for again := true; again; {
		again = false
		m.pending = slices.DeleteFunc(m.pending, func(op *modelOp) bool {
			if op.open != nil || slices.ContainsFunc(op.needs, func(n *modelOp) bool { return n != nil && !n.ran }) {
				return false
			}
			op.ran, again = true, true
			op.needs = nil
			arrives(m.t, op.done)
			return true
		})
	}
	for _, op := range m.pending {
		if happened(op.done) {
			m.t.Error("an operation ran before what it needs")
		}
	}
	for i, b := range m.buffers {
		if n := buffer.LedgerLength(b.b); n > len(m.streams)+2 { // two devices' reclamation streams
			m.t.Errorf("the ledger of buffer %d has %d completions", i, n)
		}
	}
}

func TestTheLedgerAgreesWithItsModel(t *testing.T) {
	w := newWorld(t, options{})
	rapid.Check(t, func(rt *rapid.T) {
		m := &ledgerModel{t: rt}
		defer m.finish()
		for dev, r := range must(runtime.Enrolled()) {
			for range 3 {
				s, err := r.Streams().Acquire(context.Background())
				if err != nil {
					rt.Fatal(err)
				}
				m.streams = append(m.streams, &modelStream{s: s, dev: dev})
			}
			for range 3 {
				m.buffers = append(m.buffers, &modelBuffer{b: must(must(buffer.Of(r)).New(64)), dev: dev})
			}
			// Of one allocation, with ledgers of their own.
			parts := must(must(must(buffer.Of(r)).New(128)).Partition(buffer.Range{Bytes: 8}, buffer.Range{Offset: 8, Bytes: 8}))
			for _, b := range parts {
				m.buffers = append(m.buffers, &modelBuffer{b: b, dev: dev})
			}
			w.ok(r.Reclaim().Synchronize(context.Background()))
		}
		for _, b := range m.buffers {
			w.ok(b.b.HostWrite(context.Background(), func(x []byte) error { clear(x); return nil }))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"access":  func(t *rapid.T) { m.t = t; m.access() },
			"access2": func(t *rapid.T) { m.t = t; m.access() },
			"access3": func(t *rapid.T) { m.t = t; m.access() },
			"stall":   func(t *rapid.T) { m.t = t; m.stall() },
			"open": func(t *rapid.T) {
				if m.t = t; len(m.gates) > 0 {
					m.open(rapid.IntRange(0, len(m.gates)-1).Draw(t, "gate"))
				}
			},
			"": func(t *rapid.T) { m.t = t; m.settle() },
		})
	})
}

// finish lets everything run out, whatever became of the test.
func (m *ledgerModel) finish() {
	for len(m.gates) > 0 {
		m.open(0)
	}
	m.settle()
	for _, s := range m.streams {
		if err := s.s.Release(); err != nil {
			m.t.Error(err)
		}
	}
	for _, b := range m.buffers {
		if err := b.b.HostRead(context.Background(), func(x []byte) error {
			if got := *word(buffer.Address(b.b)); got != b.writes {
				m.t.Errorf("after %d writes a buffer holds %d", b.writes, got)
			}
			return nil
		}); err != nil {
			m.t.Error(err)
		}
		if err := b.b.Free(); err != nil {
			m.t.Error(err)
		}
	}
}
