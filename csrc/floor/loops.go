//go:build cuda

package floor

// #include "floor.h"
// #cgo noescape floor_chain
// #cgo noescape floor_products
// #cgo noescape floor_copy_in
// #cgo noescape floor_copy_out
// #cgo noescape floor_calls
// #cgo nocallback floor_nothing
import "C"

import (
	"time"
	"unsafe"

	"github.com/weirgo/weir"
)

// Kind is how a product's elements are multiplied.
type Kind int

const (
	Single Kind = C.floor_single // float32
	Double Kind = C.floor_double // float64
	TF32   Kind = C.floor_tf32   // float32, rounded to TF32 first
)

// Chain computes x·b, x·b·b and so on, count products of n×n matrices, into the
// two turns alternately, the first of them first. Each goes to the next of the
// streams: with more than one it waits there for the one before, and the stream is
// asked first whether it is idle, as a pool does. Device is the device's time from
// before the first product to after the last.
func (g *GPU) Chain(k Kind, n int, x, b Address, turns [2]Address, streams, count int) (Times, error) {
	const op = "floor.Chain"
	if streams < 1 || streams > g.lanes {
		return Times{}, weir.Argf(op, "%d streams; expected 1 to %d", streams, g.lanes)
	}
	var t C.struct_floor_times
	into := [2]C.uint64_t{C.uint64_t(turns[0]), C.uint64_t(turns[1])}
	err := g.check(op, C.floor_chain(g.handle, C.enum_floor_kind(k), C.int(n), C.uint64_t(x), C.uint64_t(b), &into[0], C.int(streams), C.int(count), &t))
	return timesOf(t), err
}

// Products computes a·b of n×n matrices count times, in bursts that are waited
// for: each product of a burst goes to the next of the streams and to the next
// result. Times are sums over the bursts; there is no Device.
func (g *GPU) Products(k Kind, n int, a, b Address, results []Address, streams, count, burst int) (Times, error) {
	const op = "floor.Products"
	if len(results) == 0 || streams < 1 || streams > g.lanes || burst < 1 {
		return Times{}, weir.Argf(op, "%d results, %d streams and bursts of %d; expected at least 1 of each, and at most %d streams",
			len(results), streams, burst, g.lanes)
	}
	var t C.struct_floor_times
	err := g.check(op, C.floor_products(g.handle, C.enum_floor_kind(k), C.int(n), C.uint64_t(a), C.uint64_t(b),
		(*C.uint64_t)(unsafe.Pointer(&results[0])), C.int(len(results)), C.int(streams), C.int64_t(count), C.int(burst), &t))
	return timesOf(t), err
}

// CopyIn copies plain or page-locked memory to the device.
func (g *GPU) CopyIn(dst Address, src []byte) (Times, error) {
	var t C.struct_floor_times
	err := g.check("floor.CopyIn", C.floor_copy_in(g.handle, C.uint64_t(dst), unsafe.Pointer(unsafe.SliceData(src)), C.size_t(len(src)), &t))
	return timesOf(t), err
}

// CopyOut copies device memory to plain or page-locked memory.
func (g *GPU) CopyOut(dst []byte, src Address) (Times, error) {
	var t C.struct_floor_times
	err := g.check("floor.CopyOut", C.floor_copy_out(g.handle, unsafe.Pointer(unsafe.SliceData(dst)), C.uint64_t(src), C.size_t(len(dst)), &t))
	return timesOf(t), err
}

// Call is something that Call does again and again.
type Call int

const (
	Record       Call = C.floor_record        // an event, on a stream
	Wait         Call = C.floor_wait          // of a stream, the last one, for that event
	QueryEvent   Call = C.floor_query_event   // which is done
	QueryStream  Call = C.floor_query_stream  // which is idle
	EventPair    Call = C.floor_event_pair    // an event, made and destroyed
	MemoryPair   Call = C.floor_memory_pair   // 1 KiB in stream order, taken and given back
	HostFunction Call = C.floor_host_function // one that counts
	Block        Call = C.floor_block         // 1 KiB taken, an event recorded, the memory given back
	Empty        Call = C.floor_empty         // a function of C that does nothing
)

// Call makes the call count times, and answers how long the host took to submit
// them; now and then it waits for the device, which isn't counted.
func (g *GPU) Call(c Call, count int) (time.Duration, error) {
	var spent C.int64_t
	err := g.check("floor.Call", C.floor_calls(g.handle, C.enum_floor_call(c), C.int64_t(count), &spent))
	return time.Duration(spent), err
}

// Nothing calls a function of C that does nothing.
func Nothing() { C.floor_nothing() }

// Start takes the device's context, makes so many streams with an event each, and
// gives all back; it answers how long that took.
func Start(ordinal, streams int) (time.Duration, error) {
	var spent C.int64_t
	err := (&GPU{ordinal: ordinal}).check("floor.Start", C.floor_start(C.int(ordinal), C.int(streams), &spent))
	return time.Duration(spent), err
}
