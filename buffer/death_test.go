package buffer_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
)

var errCause = errors.New("fell off the bus")

func kill(d driver.Device) { d.(interface{ Kill(error) }).Kill(errCause) }

// lost checks that err is of a lost device and carries the first cause.
func lost(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, errCause) {
		t.Errorf("%s: %v; expected the lost device and its cause", what, err)
	}
}

func TestWhenTheDeviceDiesEverythingAnswersItsErrorAndNothingHangs(t *testing.T) {
	w := newWorld(t, options{mayFail: true})
	s := w.streams(3)
	small, large, open, pinned, idle := w.new(64), w.new(3<<20), w.new(64), must(w.m.NewPinned(64)), w.new(3<<20)
	release := w.stall(s[0])
	w.write(s[0], small, nil)
	w.write(s[0], large, nil)
	w.read(s[1], large, nil)
	w.write(s[0], pinned, nil)
	scope := buffer.Begin(s[2])
	scope.Write(open)
	w.ok(must(s[2].Submit()).Zero(buffer.Address(open), 64))

	kill(w.r.Device().Driver())
	release()
	soon(t, func() {
		lost(t, "End", scope.End())
		for name, b := range map[string]*buffer.Buffer{"small": small, "large": large, "open": open} {
			acc := buffer.Begin(s[2])
			acc.Write(b)
			lost(t, "writing "+name, errors.Join(acc.Err(), s[2].Call(func() {}), acc.End()))
			lost(t, "HostRead of "+name, b.HostRead(t.Context(), func([]byte) error { return nil }))
		}
		_, err := w.m.New(5 << 20)
		lost(t, "New", err)
		_, err = w.m.NewPinned(5)
		lost(t, "NewPinned", err)
		_ = w.m.Trim()
		for _, b := range []*buffer.Buffer{small, large, open, pinned, idle} {
			if err := b.Free(); err != nil {
				lost(t, "Free", err)
			}
			if b.Live() {
				t.Error("a buffer of the dead device cannot be freed")
			}
		}
		if s := w.m.Stats(); s.Buffers != 0 || s.Used != 0 {
			t.Errorf("at last %+v", s)
		}
		for _, s := range s {
			_ = s.Release()
		}
		lost(t, "Close", w.rt.Close())
	})
}

// A peer copy runs on the other device's stream, so that buffers of this one
// know of work of that one.
func TestADevicesDeathIsNoConcernOfMemoryThatItOnlyRead(t *testing.T) {
	w := newWorld(t, options{mayFail: true})
	far := must(runtime.Enrolled())[1]
	fs := w.lease(far)
	s := w.lease(w.r)
	release := w.stall(fs)
	var all []*buffer.Buffer
	for _, b := range []*buffer.Buffer{w.new(64), w.new(3 << 20), must(w.m.NewPinned(64)), w.new(64), w.new(3 << 20), must(w.m.NewPinned(64))} {
		acc := buffer.BeginCopy(fs)
		acc.Read(b)
		w.ok(fs.Call(func() {}))
		w.ok(acc.End())
		all = append(all, b)
	}
	kill(far.Device().Driver())
	release()
	for i, b := range all {
		if i < 3 { // the others are freed as they are
			w.ok(b.HostWrite(t.Context(), func([]byte) error { return nil }))
			arrives(t, w.write(s, b, nil))
		}
		w.free(b)
	}
	next := w.new(3 << 20)
	arrives(t, w.write(s, next, nil))
	w.free(next)
}

func TestANewOwnerIsNoHeirOfADeadDevice(t *testing.T) {
	w := newWorld(t, options{mayFail: true, ResourceOptions: oneSlab().ResourceOptions})
	far := must(runtime.Enrolled())[1]
	all := fill(w)
	fs, s := w.lease(far), w.lease(w.r)
	release := w.stall(fs)
	acc := buffer.BeginCopy(fs)
	acc.Write(all[0])
	w.ok(fs.Call(func() {}))
	w.ok(acc.End())
	kill(far.Device().Driver())
	release()

	// What the dead device was to write is lost with it …
	acc = buffer.Begin(s)
	acc.Read(all[0])
	lost(t, "reading what the dead device was to write", acc.End())
	// … but whoever gets the memory next writes it afresh.
	at := buffer.Address(all[0])
	w.free(all[0])
	all[0] = w.new(900_000)
	if buffer.Address(all[0]) != at {
		t.Fatal("the block was not reused")
	}
	arrives(t, w.write(s, all[0], nil))
	arrives(t, w.read(s, all[0], nil))
	w.free(all...)
	w.ok(w.m.Trim())
	w.free(w.new(3 << 20)) // the slab's memory serves too
}
