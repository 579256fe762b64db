package host

import (
	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// copyKernel picks the loops for a conversion. Copies of one type that do not
// conjugate move bits, so every size is one loop whatever the type.
func copyKernel(k *driver.Kernel) func() {
	l := newLoop(k.Out.Shape, k.Out, k.A)
	to, from := k.Out.DType, k.A.DType
	if to == from && !(k.ConjA && to.IsComplex()) {
		switch to.Size() {
		case 2:
			return copyBits[uint16](l)
		case 4:
			return copyBits[uint32](l)
		case 8:
			return copyBits[uint64](l)
		}
		return copyBits[[2]uint64](l)
	}
	switch from {
	case dtype.Float32:
		return fromReal[float32](l, to)
	case dtype.Float64:
		return fromReal[float64](l, to)
	case dtype.Int32:
		return fromReal[int32](l, to)
	case dtype.Int64:
		if to == dtype.BFloat16 {
			return convert(l, func(s int64) dtype.BF16 { return dtype.ToBF16(oddFloat32(oddFloat64(s))) })
		}
		return fromReal[int64](l, to)
	case dtype.Float16:
		return fromNarrow(l, to, float16.Float16.Float32)
	case dtype.BFloat16:
		return fromNarrow(l, to, dtype.BF16.Float32)
	case dtype.Complex64:
		return fromComplex[complex64](l, to, k.ConjA)
	}
	return fromComplex[complex128](l, to, k.ConjA)
}

// tile is how many elements of each of two axes are copied together when the
// source's fast axis is not the result's, so that both sides use whole cache
// lines.
const tile = 32

func copyBits[S any](l *loop) func() {
	if last := len(l.axes) - 1; last >= 0 && fits(l.axes[last], axis{n: 1, step: [3]int64{size[S](), size[S]()}}) {
		return func() {
			l.run(func(r *row) {
				copy(hostmem.Slice[S](r.ptr[0], r.n), hostmem.Slice[S](r.ptr[1], r.n))
			})
		}
	}
	if fast := l.fastSource(); fast >= 0 {
		return func() { transposeBits[S](l, fast) }
	}
	if last := len(l.axes) - 1; last > 0 && l.axes[last].n < tile {
		return func() { scatterBits[S](l) }
	}
	return convert(l, func(s S) S { return s })
}

// tableSize is how many elements scatterBits takes together, about.
const tableSize = 256

// scatterBits copies where the innermost axis is short, as in tensor networks,
// whose permuted axes often have extent 2 and do not merge. The inner axes that
// make up a table of elements are walked once to list their offsets; then each
// place of the outer axes is one pass over the list.
func scatterBits[S any](l *loop) {
	split, count := len(l.axes), int64(1)
	for split > 0 && count < tableSize && l.axes[split-1].n < tableSize {
		split--
		count *= l.axes[split].n
	}
	to, from := make([]uintptr, 0, count), make([]uintptr, 0, count)
	inner := &loop{axes: l.axes[split:]}
	inner.run(func(r *row) {
		for i := range r.n {
			to = append(to, r.ptr[0]+uintptr(i*r.step[0]))
			from = append(from, r.ptr[1]+uintptr(i*r.step[1]))
		}
	})
	outer := &loop{base: l.base, axes: l.axes[:split]}
	outer.run(func(r *row) {
		p, q := r.ptr[0], r.ptr[1]
		for range r.n {
			for k, offset := range to {
				*(*S)(hostmem.Pointer(p + offset)) = *(*S)(hostmem.Pointer(q + from[k]))
			}
			p += uintptr(r.step[0])
			q += uintptr(r.step[1])
		}
	})
}

// fastSource is the axis along which the source's elements lie closest, when
// it is not the innermost one and both are long enough to tile; else -1.
func (l *loop) fastSource() int {
	last := len(l.axes) - 1
	if last < 1 || l.axes[last].n < tile/4 {
		return -1
	}
	fast := last
	for i, x := range l.axes {
		if x.n >= tile/4 && x.step[1] != 0 && magnitude(x.step[1]) < magnitude(l.axes[fast].step[1]) {
			fast = i
		}
	}
	if fast == last {
		return -1
	}
	return fast
}

// transposeBits copies in tiles over the innermost axis and axis fast.
func transposeBits[S any](l *loop, fast int) {
	last := len(l.axes) - 1
	x, y := l.axes[fast], l.axes[last]
	rest := &loop{base: l.base}
	for i, a := range l.axes {
		if i != fast && i != last {
			rest.axes = append(rest.axes, a)
		}
	}
	rest.run(func(r *row) {
		at := r.ptr
		for range r.n {
			for i := int64(0); i < x.n; i += tile {
				for j := int64(0); j < y.n; j += tile {
					width := min(tile, y.n-j)
					for p := range min(tile, x.n-i) {
						to := elements[S](at[0] + uintptr((i+p)*x.step[0]+j*y.step[0]))
						from := elements[S](at[1] + uintptr((i+p)*x.step[1]+j*y.step[1]))
						for range width {
							*to.at() = *from.at()
							to.move(y.step[0])
							from.move(y.step[1])
						}
					}
				}
			}
			for i := range at {
				at[i] += uintptr(r.step[i])
			}
		}
	})
}

func convert[S, D any](l *loop, f func(S) D) func() {
	return func() {
		l.run(func(r *row) {
			to, from := elements[D](r.ptr[0]), elements[S](r.ptr[1])
			for range r.n {
				*to.at() = f(*from.at())
				to.move(r.step[0])
				from.move(r.step[1])
			}
		})
	}
}

type realNumber interface {
	float32 | float64 | int32 | int64
}

func fromReal[S realNumber](l *loop, to dtype.DType) func() {
	switch to {
	case dtype.Float32:
		return convert(l, func(s S) float32 { return float32(s) })
	case dtype.Float64:
		return convert(l, func(s S) float64 { return float64(s) })
	case dtype.Int32:
		return convert(l, func(s S) int32 { return int32(s) })
	case dtype.Int64:
		return convert(l, func(s S) int64 { return int64(s) })
	case dtype.Complex64:
		return convert(l, func(s S) complex64 { return complex(float32(s), 0) })
	case dtype.Complex128:
		return convert(l, func(s S) complex128 { return complex(float64(s), 0) })
	case dtype.Float16:
		return convert(l, func(s S) float16.Float16 { return float16.Fromfloat32(oddFloat32(float64(s))) })
	}
	return convert(l, func(s S) dtype.BF16 { return dtype.ToBF16(oddFloat32(float64(s))) })
}

func fromNarrow[S any](l *loop, to dtype.DType, widen func(S) float32) func() {
	switch to {
	case dtype.Float32:
		return convert(l, widen)
	case dtype.Float64:
		return convert(l, func(s S) float64 { return float64(widen(s)) })
	case dtype.Int32:
		return convert(l, func(s S) int32 { return int32(widen(s)) })
	case dtype.Int64:
		return convert(l, func(s S) int64 { return int64(widen(s)) })
	case dtype.Complex64:
		return convert(l, func(s S) complex64 { return complex(widen(s), 0) })
	case dtype.Complex128:
		return convert(l, func(s S) complex128 { return complex(float64(widen(s)), 0) })
	case dtype.Float16:
		return convert(l, func(s S) float16.Float16 { return float16.Fromfloat32(widen(s)) })
	}
	return convert(l, func(s S) dtype.BF16 { return dtype.ToBF16(widen(s)) })
}

func fromComplex[S complex64 | complex128](l *loop, to dtype.DType, conj bool) func() {
	re := func(s S) float64 { return real(complex128(s)) }
	wide := func(s S) complex128 {
		z := complex128(s)
		if conj {
			z = complex(real(z), -imag(z))
		}
		return z
	}
	switch to {
	case dtype.Float32:
		return convert(l, func(s S) float32 { return float32(re(s)) })
	case dtype.Float64:
		return convert(l, re)
	case dtype.Int32:
		return convert(l, func(s S) int32 { return int32(re(s)) })
	case dtype.Int64:
		return convert(l, func(s S) int64 { return int64(re(s)) })
	case dtype.Complex64:
		return convert(l, func(s S) complex64 { return complex64(wide(s)) })
	case dtype.Complex128:
		return convert(l, wide)
	case dtype.Float16:
		return convert(l, func(s S) float16.Float16 { return float16.Fromfloat32(oddFloat32(re(s))) })
	}
	return convert(l, func(s S) dtype.BF16 { return dtype.ToBF16(oddFloat32(re(s))) })
}
