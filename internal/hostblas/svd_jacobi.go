package hostblas

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// jacobi decomposes complex matrices in complex128: rotations of pairs of columns
// make all of them orthogonal (Hestenes, "Inversion of matrices by
// biorthogonalization and related results", 1958; Golub and Van Loan, Matrix
// Computations, 4th edition, 8.6.3). Their lengths are the singular values, and
// the product of the rotations is V. A matrix that is wider than long is
// transposed and conjugated first.
//
// It is slow, O(min(M,N)²·(M+N)) for each of about ten sweeps on one core, and
// short: it is there for systems without a LAPACK.
type jacobi struct{}

// mostSweeps is far more than any matrix is known to need.
const mostSweeps = 60

// columns is a matrix in memory without gaps.
type columns struct {
	elements    []complex128
	rows, count int64
}

func (c columns) at(j int64) []complex128 { return c.elements[j*c.rows:][:c.rows] }

// longColumns is how many columns the long factor has: those of A, and in a full
// one those that complete it.
func longColumns(p *driver.SVD) int64 {
	if p.Factors == driver.FactorsFull {
		return max(p.M, p.N)
	}
	return min(p.M, p.N)
}

func (jacobi) workspace(p *driver.SVD) int64 {
	long, k := max(p.M, p.N), min(p.M, p.N)
	return 16*(2*long*longColumns(p)+k*k) + 16*k
}

func (jacobi) decompose(p *driver.SVD, at uintptr) bool {
	long, k := max(p.M, p.N), min(p.M, p.N)
	take := func(rows, count int64) columns {
		c := columns{hostmem.Slice[complex128](at, rows*count), rows, count}
		at += uintptr(16 * rows * count)
		return c
	}
	a, u, v := take(long, longColumns(p)), take(long, longColumns(p)), take(k, k)
	length := hostmem.Slice[float64](at, k)
	order := hostmem.Slice[int64](at+uintptr(8*k), k)
	scale := loadScaled(p, a)
	clear(v.elements)
	for j := range k {
		v.at(j)[j] = 1
	}
	if !orthogonalize(a, v, k) {
		return false
	}
	for j := range k {
		length[j] = math.Sqrt(real(inner(a.at(j), a.at(j))))
		order[j] = j
	}
	slices.SortStableFunc(order, func(i, j int64) int { return cmp.Compare(length[j], length[i]) })
	rank := int64(0) // columns that are not rounding alone
	for j, from := range order {
		if length[from] <= length[order[0]]*0x1p-52*float64(k) {
			break
		}
		for i, x := range a.at(from) {
			u.at(int64(j))[i] = x / complex(length[from], 0)
		}
		rank++
	}
	if p.Factors != driver.FactorsNone {
		complete(u, rank)
	}
	storeDecomposition(p, u, v, length, order, scale)
	return true
}

// orthogonalize sweeps over the first k columns of a, and does the same to v. It
// answers whether they became orthogonal. Columns that are mere rounding of the
// matrix are left alone: they would be turned until they underflow.
func orthogonalize(a, v columns, k int64) bool {
	negligible := 0.0
	for j := range k {
		negligible += 0x1p-104 * real(inner(a.at(j), a.at(j)))
	}
	for range mostSweeps {
		turned := false
		for i := range k {
			for j := i + 1; j < k; j++ {
				if rotate(a, v, i, j, negligible) {
					turned = true
				}
			}
		}
		if !turned {
			return true
		}
	}
	return false
}

// rotate makes columns i and j of a orthogonal, and says whether they were not.
// Squares of lengths up to negligible do not count.
func rotate(a, v columns, i, j int64, negligible float64) bool {
	x, y := a.at(i), a.at(j)
	alpha, beta := real(inner(x, x)), real(inner(y, y))
	gamma := inner(x, y)
	size := cmplx.Abs(gamma)
	// As near as the rounding of the sums lets them come.
	if min(alpha, beta) <= negligible || size <= 0x1p-52*float64(a.rows)*math.Sqrt(alpha)*math.Sqrt(beta) {
		return false
	}
	zeta := (beta - alpha) / (2 * size)
	t := math.Copysign(1, zeta) / (math.Abs(zeta) + math.Hypot(1, zeta))
	c := 1 / math.Hypot(1, t)
	turn(x, y, c, c*t, gamma/complex(size, 0))
	turn(v.at(i), v.at(j), c, c*t, gamma/complex(size, 0))
	return true
}

// turn rotates x and y, once y's phase is turned back.
func turn(x, y []complex128, c, s float64, phase complex128) {
	back := cmplx.Conj(phase)
	for i, l := range x {
		r := back * y[i]
		x[i] = complex(c*real(l)-s*real(r), c*imag(l)-s*imag(r))
		y[i] = complex(s*real(l)+c*real(r), s*imag(l)+c*imag(r))
	}
}

// inner is the sum of conj(x)·y.
func inner(x, y []complex128) complex128 {
	var re, im float64
	y = y[:len(x)]
	for i, l := range x {
		r := y[i]
		re += real(l)*real(r) + imag(l)*imag(r)
		im += real(l)*imag(r) - imag(l)*real(r)
	}
	return complex(re, im)
}

// complete replaces the columns from first on by ones that make all of them
// orthonormal: unit vectors without what lies along the others (Gram and
// Schmidt, twice). One unit vector at least has a part of 1/rows outside of what
// there is, and what was passed over before has less.
func complete(u columns, first int64) {
	unit := int64(0)
	for j := first; j < u.count; j++ {
		c := u.at(j)
		for {
			clear(c)
			c[unit] = 1
			unit++
			for range 2 {
				for k := range j {
					overlap := inner(u.at(k), c)
					for i, x := range u.at(k) {
						c[i] -= overlap * x
					}
				}
			}
			if square := real(inner(c, c)); square*2*float64(u.rows) >= 1 || unit == u.rows {
				for i := range c {
					c[i] /= complex(math.Sqrt(square), 0)
				}
				break
			}
		}
	}
}

// loadScaled copies A, or its conjugate transpose, to a, divided by a power of 2
// so that no square over- or underflows. It answers the exponent.
func loadScaled(p *driver.SVD, a columns) (exponent int) {
	largest := 0.0
	read := func(to func(i, j int64, x complex128)) {
		for j := range p.N {
			if p.DType == dtype.Complex64 {
				for i, x := range column[complex64](uintptr(p.A), j, p.LDA, p.M) {
					to(int64(i), j, complex128(x))
				}
				continue
			}
			for i, x := range column[complex128](uintptr(p.A), j, p.LDA, p.M) {
				to(int64(i), j, x)
			}
		}
	}
	read(func(_, _ int64, x complex128) { largest = max(largest, math.Abs(real(x)), math.Abs(imag(x))) })
	_, exponent = math.Frexp(largest)
	read(func(i, j int64, x complex128) {
		x = complex(math.Ldexp(real(x), -exponent), math.Ldexp(imag(x), -exponent))
		if p.M >= p.N {
			a.at(j)[i] = x
		} else {
			a.at(i)[j] = cmplx.Conj(x)
		}
	})
	return exponent
}

// storeDecomposition writes the results: u is the long factor, v holds the short
// one's columns in the order of length.
func storeDecomposition(p *driver.SVD, u, v columns, length []float64, order []int64, exponent int) {
	store := func(at driver.Ptr, ld, i, j int64, x complex128) {
		to := offset(uintptr(at), i+j*ld, p.DType.Size())
		if p.DType == dtype.Complex64 {
			*(*complex64)(hostmem.Pointer(to)) = complex64(x)
		} else {
			*(*complex128)(hostmem.Pointer(to)) = x
		}
	}
	for j, from := range order {
		s := math.Ldexp(length[from], exponent)
		if p.DType == dtype.Complex64 {
			hostmem.Slice[float32](uintptr(p.S), v.count)[j] = float32(s)
		} else {
			hostmem.Slice[float64](uintptr(p.S), v.count)[j] = s
		}
	}
	if p.Factors == driver.FactorsNone {
		return
	}
	for j := range u.count {
		for i, x := range u.at(j) {
			if p.M >= p.N {
				store(p.U, p.LDU, int64(i), j, x)
			} else {
				store(p.VH, p.LDVH, j, int64(i), cmplx.Conj(x))
			}
		}
	}
	for j, from := range order {
		for i, x := range v.at(from) {
			if p.M >= p.N {
				store(p.VH, p.LDVH, int64(j), int64(i), cmplx.Conj(x))
			} else {
				store(p.U, p.LDU, int64(i), int64(j), x)
			}
		}
	}
}
