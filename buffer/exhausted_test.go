package buffer_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

func limited(bytes int64) options {
	return options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: bytes}}
}

func TestExhaustedMemorySaysWhatWasAskedHeldAndAllowed(t *testing.T) {
	for _, c := range []struct {
		name    string
		options options
		want    string
	}{
		{"a limit", limited(8 << 20), "buffer.New on host:0: asked for 4194304 bytes; 6291456 held, of which 6291456 in use; limit 8388608: " +
			"Pool.Alloc on host:0: asked for 4194304 bytes with 6291456 of 8388608 held (HOST_OUT_OF_MEMORY, code 3)"},
		{"the device", options{memoryBytes: 8 << 20}, "buffer.New on host:0: asked for 4194304 bytes; 6291456 held, of which 6291456 in use; limit 8388608: " +
			"Pool.Alloc on host:0: asked for 4194304 bytes with 6291456 of 8388608 held (HOST_OUT_OF_MEMORY, code 3)"},
		{"a limit without pools", options{ResourceOptions: limited(8 << 20).ResourceOptions, plain: true},
			"buffer.New on host:0: asked for 4194304 bytes; 6291456 held, of which 6291456 in use; limit 8388608: " +
				"buffer.New on host:0: 4194304 bytes more than the 6291456 held exceed the limit of 8388608"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.options)
			a, b := w.new(2<<20), w.new(4<<20)
			x, err := w.m.New(4 << 20)
			refuses(t, err, weir.ErrOutOfMemory, "%s", c.want)
			var e *weir.Error
			if x != nil || !errors.As(err, &e) || e.Kind != weir.KindOutOfMemory {
				t.Errorf("it answers %v and kind %v", x, e.Kind)
			}
			w.free(b)
			w.free(w.new(4<<20), a) // there is room again
		})
	}
}

func TestASmallBufferFitsUnderALimitThatASlabDoesNot(t *testing.T) {
	w := newWorld(t, limited(1<<20))
	all := []*buffer.Buffer{w.new(100), w.new(1000), w.new(100)}
	if s := w.m.Stats(); s.Held > 1<<20 || s.Held < s.Used+s.Cached {
		t.Errorf("got %+v; expected no more than the limit, and no less than what is used and cached", s)
	}
	w.free(all...)
}

func TestExhaustedMemoryTrimsWhatIsCached(t *testing.T) {
	w := newWorld(t, limited(8<<20))
	w.free(w.new(100), w.new(5000), w.new(900_000)) // three slabs, more than half
	if s := w.m.Stats(); s.Cached < 4<<20 {
		t.Fatalf("%d bytes are cached", s.Cached)
	}
	w.free(w.new(7 << 20))
}

func TestExhaustedMemoryCollectsGarbage(t *testing.T) {
	w := newWorld(t, limited(8<<20))
	s := w.lease(w.r)
	for range 100 {
		b, err := w.m.New(2 << 20)
		if err != nil {
			t.Fatal(err)
		}
		w.write(s, b, nil)
	}
	if held := w.m.Stats().Held; held > 8<<20 {
		t.Errorf("%d bytes are held", held)
	}
}

func TestExhaustedMemoryWaitsForFreesInFlight(t *testing.T) {
	w := newWorld(t, limited(8<<20))
	s := w.lease(w.r)
	old := w.new(6 << 20)
	gate, worked := make(chan struct{}), false
	acc := buffer.Begin(s)
	acc.Write(old)
	w.ok(s.Call(func() { <-gate; worked = true }))
	w.ok(acc.End())
	w.free(old)
	w.plan.Delay(fault.StreamSynchronize, sync.OnceFunc(func() { close(gate) })) // it goes on when New waits
	var b *buffer.Buffer
	var err error
	soon(t, func() { b, err = w.m.New(3 << 20) }) // too different in size to take the old block
	w.ok(err)
	if !worked {
		t.Error("memory in use was given away")
	}
	w.free(b)
}

func TestExhaustedMemoryDoesNotWaitForWhatOnlyTheCallerCouldFree(t *testing.T) {
	w := newWorld(t, limited(8<<20))
	s := w.lease(w.r)
	b := w.new(6 << 20)
	w.stall(s)
	w.write(s, b, nil)
	var err error
	soon(t, func() { _, err = w.m.New(3 << 20) })
	if !errors.Is(err, weir.ErrOutOfMemory) {
		t.Errorf("got %v; expected ErrOutOfMemory", err)
	}
	w.free(b)
}

func TestExhaustedMemoryReusesASmallBlockInFlightRatherThanFail(t *testing.T) {
	w := newWorld(t, oneSlab())
	s := w.lease(w.r)
	all := fill(w)
	w.stall(s)
	w.write(s, all[2], nil)
	at := buffer.Address(all[2])
	w.free(all[2])
	var err error
	soon(t, func() { all[2], err = w.m.New(800_000) })
	w.ok(err)
	if buffer.Address(all[2]) != at {
		t.Error("it is another block; expected the one in flight")
	}
	w.free(all...)
}

func TestAnAllocationWhoseRecordFailsIsGivenBack(t *testing.T) {
	w := newWorld(t, options{})
	w.plan.FailNth(fault.StreamRecord, 1, nil)
	if _, err := w.m.New(3 << 20); !errors.Is(err, fault.ErrInjected) {
		t.Fatalf("got %v; expected the failure", err)
	}
	w.wait(w.r.Reclaim())
	w.ok(w.m.Trim())
	if s := w.m.Stats(); s.Held != 0 || s.Buffers != 0 {
		t.Errorf("it left %+v", s)
	}
}
