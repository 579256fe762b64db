//go:build cuda

package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/csrc/floor"
)

// mostProcessGrowth is how many bytes the process may grow: Go's collector takes
// and gives memory in larger steps than the heap of live objects does.
const mostProcessGrowth = 32 << 20

func gpuFlatCases(env Env) []Case {
	count := 10_000_000
	if env.Quick {
		count = 100_000
	}
	c := Case{Name: fmt.Sprintf("%d blocks made, accessed and freed / the driver's, with an event", count), Unit: Nanoseconds}
	return []Case{onGPU(env, c, 1, func(x *rig) (*Trial, error) {
		m, err := buffer.Of(x.r)
		if err != nil {
			return nil, err
		}
		f := &flat{x: x, memory: m}
		return &Trial{
			Value: each(f.once), Floor: func(n int) (time.Duration, error) { return x.gpu.Call(floor.Block, n) },
			Allocs: true,
			Check:  func() error { return f.check(f.once, max(count/100, 20_000), count) },
			Figures: func(Result) []Figure {
				return []Figure{{"heap growth", float64(f.heap), "bytes"}, {"process growth", float64(f.process), "bytes"},
					{"device growth", float64(f.device), "bytes"}, {"over", f.took.Seconds(), "s"}}
			},
		}, nil
	})}
}

// flat makes blocks, leases and accesses that leave nothing.
type flat struct {
	x      *rig
	memory *buffer.Memory
	turn   int64

	heap, process, device int64 // growth, in bytes
	took                  time.Duration
}

// once is the life of a small block. Submit stands for an operation on it, so
// that End has something to record.
func (f *flat) once() error {
	f.turn++
	b, err := f.memory.New(64 << (f.turn % 7))
	if err != nil {
		return err
	}
	s, err := f.x.r.Streams().Acquire(f.x.ctx)
	if err != nil {
		return errors.Join(err, b.Free())
	}
	acc := buffer.Begin(s)
	acc.Write(b)
	_, err = s.Submit()
	return errors.Join(err, acc.End(), s.Release(), b.Free())
}

// check has once leave nothing when it is repeated count times, after some that
// fill pools.
func (f *flat) check(once func() error, first, count int) error {
	if _, err := each(once)(first); err != nil {
		return err
	}
	before, err := f.now()
	if err != nil {
		return err
	}
	if f.took, err = each(once)(count); err != nil {
		return err
	}
	after, err := f.now()
	if err != nil {
		return err
	}
	f.heap, f.process, f.device = after.heap-before.heap, after.process-before.process, after.device-before.device
	if f.heap > mostGrowth || f.process > mostProcessGrowth && !shadowed || f.device > leftOver {
		return wrong("%d blocks grew the heap by %d bytes, the process by %d and the device's memory by %d; expected at most %d, %d and %d",
			count, f.heap, f.process, f.device, mostGrowth, mostProcessGrowth, leftOver)
	}
	return nil
}

// usage is bytes in use.
type usage struct{ heap, process, device int64 }

func (f *flat) now() (usage, error) {
	if err := f.x.gpu.Synchronize(); err != nil {
		return usage{}, err
	}
	u := usage{heap: heap()}
	debug.FreeOSMemory()
	var err error
	if u.process, err = resident(); err != nil {
		return u, err
	}
	free, total, err := f.x.gpu.Memory()
	u.device = total - free
	return u, err
}

// resident is how many bytes of the process's memory are real, by Linux's
// /proc/self/statm.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, wrong("/proc/self/statm holds %q; expected several numbers", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
