package drivertest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// cellWidth is the number of elements of a cell.
const cellWidth = 8

// cell is a piece of device memory of a random program, its model, and the
// accesses that a later one has to be ordered after.
type cell struct {
	device int
	at     driver.Ptr
	model  []int64
	writer *access
	reads  []*access
}

// access is one operation of a random program. done is nil if the operation
// got no event of its own.
type access struct {
	stream int
	done   driver.Event
}

// program is a random program under way: operations on a few cells by a few
// streams, ordered by events just as far as they conflict.
type program struct {
	f       *fixture
	devices []driver.Device
	streams []driver.Stream // stream i is of device i mod len(devices)
	tails   []driver.Event  // one a stream, recorded again and again
	cells   []*cell
}

// randomPrograms runs random programs with some of their streams stalled until
// everything is submitted, so that an order that is not enforced is not kept
// by luck, and compares each cell with a model that runs in submission order.
func randomPrograms(f *fixture) {
	rapid.Check(f.t.(*testing.T), func(t *rapid.T) {
		p := newProgram(&fixture{t: t, h: f.h, family: f.family}, rapid.IntRange(2, 4).Draw(t, "streams"))
		var releases []func()
		for _, s := range p.streams {
			if rapid.Bool().Draw(t, "stalled") {
				releases = append(releases, p.f.stall(s))
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "operations") {
			p.step(t)
		}
		for _, i := range rapid.Permutation(indices(len(releases))).Draw(t, "order of release") {
			releases[i]()
		}
		p.check()
	})
}

func newProgram(f *fixture, streams int) *program {
	p := &program{f: f}
	for i := range min(f.family.Count(), 2) {
		p.devices = append(p.devices, f.device(i))
	}
	for i := range 3 * len(p.devices) {
		c := &cell{device: i % len(p.devices), model: make([]int64, cellWidth)}
		c.at = f.alloc(p.devices[c.device], 8*cellWidth)
		p.cells = append(p.cells, c)
	}
	for i := range streams {
		d := p.devices[i%len(p.devices)]
		p.streams = append(p.streams, f.stream(d))
		p.tails = append(p.tails, f.event(d))
	}
	for _, c := range p.cells {
		s := p.streams[c.device]
		f.ok(s.Zero(c.at, 8*cellWidth))
		f.sync("the stream", s)
	}
	return p
}

// step submits one random operation and applies it to the model.
func (p *program) step(t *rapid.T) {
	f := p.f
	s := rapid.IntRange(0, len(p.streams)-1).Draw(t, "stream")
	here := s % len(p.devices)
	dst := p.cells[rapid.IntRange(0, len(p.cells)/len(p.devices)-1).Draw(t, "dst")*len(p.devices)+here]
	src := rapid.SampledFrom(p.cells).Draw(t, "src")
	kind := rapid.SampledFrom([]string{"fill", "copy", "in", "subtract"}).Draw(t, "operation")
	value := rapid.Int64Range(-9, 9).Draw(t, "value")
	if src == dst || kind == "subtract" && src.device != here {
		kind = "fill"
	}
	reads := kind == "copy" || kind == "subtract"

	// A copy also goes to another device.
	if kind == "copy" && rapid.Bool().Draw(t, "swapped") {
		dst, src = src, dst
	}
	p.after(s, dst.writer)
	for _, r := range dst.reads {
		p.after(s, r)
	}
	if reads {
		p.after(s, src.writer)
	}

	stream := p.streams[s]
	switch kind {
	case "fill":
		f.ok(stream.Launch(&driver.Kernel{Op: driver.KernelFill, Out: dst.view(), Alpha: complex(float64(value), 0)}))
		dst.model = slices.Repeat([]int64{value}, cellWidth)
	case "copy":
		f.ok(stream.CopyPeer(dst.at, dst.device, src.at, src.device, 8*cellWidth))
		dst.model = slices.Clone(src.model)
	case "in":
		for i := range dst.model {
			dst.model[i] = value + int64(i)
		}
		f.ok(stream.CopyIn(dst.at, bytesOf(slices.Clone(dst.model))))
	case "subtract":
		f.ok(stream.Launch(&driver.Kernel{Op: driver.KernelAxpby, Out: dst.view(), A: src.view(), Alpha: 1, Beta: -1}))
		for i := range dst.model {
			dst.model[i] = src.model[i] - dst.model[i]
		}
	}

	a := &access{stream: s}
	if rapid.Bool().Draw(t, "own event") {
		a.done = f.record(p.devices[here], stream)
	}
	dst.writer, dst.reads = a, nil
	if reads {
		src.reads = append(src.reads, a)
	}
}

// after orders what is submitted to stream s next after a, through a's own
// event or through one that is recorded now and covers a too.
func (p *program) after(s int, a *access) {
	if a == nil || a.stream == s {
		return
	}
	e := a.done
	if e == nil {
		e = p.tails[a.stream]
		p.f.ok(p.streams[a.stream].Record(e))
	}
	p.f.ok(p.streams[s].Wait(e))
}

func (p *program) check() {
	for _, s := range p.streams {
		p.f.sync("a stream of the program", s)
	}
	for i, c := range p.cells {
		if got := read[int64](p.f, p.streams[c.device], c.at, cellWidth); !slices.Equal(got, c.model) {
			p.f.t.Errorf("cell %d is %v; a sequential run gives %v", i, got, c.model)
		}
	}
}

func (c *cell) view() driver.View { return line(c.at, dtype.Int64, cellWidth) }

// indices is 0, 1, … n-1.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
