package drivertest

import (
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// array is a strided array in device memory together with its model: data is
// the whole allocation, of which the view covers a part.
type array struct {
	t       dtype.DType
	data    []byte
	offset  int64 // of index zero, in elements
	shape   []int64
	strides []int64
	at      driver.Ptr // of the allocation
}

// layout says which strides newArray may choose.
type layout uint8

const (
	contiguous layout = iota
	injective         // permuted axes, gaps and negative strides
	repeating         // zero strides too
)

// newArray lays an array out and fills all of it, gaps too, with elements that
// value answers.
func newArray(rng *rand.Rand, t dtype.DType, shape []int64, l layout, value func() complex128) *array {
	a := &array{t: t, shape: slices.Clone(shape), strides: make([]int64, len(shape))}
	axes := indices(len(shape))
	slices.Reverse(axes)
	if l != contiguous {
		rng.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
	}
	step, pad := int64(1), int64(0)
	if l != contiguous {
		step, pad = 1+rng.Int64N(2), rng.Int64N(4)
	}
	a.offset = pad
	extent := int64(1) // elements from the lowest address to the highest
	for _, axis := range axes {
		n := shape[axis]
		stride := step
		switch {
		case l == repeating && rng.IntN(4) == 0:
			stride = 0
		case l != contiguous && n <= 1 && rng.IntN(2) == 0:
			stride = 1_000_003 // never used
		default:
			step = stride * max(n, 1)
			if l != contiguous {
				step += rng.Int64N(2)
			}
			extent += stride * max(n-1, 0)
			if l != contiguous && rng.IntN(3) == 0 {
				a.offset += stride * max(n-1, 0)
				stride = -stride
			}
		}
		a.strides[axis] = stride
	}
	a.data = make([]byte, (pad+extent+pad)*t.Size())
	for b := range slices.Chunk(a.data, int(t.Size())) {
		encode(t, b, value())
	}
	return a
}

// upload gives the array device memory with its contents.
func (a *array) upload(f *fixture, d driver.Device, s driver.Stream) {
	f.t.Helper()
	a.at = f.alloc(d, int64(len(a.data)))
	write(f, s, a.at, a.data...)
}

func (a *array) view() driver.View {
	return driver.View{Ptr: a.at + driver.Ptr(a.offset*a.t.Size()), DType: a.t, Shape: a.shape, Strides: a.strides}
}

func (a *array) element(index []int64) []byte {
	at := a.offset
	for i, x := range index {
		at += x * a.strides[i]
	}
	return a.data[at*a.t.Size():][:a.t.Size()]
}

func (a *array) get(index []int64) complex128    { return decode(a.t, a.element(index)) }
func (a *array) set(index []int64, v complex128) { encode(a.t, a.element(index), as(a.t, v)) }

// matches compares device memory with the model, gaps included.
func (a *array) matches(f *fixture, s driver.Stream, what string) {
	f.t.Helper()
	got := read[byte](f, s, a.at, len(a.data))
	size := int(a.t.Size())
	for i := 0; i < len(got); i += size {
		if g, w := decode(a.t, got[i:]), decode(a.t, a.data[i:]); g != w {
			f.t.Fatalf("%s: element %d of the memory (index zero is %d, shape %v, strides %v) is %v; expected %v",
				what, i/size, a.offset, a.shape, a.strides, g, w)
		}
	}
}

// each goes through the indices of a shape; the slice is reused.
func each(shape []int64) iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		if slices.Contains(shape, 0) {
			return
		}
		index := make([]int64, len(shape))
		for {
			if !yield(index) {
				return
			}
			axis := len(shape) - 1
			for ; axis >= 0; axis-- {
				if index[axis]++; index[axis] < shape[axis] {
					break
				}
				index[axis] = 0
			}
			if axis < 0 {
				return
			}
		}
	}
}
