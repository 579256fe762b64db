//go:build cuda

package cuda

// #include "driver.h"
// #include "graph.h"
// #include "blas.h"
// #cgo noescape weir_capture_begin
// #cgo noescape weir_capture_end
// #cgo noescape weir_graph_instantiate
// #cgo nocallback weir_graph_launch
import "C"

import (
	"errors"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// graph is a CUgraphExec. It has the device memory in which its products find
// addresses, since a handle's is written anew by whoever has the handle.
type graph struct {
	device  *device
	context *context
	exec    C.uintptr_t
	blocks  []addresses
	guard   guard
}

// addresses is device memory for the addresses of products, and what it is to hold.
type addresses struct {
	at   C.uint64_t
	held []driver.Ptr
}

// Capture captures in relaxed mode. cuBLAS may refuse to, as for its grouped
// products: so groups are launched one by one (groups.go).
func (d *device) Capture(on []driver.Stream, submit func() error) (driver.Graph, error) {
	const op = "Device.Capture"
	if len(on) == 0 || submit == nil {
		return nil, d.argument(op, "%d streams, and a function that is nil: %t; expected streams and a function", len(on), submit == nil)
	}
	streams := make([]*stream, len(on))
	handles := make([]C.uintptr_t, len(on))
	for i, st := range on {
		s, err := d.ours(op, st)
		if err != nil {
			return nil, err
		}
		if err := s.enter(op); err != nil {
			return nil, err
		}
		defer s.leave()
		streams[i], handles[i] = s, s.handle
	}
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	g := &graph{device: d, context: c}
	if err := g.capture(op, streams, handles, submit); err != nil {
		_ = g.giveUp(op) // the capture's failure is the answer
		return nil, err
	}
	return g, nil
}

// capture makes the graph of what submit submits.
func (g *graph) capture(op string, streams []*stream, handles []C.uintptr_t, submit func() error) error {
	d, c := g.device, g.context
	event, err := c.events.take(op, c)
	if err != nil {
		return err
	}
	defer C.weir_event_destroy(c.handle, event) // not to be asked for, as others may be
	if err := d.check(op, C.weir_capture_begin(c.handle, &handles[0], C.size_t(len(handles)), event)); err != nil {
		return err
	}
	var made C.uintptr_t
	ended := C.int(0)
	err = func() error {
		for _, s := range streams {
			s.capturing = g
		}
		defer func() { // though submit panics
			for _, s := range streams {
				s.capturing = nil
			}
			ended = C.weir_capture_end(c.handle, &handles[0], C.size_t(len(handles)), event, &made)
		}()
		return submit()
	}()
	if made != 0 {
		defer C.weir_graph_destroy(c.handle, made)
	}
	end := d.check(op, ended)
	switch {
	case err != nil && errors.Is(end, weir.ErrNotSupported): // what failed cannot be captured
		return &weir.Error{Op: op, Device: d.name, Kind: weir.KindCUDA, Message: end.Error(), Err: errors.Join(weir.ErrNotSupported, err)}
	case err != nil:
		return err
	case end != nil:
		return end
	}
	if err := g.fill(op, streams[0]); err != nil {
		return err
	}
	return d.check(op, C.weir_graph_instantiate(c.handle, made, &g.exec))
}

// fill writes the addresses to device memory and waits until they are there.
func (g *graph) fill(op string, s *stream) error {
	for _, b := range g.blocks {
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&b.held[0])), len(b.held)*8)
		if err := s.stage(op, driver.Ptr(b.at), bytes); err != nil {
			return err
		}
	}
	if len(g.blocks) == 0 {
		return nil
	}
	return s.synchronize(op)
}

// place gives addresses a place in the graph's memory.
func (g *graph) place(op string, lists ...[]driver.Ptr) (C.uint64_t, error) {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	last := len(g.blocks) - 1
	if last < 0 || len(g.blocks[last].held)+n > addressBytes/8 {
		var b addresses
		if err := g.device.check(op, C.weir_alloc(g.context.handle, addressBytes, &b.at)); err != nil {
			return 0, err
		}
		g.blocks = append(g.blocks, b)
		last++
	}
	b := &g.blocks[last]
	at := b.at + C.uint64_t(8*len(b.held))
	for _, l := range lists {
		b.held = append(b.held, l...)
	}
	return at, nil
}

func (g *graph) Launch(st driver.Stream) error {
	const op = "Graph.Launch"
	s, err := g.device.ours(op, st)
	if err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if !g.guard.enter() {
		return g.device.closed(op, "graph")
	}
	defer g.leave()
	return g.device.check(op, C.weir_graph_launch(g.context.handle, g.exec, s.handle))
}

func (g *graph) leave() {
	if g.guard.leave() {
		_ = g.giveUp("Graph.Destroy") // it was destroyed during a call; that one answers for it
	}
}

func (g *graph) Destroy() error {
	const op = "Graph.Destroy"
	if g.guard.close() {
		return g.giveUp(op)
	}
	return g.device.alive(op)
}

// giveUp gives back what the graph has.
func (g *graph) giveUp(op string) error {
	defer g.device.release()
	if err := g.device.alive(op); err != nil {
		return err
	}
	var errs []error
	if g.exec != 0 {
		errs = append(errs, g.device.check(op, C.weir_graph_exec_destroy(g.context.handle, g.exec)))
	}
	for _, b := range g.blocks {
		errs = append(errs, g.device.check(op, C.weir_free(g.context.handle, b.at)))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
