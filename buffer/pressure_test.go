package buffer_test

import (
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/weirgo/weir/buffer"
)

func TestGarbageIsCollectedBeforeItFillsTheDevice(t *testing.T) {
	w := newWorld(t, options{memoryBytes: 8 << 30})
	w.m.ResetPeak()
	const each, many = 8 << 20, 400 // 3.1 GiB in all
	for range many {
		if _, err := w.m.New(each); err != nil { // nobody keeps it
			t.Fatal(err)
		}
	}
	if high := w.m.Stats().HighUsed; high > 1<<30 {
		t.Errorf("%d bytes were in use at once; expected collections to keep it below 1 GiB", high)
	}
}

func TestGarbageOfManyGoroutinesIsCollectedToo(t *testing.T) {
	w := newWorld(t, options{memoryBytes: 16 << 30})
	w.m.ResetPeak()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 100 {
				if _, err := w.m.New(8 << 20); err != nil { // 12.5 GiB in all, which nobody keeps
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if high := w.m.Stats().HighUsed; high > 3<<30 {
		t.Errorf("%d bytes were in use at once; expected collections to keep it below 3 GiB", high)
	}
}

func TestAFinalizerThatWaitsForTheAllocatorDoesNotHangIt(t *testing.T) {
	w := newWorld(t, options{memoryBytes: 8 << 30})
	var mu sync.Mutex
	mu.Lock()
	ran := make(chan struct{})
	goruntime.SetFinalizer(&[32]byte{}, func(*[32]byte) { mu.Lock(); defer mu.Unlock(); close(ran) })
	for range 4 {
		w.free(w.new(300 << 20)) // beyond the least pressure
	}
	mu.Unlock()
	goruntime.GC()
	<-ran
}

func TestTheThresholdDecaysWhenUseDoes(t *testing.T) {
	w := newWorld(t, options{memoryBytes: 8 << 30})
	var live []*buffer.Buffer
	for range 20 {
		live = append(live, w.new(100<<20))
	}
	for _, b := range live {
		w.free(b)
	}
	w.m.ResetPeak()
	for range 150 {
		if _, err := w.m.New(8 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if high := w.m.Stats().HighUsed; high > 800<<20 {
		t.Errorf("%d bytes of garbage; expected the threshold to have come down", high)
	}
}

func TestLiveBuffersAreNotCollectedForAndAgain(t *testing.T) {
	w := newWorld(t, options{memoryBytes: 8 << 30})
	kept := must(w.m.New(300 << 20)) // beyond the least pressure
	before := w.m.Collections()
	for range 1000 {
		if err := must(w.m.New(1 << 20)).Free(); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.m.Collections() - before; n > 1 {
		t.Errorf("%d collections for garbage that was freed at once", n)
	}
	if err := kept.Free(); err != nil {
		t.Fatal(err)
	}
}
