package hostmem_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/hostmem"
)

func alloc(t testing.TB, n int64) uintptr {
	t.Helper()
	p, err := hostmem.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hostmem.Free(p, n); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAllocAnswersZeroedPages(t *testing.T) {
	for _, n := range []int64{1, 4095, 4096, 4097, 3 << 20} {
		p := alloc(t, n)
		if p == 0 || p%uintptr(os.Getpagesize()) != 0 {
			t.Errorf("%d bytes at %#x; expected the start of a page", n, p)
		}
		if !bytes.Equal(hostmem.Bytes(p, n), make([]byte, n)) {
			t.Errorf("%d bytes are not all zero", n)
		}
	}
}

func TestAllocRefusesSizesThatAreNotPositive(t *testing.T) {
	for _, n := range []int64{0, -1, math.MinInt64} {
		p, err := hostmem.Alloc(n)
		want := fmt.Sprintf("hostmem.Alloc: %d bytes; expected a positive size", n)
		if p != 0 || !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Errorf("Alloc(%d) answers %#x, %v; expected %s", n, p, err, want)
		}
	}
}

func TestAllocSaysHowMuchTheSystemRefused(t *testing.T) {
	const n = 1 << 60
	_, err := hostmem.Alloc(n)
	var e *weir.Error
	if !errors.Is(err, weir.ErrOutOfMemory) || !errors.As(err, &e) || e.Kind != weir.KindOutOfMemory ||
		!strings.HasPrefix(e.Message, fmt.Sprintf("%d bytes refused by the system", int64(n))) {
		t.Errorf("got %v; expected an ErrOutOfMemory with the size", err)
	}
}

// The model is a Go slice for each block: what is written to one block is seen
// in it alone, whatever is allocated, freed and collected meanwhile.
func TestBlocksKeepTheirContentsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type blk struct {
			p     uintptr
			model []byte
		}
		var live []blk
		free := func(i int) {
			if err := hostmem.Free(live[i].p, int64(len(live[i].model))); err != nil {
				t.Fatal(err)
			}
			live = append(live[:i], live[i+1:]...)
		}
		defer func() {
			for len(live) > 0 {
				free(0)
			}
		}()
		pick := func() int { return rapid.IntRange(0, len(live)-1).Draw(t, "block") }
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.Int64Range(1, 3*4096).Draw(t, "bytes")
				p, err := hostmem.Alloc(n)
				if err != nil {
					t.Fatal(err)
				}
				live = append(live, blk{p, make([]byte, n)})
			},
			"free": func(t *rapid.T) {
				if len(live) > 0 {
					free(pick())
				}
			},
			"write": func(t *rapid.T) {
				if len(live) > 0 {
					b := live[pick()]
					at, v := rapid.IntRange(0, len(b.model)-1).Draw(t, "at"), rapid.Byte().Draw(t, "value")
					b.model[at] = v
					hostmem.Bytes(b.p, int64(len(b.model)))[at] = v
				}
			},
			"": func(t *rapid.T) {
				for _, b := range live {
					if !bytes.Equal(hostmem.Bytes(b.p, int64(len(b.model))), b.model) {
						t.Fatalf("the block at %#x differs from its model", b.p)
					}
				}
			},
		})
	})
}

func TestMemoryOutlivesACollection(t *testing.T) {
	p := alloc(t, 64)
	hostmem.Bytes(p, 64)[63] = 7
	goruntime.GC()
	goruntime.GC()
	if hostmem.Bytes(p, 64)[63] != 7 {
		t.Error("the collector touched memory outside the heap")
	}
}

func TestSliceAndPointerSeeTheSameMemory(t *testing.T) {
	p := alloc(t, 32)
	x := hostmem.Slice[float64](p, 4)
	x[3] = 1.5
	if len(x) != 4 || unsafe.Pointer(&x[0]) != hostmem.Pointer(p) {
		t.Errorf("Slice has %d elements at %p; expected 4 at %#x", len(x), &x[0], p)
	}
	if got := hostmem.Slice[uint64](p+24, 1)[0]; got != math.Float64bits(1.5) {
		t.Errorf("the last element reads %#x", got)
	}
}

func TestNoElementsAreNoSlice(t *testing.T) {
	if hostmem.Bytes(0, 0) != nil || hostmem.Slice[int32](0, 0) != nil {
		t.Error("expected nil for 0 elements, whatever the address")
	}
}
