package hostblas

import (
	"unsafe"

	"github.com/weirgo/weir/internal/driver"
)

// The package's own loops, for the integer types and, without a library, for
// the complex ones. Blocks of A and B are packed into panels of two rows of
// op(A) and two columns of op(B), inner index first, so that the kernel reads
// both straight through and keeps a 2×2 tile of C in registers. Panels are
// padded with zeros; what padding computes is dropped.

// arithmetic is what the loops need to know about an element type.
type arithmetic[T number] struct {
	// kernel sums a[2l+i]·b[2l+j] over l into element i+2j.
	kernel func(a, b []T) [4]T
	// conjugate changes packed elements in place; nil for real types.
	conjugate func([]T)
	// scalar is alpha or beta as an element.
	scalar func(complex128) T
}

// The blocks: an A block of 64×256 elements stays in a core's second-level
// cache while the columns of a B block pass.
var (
	panelBlock      = extent{64, 192, 256}
	panelBlockSmall = extent{16, 16, 16}
)

func panelNeed(e extent) int64 { return (even(e.m) + even(e.n)) * e.k }

func even(n int64) int64 { return n + n&1 }

func panels[T number](w *worker, p product, t arithmetic[T]) {
	block, buf := room[T](&w.packing, p.m, p.n, p.k, panelBlock, panelBlockSmall, panelNeed)
	alpha, beta := t.scalar(p.alpha), t.scalar(p.beta)
	for l := int64(0); l < p.k; l += block.k {
		for j := int64(0); j < p.n; j += block.n {
			for i := int64(0); i < p.m; i += block.m {
				q := p.block(i, j, l, block.within(p.m-i, p.n-j, p.k-l))
				b := buf[:even(q.n)*q.k]
				if i == 0 {
					packPanels(b, q.b, q.ldb, q.n, q.k, q.opB == driver.NoTrans)
					if q.opB == driver.ConjTrans && t.conjugate != nil {
						t.conjugate(b)
					}
				}
				a := buf[len(b):][:even(q.m)*q.k]
				packPanels(a, q.a, q.lda, q.m, q.k, q.opA != driver.NoTrans)
				if q.opA == driver.ConjTrans && t.conjugate != nil {
					t.conjugate(a)
				}
				multiplyPanels(q, a, b, t.kernel, alpha, beta)
			}
		}
		beta = 1
	}
}

// packPanels packs count rows of op(A), or columns of op(B), of length k. Each
// is contiguous in memory when straight, else it is a row of the stored matrix.
func packPanels[T number](dst []T, src uintptr, ld, count, k int64, straight bool) {
	for i := int64(0); i < count; i += 2 {
		panel := dst[i*k:][:2*k]
		both := i+1 < count
		switch {
		case straight && both:
			x, y := column[T](src, i, ld, k), column[T](src, i+1, ld, k)
			y = y[:len(x)]
			for l, v := range x {
				panel[2*l], panel[2*l+1] = v, y[l]
			}
		case straight:
			for l, v := range column[T](src, i, ld, k) {
				panel[2*l], panel[2*l+1] = v, 0
			}
		case both:
			for l := range k {
				x := column[T](src, l, ld, count)
				panel[2*l], panel[2*l+1] = x[i], x[i+1]
			}
		default:
			for l := range k {
				panel[2*l], panel[2*l+1] = column[T](src, l, ld, count)[i], 0
			}
		}
	}
}

// multiplyPanels is C = alpha·A·B + beta·C for one pair of packed blocks.
func multiplyPanels[T number](q product, a, b []T, kernel func(a, b []T) [4]T, alpha, beta T) {
	for j := int64(0); j < q.n; j += 2 {
		bj := b[j*q.k:][:2*q.k]
		for i := int64(0); i < q.m; i += 2 {
			sum := kernel(a[i*q.k:][:2*q.k], bj)
			for jj := range min(2, q.n-j) {
				c := column[T](q.c, j+jj, q.ldc, q.m)
				for ii := range min(2, q.m-i) {
					v := alpha * sum[ii+2*jj]
					switch beta {
					case 0:
					case 1:
						v += c[i+ii]
					default:
						v += beta * c[i+ii]
					}
					c[i+ii] = v
				}
			}
		}
	}
}

func integers[T int32 | int64]() arithmetic[T] {
	return arithmetic[T]{
		kernel: integerKernel[T],
		scalar: func(x complex128) T { return T(int64(real(x))) },
	}
}

// integerKernel takes two inner indices a turn.
func integerKernel[T int32 | int64](a, b []T) [4]T {
	var c00, c10, c01, c11 T
	l := 0
	for ; l+4 <= len(a) && l+4 <= len(b); l += 4 {
		x, y := (*[4]T)(a[l:]), (*[4]T)(b[l:])
		c00 += x[0] * y[0]
		c10 += x[1] * y[0]
		c01 += x[0] * y[1]
		c11 += x[1] * y[1]
		c00 += x[2] * y[2]
		c10 += x[3] * y[2]
		c01 += x[2] * y[3]
		c11 += x[3] * y[3]
	}
	if l < len(a) {
		x, y := (*[2]T)(a[l:]), (*[2]T)(b[l:])
		c00 += x[0] * y[0]
		c10 += x[1] * y[0]
		c01 += x[0] * y[1]
		c11 += x[1] * y[1]
	}
	return [4]T{c00, c10, c01, c11}
}

func complexes[C complex64 | complex128, R float32 | float64]() arithmetic[C] {
	return arithmetic[C]{
		kernel: complexKernel[C, R],
		conjugate: func(x []C) {
			parts := realParts[C, R](x)
			for i := 1; i < len(parts); i += 2 {
				parts[i] = -parts[i]
			}
		},
		scalar: func(x complex128) C { return C(x) },
	}
}

// realParts is x as real and imaginary parts in turn.
func realParts[C complex64 | complex128, R float32 | float64](x []C) []R {
	return unsafe.Slice((*R)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

// complexKernel works on the parts, since Go multiplies complex64 in double
// precision.
func complexKernel[C complex64 | complex128, R float32 | float64](x, y []C) [4]C {
	var r00, i00, r10, i10, r01, i01, r11, i11 R
	a, b := realParts[C, R](x), realParts[C, R](y)
	for len(a) >= 4 && len(b) >= 4 {
		br0, bi0, br1, bi1 := b[0], b[1], b[2], b[3]
		ar, ai := a[0], a[1]
		r00 += ar*br0 - ai*bi0
		i00 += ar*bi0 + ai*br0
		r01 += ar*br1 - ai*bi1
		i01 += ar*bi1 + ai*br1
		ar, ai = a[2], a[3]
		r10 += ar*br0 - ai*bi0
		i10 += ar*bi0 + ai*br0
		r11 += ar*br1 - ai*bi1
		i11 += ar*bi1 + ai*br1
		a, b = a[4:], b[4:]
	}
	return [4]C{pair[C](r00, i00), pair[C](r10, i10), pair[C](r01, i01), pair[C](r11, i11)}
}

func pair[C complex64 | complex128, R float32 | float64](re, im R) C {
	return C(complex(float64(re), float64(im)))
}
