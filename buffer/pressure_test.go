package buffer_test

import "testing"

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
