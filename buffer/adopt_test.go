package buffer_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/runtime"
)

// adopted is foreign memory in a buffer, and a channel that learns of its release.
func (w *world) adopted(bytes int64) (*buffer.Buffer, <-chan struct{}) {
	at := must(hostmem.Alloc(bytes))
	released := make(chan struct{}, 2)
	b := &buffer.Buffer{}
	w.ok(w.m.Adopt(b, buffer.Ptr(at), bytes, func() error {
		released <- struct{}{}
		return hostmem.Free(at, bytes)
	}))
	return b, released
}

func TestAdoptedMemoryIsReleasedOnceAfterItsLastUse(t *testing.T) {
	w := newWorld(t, options{})
	b, released := w.adopted(4096)
	if n := w.m.Stats(); n.Buffers != 1 || n.Used != 0 {
		t.Errorf("statistics are %+v; expected one buffer and no bytes", n)
	}
	s := w.streams(1)[0]
	release := w.block(s)
	w.queue(s, b, true)
	freed := make(chan error)
	go func() { freed <- b.Free() }()
	for range 100 {
		select {
		case <-released:
			t.Fatal("released while work on it is under way")
		default:
		}
	}
	release()
	w.ok(<-freed)
	w.ok(b.Free())
	if n := len(released); n != 1 {
		t.Errorf("released %d times; expected once", n)
	}
}

func TestAPartitionOfAdoptedMemoryIsReleasedWithItsLastPart(t *testing.T) {
	w := newWorld(t, options{})
	b, released := w.adopted(4096)
	parts := must(b.Partition(buffer.Range{Bytes: 1024}, buffer.Range{Offset: 1024, Bytes: 3072}))
	w.free(parts[0])
	if len(released) != 0 {
		t.Error("released with a part that lives")
	}
	w.free(parts[1])
	if len(released) != 1 {
		t.Errorf("released %d times; expected once", len(released))
	}
}

func TestUnreachableAdoptedMemoryIsReleased(t *testing.T) {
	w := newWorld(t, options{})
	var released <-chan struct{}
	func() { _, released = w.adopted(4096) }()
	for range 3 {
		runtime.Collect()
	}
	<-released
}

func TestWhatCannotBeAdoptedIsReleasedWithItsError(t *testing.T) {
	w := newWorld(t, options{mayFail: true})
	failed := errors.New("no way to free it")
	var word int64
	at := buffer.Ptr(uintptr(unsafe.Pointer(&word)))
	for _, c := range []struct {
		at    buffer.Ptr
		bytes int64
	}{{0, 8}, {at, 0}, {at, -1}} {
		err := w.m.Adopt(&buffer.Buffer{}, c.at, c.bytes, func() error { return failed })
		if !errors.Is(err, weir.ErrArgument) || !errors.Is(err, failed) {
			t.Errorf("%d bytes at %#x: %v; expected an argument error and the release's", c.bytes, c.at, err)
		}
	}
	w.ok(w.m.Drain())
	err := w.m.Adopt(&buffer.Buffer{}, at, 8, func() error { return failed })
	if !errors.Is(err, weir.ErrClosed) || !errors.Is(err, failed) {
		t.Errorf("after Close: %v; expected ErrClosed and the release's", err)
	}
}

func TestAFailedReleaseIsAnsweredByFree(t *testing.T) {
	w := newWorld(t, options{})
	failed := errors.New("no way to free it")
	var word int64
	b := &buffer.Buffer{}
	w.ok(w.m.Adopt(b, buffer.Ptr(uintptr(unsafe.Pointer(&word))), 8, func() error { return failed }))
	if err := b.Free(); !errors.Is(err, failed) {
		t.Errorf("got %v; expected the release's error", err)
	}
}
