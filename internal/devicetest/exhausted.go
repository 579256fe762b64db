package devicetest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

// limit is the most that these tests' memory may hold.
const limit = 256 << 20

func limited() options {
	return options{counted: true, ResourceOptions: runtime.ResourceOptions{MemoryLimit: limit}}
}

var exhaustedTests = []test{
	{"out of memory says what was asked, held and allowed, and a smaller block is there", func(f *fixture) {
		w := f.memory(limited())
		a := w.bytes(large)
		held := w.held()
		b, err := w.m.New(2 * large)
		var e *weir.Error
		if b != nil || !errors.Is(err, weir.ErrOutOfMemory) || !errors.As(err, &e) || e.Kind != weir.KindOutOfMemory {
			w.t.Fatalf("it answers %v, %v", b, err)
		}
		if e.Op != "buffer.New" || e.Device != w.name {
			w.t.Errorf("the error is of %q on %q", e.Op, e.Device)
		}
		want := fmt.Sprintf("asked for %d bytes; %d held, of which %d in use; limit %d", 2*large, held, large, limit)
		if e.Message != want {
			w.t.Errorf("\ngot      %s\nexpected %s", e.Message, want)
		}
		if !errors.As(e.Err, &e) || !strings.Contains(e.Message, fmt.Sprintf("%d", 2*large)) {
			w.t.Errorf("the cause is %v; expected the driver's own words", e)
		}
		s := w.lease(w.r)
		small := w.bytes(64 << 20)
		w.fill(s, small, 1)
		w.expect("a smaller block", s, small, 1)
		w.free(a, small)
		w.free(w.bytes(2 * large)) // there is room again
	}},
	{"sizes near the largest number are refused, not wrapped", func(f *fixture) {
		w := f.memory(options{})
		for _, n := range []int64{math.MaxInt64, math.MaxInt64 - 4095, 1 << 62} {
			if err := second(w.m.New(n)); !errors.Is(err, weir.ErrOutOfMemory) {
				w.t.Errorf("%d bytes: %v; expected ErrOutOfMemory", n, err)
			}
			if err := second(w.m.NewPinned(n)); !errors.Is(err, weir.ErrOutOfMemory) {
				w.t.Errorf("%d page-locked bytes: %v; expected ErrOutOfMemory", n, err)
			}
		}
		w.free(w.bytes(large))
	}},
	{"exhausted memory gives back what is cached", func(f *fixture) {
		w := f.memory(limited())
		var all []*buffer.Buffer
		for range 60 { // of four to a slab, more than half of the limit
			all = append(all, w.bytes(blockBytes))
		}
		w.free(all...)
		for range 3 {
			all = append(all, w.bytes(40<<20))
		}
		w.free(all[60:]...)
		w.free(w.bytes(200 << 20)) // beside what is cached there is no room
	}},
	{"exhausted memory collects garbage", func(f *fixture) {
		w := f.memory(limited())
		s := w.lease(w.r)
		for range 8 {
			b, err := w.m.New(large) // two fit
			w.ok(err)
			w.fill(s, b, 1)
		}
		if held := w.m.Stats().Held; held > limit {
			w.t.Errorf("%d bytes are held; the limit is %d", held, limit)
		}
	}},
	{"exhausted memory waits for frees in flight", func(f *fixture) {
		w := f.memory(limited())
		w.pooled()
		s, old := w.streams(2), w.bytes(2*large)
		w.fill(s[0], old, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		w.fill(s[0], old, 2)
		w.free(old)
		waited := false
		w.plan.Delay(fault.StreamSynchronize, func() { // it goes on when New waits
			waited = true
			release()
		})
		var b *buffer.Buffer
		w.within("New", func() (err error) {
			b, err = w.m.New(large + large/2) // too different in size to take the old block
			return err
		})
		w.plan.Clear()
		w.own(b, nil)
		if !waited {
			w.t.Error("memory in use was given away")
		}
		w.fill(s[1], b, 3)
		w.expect("the new buffer", s[1], b, 3)
	}},
	{"exhausted memory does not wait for what only the caller could free", func(f *fixture) {
		w := f.memory(limited())
		s, b := w.lease(w.r), w.bytes(2*large)
		w.stall(s)
		w.fill(s, b, 1)
		err := w.start("New", func() error { return second(w.m.New(2 * large)) }).join()
		if !errors.Is(err, weir.ErrOutOfMemory) {
			w.t.Errorf("it answers %v; expected ErrOutOfMemory", err)
		}
	}},
	{"a failure that is not a lack of memory is answered at once", func(f *fixture) {
		w := f.memory(options{counted: true})
		w.pooled()
		for _, n := range []int64{100, 3 << 20} {
			w.plan.FailNth(fault.PoolAlloc, 1, errCause)
			if calls := w.count(fault.PoolAlloc, func() {
				if b, err := w.m.New(n); b != nil || !errors.Is(err, errCause) {
					w.t.Errorf("%d bytes: got %v, %v", n, b, err)
				}
			}); calls != 1 {
				w.t.Errorf("%d bytes: %d attempts", n, calls)
			}
		}
	}},
}
