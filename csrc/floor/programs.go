//go:build cuda

package floor

// #include "floor.h"
// #cgo noescape floor_batch_open
// #cgo noescape floor_batch_run
// #cgo noescape floor_program_open
// #cgo noescape floor_program_run
// #cgo noescape floor_program_replay
import "C"

import (
	"unsafe"

	"github.com/weirgo/weir"
)

// Batch is independent products of n×n matrices of float32.
type Batch struct {
	gpu    *GPU
	handle *C.struct_floor_batch
}

// Way is how a batch is given to cuBLAS.
type Way int

const (
	Strided        Way = C.floor_strided         // by the distance of the matrices
	Pointers       Way = C.floor_pointers        // by arrays of addresses that are on the device
	CopiedPointers Way = C.floor_copied_pointers // by such arrays, which are built and copied each time
)

// Batch readies count products cᵢ = aᵢ·bᵢ of n×n matrices, each n·n elements behind
// the one before.
func (g *GPU) Batch(n int, a, b, c Address, count int) (*Batch, error) {
	const op = "floor.Batch"
	if n < 1 || count < 1 {
		return nil, weir.Argf(op, "%d products of %d×%d matrices; expected at least 1 of at least 1×1", count, n, n)
	}
	x := &Batch{gpu: g}
	return x, g.check(op, C.floor_batch_open(g.handle, C.int(n), C.uint64_t(a), C.uint64_t(b), C.uint64_t(c), C.int(count), &x.handle))
}

// Run computes all and waits for them.
func (b *Batch) Run(w Way) (Times, error) {
	var t C.struct_floor_times
	err := b.gpu.check("floor.Batch.Run", C.floor_batch_run(b.handle, C.enum_floor_way(w), &t))
	return timesOf(t), err
}

// Close gives the batch back.
func (b *Batch) Close() error { return b.gpu.check("floor.Batch.Close", C.floor_batch_close(b.handle)) }

// Step is a product C = A·B of float32, of M×K and K×N matrices, once the earlier
// steps that it comes after are done.
type Step struct {
	A, B, C Address
	M, N, K int
	After   []int
}

// Program is steps over several streams, to each of which the next step goes in
// turn.
type Program struct {
	gpu    *GPU
	handle *C.struct_floor_program
}

// Program readies steps, at least one.
func (g *GPU) Program(steps []Step, streams int) (*Program, error) {
	const op = "floor.Program"
	if len(steps) == 0 || streams < 1 || streams > g.lanes {
		return nil, weir.Argf(op, "%d steps on %d streams; expected at least 1 on 1 to %d", len(steps), streams, g.lanes)
	}
	all := make([]C.struct_floor_step, len(steps))
	list := make([]C.int32_t, 0, 1)
	for i, s := range steps {
		all[i] = C.struct_floor_step{a: C.uint64_t(s.A), b: C.uint64_t(s.B), c: C.uint64_t(s.C), m: C.int32_t(s.M), n: C.int32_t(s.N),
			k: C.int32_t(s.K), first: C.int32_t(len(list)), waits: C.int32_t(len(s.After))}
		for _, before := range s.After {
			if before < 0 || before >= i {
				return nil, weir.Argf(op, "step %d comes after step %d; expected one before it", i, before)
			}
			list = append(list, C.int32_t(before))
		}
	}
	p := &Program{gpu: g}
	return p, g.check(op, C.floor_program_open(g.handle, &all[0], C.int(len(all)), unsafe.SliceData(list), C.int(len(list)), C.int(streams), &p.handle))
}

// Run submits the steps one by one and waits for them.
func (p *Program) Run() (Times, error) {
	var t C.struct_floor_times
	err := p.gpu.check("floor.Program.Run", C.floor_program_run(p.handle, &t))
	return timesOf(t), err
}

// Replay launches the steps count times, each time as one graph, and waits for
// them. The first one runs them and captures the graph before, which isn't timed.
func (p *Program) Replay(count int) (Times, error) {
	var t C.struct_floor_times
	err := p.gpu.check("floor.Program.Replay", C.floor_program_replay(p.handle, C.int64_t(count), &t))
	return timesOf(t), err
}

// Close gives the program back.
func (p *Program) Close() error {
	return p.gpu.check("floor.Program.Close", C.floor_program_close(p.handle))
}
