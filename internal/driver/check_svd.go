package driver

import "github.com/weirgo/weir/dtype"

// FactorExtents are the columns of U and the rows of VH that p asks for.
func (p *SVD) FactorExtents() (columnsU, rowsVH int64) {
	switch p.Factors {
	case FactorsThin:
		return min(p.M, p.N), min(p.M, p.N)
	case FactorsFull:
		return p.M, p.N
	}
	return 0, 0
}

// CheckSVD is nil, or the ErrArgument that says what is wrong with p, of call op
// on the named device.
func CheckSVD(op, device string, p *SVD) error {
	switch {
	case p.DType != dtype.Float32 && p.DType != dtype.Float64 && !p.DType.IsComplex():
		return argument(op, device, "dtype %v; expected float32, float64, complex64 or complex128", p.DType)
	case p.Factors > FactorsFull:
		return argument(op, device, "factors %d; expected known ones", p.Factors)
	case p.M < 0 || p.N < 0:
		return argument(op, device, "m, n = %d, %d; expected 0 or more", p.M, p.N)
	}
	columnsU, rowsVH := p.FactorExtents()
	k := min(p.M, p.N)
	all := [...]struct {
		name           string
		at             Ptr
		rows, cols, ld int64
	}{{"a", p.A, p.M, p.N, p.LDA}, {"s", p.S, k, min(k, 1), max(k, 1)}, {"u", p.U, p.M, columnsU, p.LDU}, {"vh", p.VH, rowsVH, p.N, p.LDVH}}
	matrices := all[:]
	if p.Factors == FactorsNone {
		matrices = all[:2]
	}
	for _, x := range matrices {
		if x.ld < max(1, x.rows) {
			return argument(op, device, "ld%s = %d; expected at least %d", x.name, x.ld, max(1, x.rows))
		}
		if x.rows == 0 || x.cols == 0 {
			continue
		}
		if !x.at.Valid() {
			return argument(op, device, "%s at %#x; expected an address", x.name, x.at)
		}
		if float64(x.cols)*float64(x.ld)*float64(p.DType.Size()) > mostBytes {
			return argument(op, device, "%s of %d×%d, ld %d; expected less than 2^62 bytes", x.name, x.rows, x.cols, x.ld)
		}
	}
	return nil
}
