package driver

import (
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

func plain() Gemm {
	return Gemm{DType: dtype.Float64, M: 3, N: 2, K: 4, Alpha: 1, A: 4096, B: 8192, C: 12288, LDA: 3, LDB: 4, LDC: 3, Batch: 2, StrideA: 12, StrideB: 8, StrideC: 6}
}

func TestWhatIsWrongWithAProductIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(g *Gemm){
		"": func(g *Gemm) {},
		"dtype dtype(99), operations 0 and 0, compute mode 0; expected known ones":              func(g *Gemm) { g.DType = 99 },
		"dtype float64, operations 0 and 3, compute mode 0; expected known ones":                func(g *Gemm) { g.OpB = 3 },
		"dtype float64, operations 0 and 0, compute mode 4; expected known ones":                func(g *Gemm) { g.Compute = 4 },
		"m, n, k, batch = 3, 2, -4, 2; expected 0 or more":                                      func(g *Gemm) { g.K = -4 },
		"m, n, k, batch = 3, 2, 4, -1; expected 0 or more":                                      func(g *Gemm) { g.Batch = -1 },
		"lda = 3; expected at least 4":                                                          func(g *Gemm) { g.OpA = ConjTrans },
		"ldb = 3; expected at least 4":                                                          func(g *Gemm) { g.LDB = 3 },
		"ldc = 2; expected at least 3":                                                          func(g *Gemm) { g.LDC = 2 },
		"a at 0x0; expected an address":                                                         func(g *Gemm) { g.A = 0 },
		"b at 0xfff; expected an address":                                                       func(g *Gemm) { g.B = 4095 },
		"c at 0x1; expected an address":                                                         func(g *Gemm) { g.C = 1 },
		"b of 4×2, ld 4, 2 times at stride -4611686018427387904; expected less than 2^62 bytes": func(g *Gemm) { g.StrideB = -1 << 62 },
	} {
		g := plain()
		spoil(&g)
		refusal(t, CheckGemm("BLAS.Gemm", "host:0", &g), "BLAS.Gemm", want)
	}
}

func TestAProductOfNothingNeedsNoAddresses(t *testing.T) {
	for what, spoil := range map[string]func(g *Gemm){
		"no rows":                             func(g *Gemm) { g.M, g.C = 0, 0 },
		"no columns":                          func(g *Gemm) { g.N, g.C = 0, 0 },
		"no members":                          func(g *Gemm) { g.Batch, g.C = 0, 0 },
		"no terms, which still scale C":       func(g *Gemm) { g.K = 0 },
		"no terms of what is read transposed": func(g *Gemm) { g.K, g.OpA, g.OpB = 0, Trans, ConjTrans },
	} {
		g := plain()
		spoil(&g)
		g.A, g.B = 0, 0
		if err := CheckGemm("BLAS.Gemm", "host:0", &g); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	g := plain()
	g.K, g.C = 0, 0
	refusal(t, CheckGemm("BLAS.Gemm", "host:0", &g), "BLAS.Gemm", "c at 0x0; expected an address")
}

func TestWhatIsWrongWithGroupsIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(g *GemmGroup){
		"": func(g *GemmGroup) {},
		"group 1: 1, 2 and 2 addresses of a, b and c; expected as many of each":    func(g *GemmGroup) { g.As = g.As[:1] },
		"group 1: 2, 2 and 0 addresses of a, b and c; expected as many of each":    func(g *GemmGroup) { g.Cs = nil },
		"group 1: m, n, k, batch = -3, 2, 4, 2; expected 0 or more":                func(g *GemmGroup) { g.M = -3 },
		"group 1: ldc = 1; expected at least 3":                                    func(g *GemmGroup) { g.LDC = 1 },
		"group 1: a of product 1 at 0x0; expected an address":                      func(g *GemmGroup) { g.As[1] = 0 },
		"group 1: c of product 0 at 0x7; expected an address":                      func(g *GemmGroup) { g.Cs[0] = 7 },
		"group 1: a of 3×4, ld 1152921504606846976; expected less than 2^62 bytes": func(g *GemmGroup) { g.LDA = 1 << 60 },
	} {
		group := func() GemmGroup {
			g := GemmGroup{Gemm: plain(), As: []Ptr{4096, 8192}, Bs: []Ptr{4096, 8192}, Cs: []Ptr{4096, 8192}}
			g.A, g.B, g.C, g.Batch, g.StrideA = 0, 0, 0, -5, 1<<62 // not read
			return g
		}
		groups := []GemmGroup{group(), group()}
		spoil(&groups[1])
		refusal(t, CheckGemmGroups("BLAS.GemmGroups", "host:0", groups), "BLAS.GemmGroups", want)
	}
	none := GemmGroup{Gemm: plain()}
	empty := GemmGroup{Gemm: plain(), As: []Ptr{0}, Bs: []Ptr{0}, Cs: []Ptr{0}}
	empty.N = 0
	scales := GemmGroup{Gemm: plain(), As: []Ptr{0}, Bs: []Ptr{0}, Cs: []Ptr{4096}}
	scales.K = 0
	if err := CheckGemmGroups("BLAS.GemmGroups", "host:0", []GemmGroup{none, empty, scales}); err != nil {
		t.Error(err)
	}
}

// refusal compares err with the message of a call on host:0, "" for none.
func refusal(t *testing.T, err error, op, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	want = op + " on host:0: " + want
	if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
		t.Errorf("the error is %v; expected %s", err, want)
	}
}
