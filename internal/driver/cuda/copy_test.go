//go:build cuda

package cuda_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

const blockBytes = 4 << 20 // of staging

func noise(seed uint64, n int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed)})
	b := make([]byte, n)
	_, _ = source.Read(b) // it never fails
	return b
}

func TestSlicesOfEverySizeTravelThereAndBack(t *testing.T) {
	d := must(gpus(t).Open(0))
	s := must(d.NewStream(0))
	defer s.Destroy()
	for _, n := range []int{1, 255, 257, blockBytes - 1, blockBytes, blockBytes + 1, 3*blockBytes + 5, 11*blockBytes + 77} {
		src, back := noise(uint64(n), n), make([]byte, n)
		p := must(d.Alloc(int64(n)))
		ok(t, errors.Join(s.CopyIn(p, src), s.CopyOut(back, p), d.Free(p)))
		if !bytes.Equal(src, back) {
			t.Errorf("%d bytes came back changed", n)
		}
	}
}

func TestLargeCopiesOnSeveralStreamsDoNotMix(t *testing.T) {
	d := must(gpus(t).Open(0))
	var all sync.WaitGroup
	for g := range 3 {
		all.Go(func() {
			s := must(d.NewStream(0))
			n := (5+g)*blockBytes + g
			src, back := noise(uint64(g), n), make([]byte, n)
			p := must(d.Alloc(int64(n)))
			for range 3 {
				clear(back)
				if err := errors.Join(s.CopyIn(p, src), s.CopyOut(back, p)); err != nil || !bytes.Equal(src, back) {
					t.Errorf("stream %d: %v, or its bytes came back changed", g, err)
				}
			}
			if err := errors.Join(d.Free(p), s.Destroy()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestCopiesOfABlockNeverWait gives a stalled stream more than the ring holds.
func TestCopiesOfABlockNeverWait(t *testing.T) {
	d := must(gpus(t).Open(0))
	s := must(d.NewStream(0))
	defer s.Destroy()
	const copies = 12
	p := must(d.Alloc(copies * blockBytes))
	release, err := cudatest.Stall(s)
	ok(t, err)
	defer release()
	for i := range copies {
		src := noise(uint64(i), blockBytes)
		ok(t, s.CopyIn(p+driver.Ptr(i*blockBytes), src))
		clear(src)
	}
	if idle, err := s.Query(); idle || err != nil {
		t.Fatalf("the stream is idle: %v, %v", idle, err)
	}
	release()
	back := make([]byte, copies*blockBytes)
	ok(t, errors.Join(s.CopyOut(back, p), d.Free(p)))
	for i := range copies {
		if !bytes.Equal(back[i*blockBytes:][:blockBytes], noise(uint64(i), blockBytes)) {
			t.Errorf("copy %d is not what it was given", i)
		}
	}
}

// TestALargeCopyGoesOnWhileAnotherIsHeld shows that no copy waits for blocks of a
// stream that is held back.
func TestALargeCopyGoesOnWhileAnotherIsHeld(t *testing.T) {
	d := must(gpus(t).Open(0))
	held, free := must(d.NewStream(0)), must(d.NewStream(0))
	const n = 20 * blockBytes
	p, q := must(d.Alloc(n)), must(d.Alloc(n))
	release, err := cudatest.Stall(held)
	ok(t, err)
	defer release()
	src, back := noise(1, n), make([]byte, n)
	first := make(chan error, 1)
	go func() { first <- held.CopyIn(p, src) }()
	ok(t, errors.Join(free.CopyIn(q, src), free.CopyOut(back, q)))
	if !bytes.Equal(src, back) {
		t.Error("the bytes came back changed")
	}
	release()
	ok(t, <-first)
	clear(back)
	ok(t, held.CopyOut(back, p))
	if !bytes.Equal(src, back) {
		t.Error("the held stream's bytes came back changed")
	}
	ok(t, errors.Join(d.Free(p), d.Free(q), held.Destroy(), free.Destroy()))
}
