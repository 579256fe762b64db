package buffer_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

// hostBuffers are one of each kind of memory that host code may read.
func hostBuffers(w *world) map[string]*buffer.Buffer {
	return map[string]*buffer.Buffer{"device": w.new(64), "page-locked": must(w.m.NewPinned(64))}
}

func TestHostReadWaitsForTheWriterAndHostWriteForReadersToo(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(2)
	for kind, b := range hostBuffers(w) {
		t.Run(kind, func(t *testing.T) {
			defer w.free(b)
			release := w.stall(s[0])
			written := w.write(s[0], b, func(p buffer.Ptr) { *word(p) = 5 })
			w.plan.Delay(fault.EventSynchronize, release) // it goes on when the host waits
			var got int64
			w.ok(b.HostRead(context.Background(), func(x []byte) error {
				if !happened(written) {
					t.Error("the host read before the writer was done")
				}
				got = *word(buffer.Address(b))
				if len(x) != 64 || x[0] != 5 {
					t.Errorf("it sees %d bytes, first %d", len(x), x[0])
				}
				return nil
			}))
			w.plan.Clear()
			if got != 5 {
				t.Errorf("the host read %d; expected 5", got)
			}
			release = w.stall(s[1])
			var saw int64
			read := w.read(s[1], b, func(p buffer.Ptr) { saw = *word(p) })
			w.ok(b.HostRead(t.Context(), func([]byte) error { return nil })) // does not wait for the reader
			if happened(read) {
				t.Error("a stalled reader ran")
			}
			w.plan.Delay(fault.StreamNotify, release) // a context that can end is waited for through a notification
			w.ok(b.HostWrite(t.Context(), func(x []byte) error { x[0] = 6; return nil }))
			w.plan.Clear()
			if !happened(read) || saw != 5 {
				t.Errorf("the host wrote before the reader was done, which saw %d", saw)
			}
		})
	}
}

func TestHostAccessesAreExclusiveWhileTheyLastAndConflictAfterwardsWithNothing(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	for kind, b := range hostBuffers(w) {
		t.Run(kind, func(t *testing.T) {
			defer w.free(b)
			try := func(write bool) error {
				acc := buffer.Begin(s)
				if write {
					acc.Write(b)
				} else {
					acc.Read(b)
				}
				return acc.End()
			}
			w.ok(b.HostWrite(t.Context(), func([]byte) error {
				if !errors.Is(try(false), weir.ErrBusy) || !errors.Is(b.Free(), weir.ErrBusy) {
					t.Error("a device read or a Free was let in beside a host write")
				}
				return nil
			}))
			w.ok(b.HostRead(t.Context(), func([]byte) error {
				if err := try(false); err != nil {
					t.Errorf("a device read beside a host read: %v", err)
				}
				if !errors.Is(try(true), weir.ErrBusy) {
					t.Error("a device write was let in beside a host read")
				}
				return nil
			}))
			w.ok(try(true))
		})
	}
}

func TestTheFunctionsErrorIsAnsweredAndEndsTheAccess(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(8)
	defer w.free(b)
	cause := errors.New("cause")
	fails := func([]byte) error { return cause }
	if err := b.HostRead(t.Context(), fails); err != cause {
		t.Errorf("HostRead answers %v", err)
	}
	if err := b.HostWrite(t.Context(), fails); err != cause {
		t.Errorf("HostWrite answers %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = b.HostWrite(t.Context(), func([]byte) error { panic("in host code") })
	}()
	w.ok(b.HostWrite(t.Context(), func([]byte) error { return nil })) // the panic left nothing open
}

func TestAHostAccessEndsWithItsContextAndTheWorkGoesOn(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.lease(w.r), w.new(8)
	defer w.free(b)
	release := w.stall(s)
	done := w.write(s, b, nil)
	cause := errors.New("the caller's cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.plan.Delay(fault.StreamNotify, func() { cancel(cause) }) // while it waits
	for _, do := range []func(context.Context, func([]byte) error) error{b.HostRead, b.HostWrite} {
		err := do(ctx, func([]byte) error { t.Error("host code ran beside the writer"); return nil })
		if !errors.Is(err, cause) {
			t.Errorf("got %v; expected the context's cause", err)
		}
	}
	release()
	arrives(t, done)
	w.ok(b.HostRead(t.Context(), func([]byte) error { return nil }))
}

// remote is a family whose device memory host code cannot read.
type remote struct{ driver.Family }

func (f remote) Open(i int) (driver.Device, error) {
	d, err := f.Family.Open(i)
	return remoteDevice{d}, err
}

type remoteDevice struct{ driver.Device }

func (d remoteDevice) Capabilities() *driver.Capabilities {
	c := *d.Device.Capabilities()
	c.UnifiedHostAddresses = false
	return &c
}

func TestHostCodeIsRefusedADevicesOwnMemoryAndGivenPageLockedMemory(t *testing.T) {
	rt := must(runtime.StartFamilies([]driver.Family{remote{host.New(host.Options{})}}, runtime.Options{}))
	defer rt.Close()
	m := must(buffer.Of(must(runtime.Enrolled())[0]))
	own, pinned := must(m.New(8)), must(m.NewPinned(8))
	never := func([]byte) error { t.Error("host code ran"); return nil }
	refuses(t, own.HostRead(t.Context(), never), weir.ErrNotSupported, "buffer.HostRead on host:0: host code cannot read this device's memory; copy it")
	refuses(t, own.HostWrite(t.Context(), never), weir.ErrNotSupported, "buffer.HostWrite on host:0: host code cannot read this device's memory; copy it")
	if err := pinned.HostWrite(t.Context(), func(x []byte) error { x[7] = 1; return nil }); err != nil {
		t.Error(err)
	}
	if err := errors.Join(own.Free(), pinned.Free()); err != nil {
		t.Error(err)
	}
}

func TestCopiesGoThroughEveryKindOfMemory(t *testing.T) {
	w := newWorld(t, options{})
	const bytes = 100_000
	in, near, out := must(w.m.NewPinned(bytes)), w.new(bytes), must(w.m.NewPinned(bytes))
	far := must(w.other.New(bytes))
	data := make([]byte, bytes)
	for i := range data {
		data[i] = byte(i * 7)
	}
	w.ok(in.HostWrite(t.Context(), func(x []byte) error { copy(x, data); return nil }))
	s := w.streams(3)
	release := w.stall(s[0]) // all is submitted before anything runs
	chain := []*buffer.Buffer{in, near, far, out}
	for i := range 3 {
		acc := buffer.BeginCopy(s[i])
		from, to := acc.Read(chain[i]), acc.Write(chain[i+1])
		w.ok(acc.Err())
		w.ok(must(s[i].Submit()).Copy(to, from, bytes))
		w.ok(acc.End())
	}
	release()
	w.ok(out.HostRead(t.Context(), func(x []byte) error {
		if !slices.Equal(x, data) {
			t.Error("the bytes differ after host to device, to another device, and back to the host")
		}
		return nil
	}))
	// A plain slice goes in, and may be changed when the call returns; one comes out filled.
	slice := slices.Clone(data)
	acc := buffer.Begin(s[0])
	p := acc.Write(near)
	release = w.stall(s[0])
	w.ok(must(s[0].Submit()).CopyIn(p, slice))
	clear(slice)
	w.ok(acc.End())
	release()
	acc = buffer.Begin(s[1])
	p = acc.Read(near)
	w.ok(must(s[1].Submit()).CopyOut(slice, p))
	w.ok(acc.End())
	if !slices.Equal(slice, data) {
		t.Error("a plain slice came back otherwise than it went in")
	}
	w.free(in, near, far, out)
}

func TestFreeingPageLockedMemoryWaitsForItsUsers(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	b := must(w.m.NewPinned(64))
	release := w.stall(s)
	done := w.write(s, b, func(p buffer.Ptr) { *word(p) = 1 })
	w.plan.Delay(fault.EventSynchronize, release)
	w.plan.Delay(fault.DeviceFreeHost, func() {
		if !happened(done) {
			t.Error("page-locked memory in use was freed")
		}
	})
	w.free(b)
	if n := w.plan.Counts()[fault.DeviceFreeHost]; n != 1 {
		t.Errorf("%d frees; expected 1", n)
	}
}

func TestPageLockedMemoryWhoseUsersCannotBeWaitedForIsKept(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	b := must(w.m.NewPinned(64))
	release := w.stall(s)
	w.write(s, b, nil)
	w.plan.FailNth(fault.EventQuery, 1, nil)
	w.plan.FailNth(fault.EventQuery, 2, nil)
	if err := b.Free(); !errors.Is(err, fault.ErrInjected) {
		t.Errorf("Free answers %v; expected the failure", err)
	}
	if n := w.plan.Counts()[fault.DeviceFreeHost]; n != 0 {
		t.Error("page-locked memory in use was freed")
	}
	release()
	if live := w.m.Live(); len(live) != 0 {
		t.Errorf("it is still a live buffer: %v", live)
	}
}
