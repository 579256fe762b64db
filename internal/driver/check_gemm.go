package driver

import (
	"fmt"
	"math"
)

// CheckGemm is nil, or the ErrArgument that says what is wrong with g, of call
// op on the named device.
func CheckGemm(op, device string, g *Gemm) error {
	c := gemmCheck{op: op, device: device, g: g, group: -1}
	operands := c.operands()
	if err := c.description(&operands, g.Batch); err != nil || g.M == 0 || g.N == 0 || g.Batch == 0 {
		return err
	}
	for i, at := range [...]Ptr{g.A, g.B, g.C} {
		x := &operands[i]
		if x.rows == 0 || x.cols == 0 {
			continue
		}
		if !at.Valid() {
			return c.refuse("%s at %#x; expected an address", x.name, at)
		}
		reach := float64(x.cols)*float64(x.ld) + math.Abs(float64(g.Batch)*float64(x.stride))
		if reach*float64(g.DType.Size()) > mostBytes {
			return c.refuse("%s of %d×%d, ld %d, %d times at stride %d; expected less than 2^62 bytes", x.name, x.rows, x.cols, x.ld, g.Batch, x.stride)
		}
	}
	return nil
}

// CheckGemmGroups is CheckGemm for groups; the message names the group.
func CheckGemmGroups(op, device string, groups []GemmGroup) error {
	for i := range groups {
		c := gemmCheck{op: op, device: device, g: &groups[i].Gemm, group: i}
		if err := c.members(&groups[i]); err != nil {
			return err
		}
	}
	return nil
}

// gemmCheck checks one product, or one group if that is not negative.
type gemmCheck struct {
	op, device string
	g          *Gemm
	group      int
}

func (c *gemmCheck) members(g *GemmGroup) error {
	n := len(g.Cs)
	if len(g.As) != n || len(g.Bs) != n {
		return c.refuse("%d, %d and %d addresses of a, b and c; expected as many of each", len(g.As), len(g.Bs), n)
	}
	operands := c.operands()
	if err := c.description(&operands, int64(n)); err != nil || g.M == 0 || g.N == 0 {
		return err
	}
	for i, all := range [...][]Ptr{g.As, g.Bs, g.Cs} {
		x := &operands[i]
		if x.rows == 0 || x.cols == 0 {
			continue
		}
		for k, at := range all {
			if !at.Valid() {
				return c.refuse("%s of product %d at %#x; expected an address", x.name, k, at)
			}
		}
		if float64(x.cols)*float64(x.ld)*float64(g.DType.Size()) > mostBytes {
			return c.refuse("%s of %d×%d, ld %d; expected less than 2^62 bytes", x.name, x.rows, x.cols, x.ld)
		}
	}
	return nil
}

// description checks all but the addresses.
func (c *gemmCheck) description(operands *[3]operand, batch int64) error {
	g := c.g
	if !g.DType.Valid() || g.OpA > ConjTrans || g.OpB > ConjTrans || g.Compute > ComputeFP16 {
		return c.refuse("dtype %v, operations %d and %d, compute mode %d; expected known ones", g.DType, g.OpA, g.OpB, g.Compute)
	}
	if g.M < 0 || g.N < 0 || g.K < 0 || batch < 0 {
		return c.refuse("m, n, k, batch = %d, %d, %d, %d; expected 0 or more", g.M, g.N, g.K, batch)
	}
	for i := range operands {
		x := &operands[i]
		if x.ld < max(1, x.rows) {
			return c.refuse("ld%s = %d; expected at least %d", x.name, x.ld, max(1, x.rows))
		}
	}
	return nil
}

// operand is a matrix as it is stored.
type operand struct {
	name                   string
	rows, cols, ld, stride int64
}

func (c *gemmCheck) operands() [3]operand {
	g := c.g
	all := [...]operand{{"a", g.M, g.K, g.LDA, g.StrideA}, {"b", g.K, g.N, g.LDB, g.StrideB}, {"c", g.M, g.N, g.LDC, g.StrideC}}
	for i, op := range [...]Op{g.OpA, g.OpB} {
		if op != NoTrans {
			all[i].rows, all[i].cols = all[i].cols, all[i].rows
		}
	}
	return all
}

func (c *gemmCheck) refuse(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if c.group >= 0 {
		message = fmt.Sprintf("group %d: %s", c.group, message)
	}
	return argument(c.op, c.device, "%s", message)
}
