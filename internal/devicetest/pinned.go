package devicetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
)

// first is the first number of a host buffer.
func first(x []byte) int64 { return int64(binary.NativeEndian.Uint64(x)) }

var pinnedTests = []test{
	{"the host waits for the writer of page-locked memory, and to write it for readers too", func(f *fixture) {
		w := f.memory(options{})
		s, b, out := w.streams(2), w.pinned(8*words), w.new(words)
		w.ok(b.HostWrite(context.Background(), func(x []byte) error {
			for i := range words {
				binary.NativeEndian.PutUint64(x[8*i:], 1)
			}
			return nil
		}))
		release := w.stall(s[0])
		w.fill(s[0], b, 2)
		var saw int64
		reading := w.startWaiting("HostRead", func() error {
			return b.HostRead(context.Background(), func(x []byte) error { saw = first(x); return nil })
		})
		if reading.ended() {
			w.t.Error("the host read before the writer was done")
		}
		release()
		w.ok(reading.join())
		if saw != 2 {
			w.t.Errorf("the host saw %d; expected 2", saw)
		}
		release = w.stall(s[1])
		w.move(s[1], out, b)
		w.within("HostRead beside a reader", func() error {
			return b.HostRead(context.Background(), func([]byte) error { return nil })
		})
		ctx, cancel := context.WithCancel(context.Background()) // parked, not in the driver
		defer cancel()
		writing := w.startWaiting("HostWrite", func() error {
			return b.HostWrite(ctx, func(x []byte) error { clear(x); return nil })
		})
		if writing.ended() {
			w.t.Error("the host wrote before the reader was done")
		}
		release()
		w.ok(writing.join())
		w.expect("what the reader saw", s[0], out, 2)
		w.expect("what the host wrote", s[0], b, 0)
	}},
	{"a host access excludes others while it lasts, and none afterwards", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.lease(w.r), w.pinned(8*words)
		w.ok(b.HostWrite(context.Background(), func([]byte) error {
			w.refused(look(s, b), weir.ErrBusy, "buffer.Read on %s: the buffer of 512 bytes has an open write; end that access first", w.name)
			return nil
		}))
		w.ok(b.HostRead(context.Background(), func([]byte) error {
			w.refused(fill(s, b, 1), weir.ErrBusy, "buffer.Write on %s: the buffer of 512 bytes has an open read; end that access first", w.name)
			return look(s, b)
		}))
		w.fill(s, b, 1)
		w.expect("afterwards", s, b, 1)
	}},
	{"a host access ends with its context, and the work goes on", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.lease(w.r), w.pinned(8*words)
		release := w.stall(s)
		w.fill(s, b, 1)
		ctx, cancel := context.WithCancelCause(context.Background())
		reading := w.startWaiting("HostRead", func() error {
			return b.HostRead(ctx, func([]byte) error { return errors.New("host code ran beside the writer") })
		})
		cancel(errCause)
		w.refused(reading.join(), errCause, "completion.Wait on stream %s: gave up waiting: %v", s, errCause)
		release()
		w.expect("the work", s, b, 1)
	}},
	{"a device's own memory is given to host code only where the processor may touch it", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.lease(w.r), w.new(words)
		w.fill(s, b, 3)
		for name, do := range map[string]func(context.Context, func([]byte) error) error{"HostRead": b.HostRead, "HostWrite": b.HostWrite} {
			ran := false
			err := do(context.Background(), func(x []byte) error {
				ran = true
				if first(x) != 3 {
					return fmt.Errorf("%s saw %d; expected 3", name, first(x))
				}
				return nil
			})
			if w.raw.Capabilities().UnifiedHostAddresses {
				w.ok(err)
				continue
			}
			w.refused(err, weir.ErrNotSupported, "buffer.%s on %s: host code cannot read this device's memory; copy it", name, w.name)
			if ran {
				w.t.Errorf("%s ran host code", name)
			}
		}
	}},
	{"freeing page-locked memory waits for its users", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, b := w.lease(w.r), w.pinned(8*words)
		w.fill(s, b, 1)
		w.sync(s)
		release := w.stall(s)
		w.fill(s, b, 2)
		c := w.tail(s)
		waited := false
		w.plan.Delay(fault.EventSynchronize, func() { // the work goes on when Free waits
			waited = true
			release()
		})
		w.plan.Delay(fault.DeviceFreeHost, func() {
			if done, err := c.Done(); !done || err != nil {
				w.t.Errorf("the memory was freed with its user done: %v, %v", done, err)
			}
		})
		w.free(b)
		if n := w.plan.Counts()[fault.DeviceFreeHost]; !waited || n != 1 {
			w.t.Errorf("Free waited: %v, and made %d frees; expected 1", waited, n)
		}
	}},
	{"page-locked memory orders kernels and copies like any other", func(f *fixture) {
		w := f.memory(options{})
		s, b, one := w.streams(3), w.pinned(8*words), w.new(words)
		w.fill(s[0], b, 1)
		w.fill(s[0], one, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		want := int64(1)
		for i := range int64(9) {
			w.step(s[i%3], b, one, 2+i%2)
			want = (2+i%2)*want + 1
		}
		release()
		w.ok(b.HostRead(context.Background(), func(x []byte) error {
			if got := first(x); got != want {
				w.t.Errorf("the steps gave %d; expected %d", got, want)
			}
			return nil
		}))
	}},
	{"a buffer names its memory and its device", func(f *fixture) {
		w := f.memory(options{})
		b, p := w.new(words), w.pinned(8)
		if b.Memory() != w.m || p.Memory() != w.m || w.m.Resources() != w.r || must(buffer.Of(w.r)) != w.m {
			w.t.Error("the memories of one device differ")
		}
	}},
}
