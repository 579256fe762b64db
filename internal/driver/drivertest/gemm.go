package drivertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var allOps = []driver.Op{driver.NoTrans, driver.Trans, driver.ConjTrans}

// gemmTests compares products with the sum that defines them.
func gemmTests() []test {
	tests := []test{
		{"single precision is not shortened", gemmKeepsPrecision},
		{"integer products wrap", gemmWraps},
		{"malformed products are refused", refusesGemms},
		{"large products", func(f *fixture) {
			for _, t := range []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128} {
				gemmCase(f, t, gemmProblem{m: 65, n: 43, k: 70, batch: 2}, driver.Trans, driver.NoTrans, 2, 1)
			}
		}},
	}
	for _, t := range dtype.All() {
		tests = append(tests, test{fmt.Sprintf("products of %s", t), func(f *fixture) {
			for _, opA := range allOps {
				for _, opB := range allOps {
					gemmCase(f, t, gemmProblem{m: 3, n: 4, k: 5, batch: 1}, opA, opB, 1, 0)
					gemmCase(f, t, gemmProblem{m: 4, n: 2, k: 3, batch: 3, pad: 2}, opA, opB, 2, -1)
				}
			}
			if t.IsComplex() {
				gemmCase(f, t, gemmProblem{m: 3, n: 3, k: 3, batch: 2, pad: 1}, driver.ConjTrans, driver.NoTrans, 1-1i, 1i)
			}
			for _, p := range []gemmProblem{
				{m: 3, n: 4, k: 0, batch: 2}, {m: 0, n: 4, k: 2, batch: 2}, {m: 3, n: 0, k: 2, batch: 2},
				{m: 3, n: 4, k: 2, batch: 0}, {m: 1, n: 1, k: 1, batch: 1}, {m: 1, n: 7, k: 2, batch: 5},
				{m: 2, n: 2, k: 3, batch: 4, sameA: true},
			} {
				gemmCase(f, t, p, driver.NoTrans, driver.NoTrans, 1, 2)
				gemmCase(f, t, p, driver.NoTrans, driver.Trans, 3, 0)
			}
		}})
	}
	return append(append(tests, computeTests()...), groupTests()...)
}

// gemmProblem is a size: pad elements lie between columns and between
// problems; sameA gives A batch stride 0.
type gemmProblem struct {
	m, n, k, batch, pad int64
	sameA               bool
}

// gemmCase runs one product on the device and on a model. Where beta is 0, C
// starts as NaN if its type has one.
func gemmCase(f *fixture, t dtype.DType, p gemmProblem, opA, opB driver.Op, alpha, beta complex128) {
	f.t.Helper()
	rng := rand.New(rand.NewPCG(uint64(t), uint64(p.m*100+p.n*10+p.k)))
	d := f.device(0)
	s, handle := f.stream(d), f.blas(d)
	value := func() complex128 {
		v := complex(float64(rng.IntN(5)-2), 0)
		if t.IsComplex() {
			v += complex(0, float64(rng.IntN(5)-2))
		}
		return v
	}
	start := value
	if beta == 0 && !t.IsInteger() {
		start = func() complex128 { return complex(math.NaN(), 0) }
	}
	a := newMatrices(t, opA, p.m, p.k, p.batch, p.pad, value)
	if p.sameA {
		a.between = 0
	}
	b := newMatrices(t, opB, p.k, p.n, p.batch, p.pad, value)
	c := newMatrices(t, driver.NoTrans, p.m, p.n, p.batch, p.pad, start)
	for _, x := range []*matrices{a, b, c} {
		x.at = f.alloc(d, int64(len(x.data)))
		write(f, s, x.at, x.data...)
	}
	f.ok(handle.Gemm(s, &driver.Gemm{DType: t, OpA: opA, OpB: opB, M: p.m, N: p.n, K: p.k, Alpha: alpha, Beta: beta,
		A: a.at, B: b.at, C: c.at, LDA: a.ld, LDB: b.ld, LDC: c.ld,
		Batch: p.batch, StrideA: a.between, StrideB: b.between, StrideC: c.between}))
	for q := range p.batch {
		multiply(q, p.k, alpha, a, b, beta, c)
	}
	got := read[byte](f, s, c.at, len(c.data))
	c.matches(f, got, func() string {
		return fmt.Sprintf("%+v with op %d and %d, alpha %v, beta %v", p, opA, opB, alpha, beta)
	})
}

// matrices is a batch of column-major matrices, op of which are rows×cols.
type matrices struct {
	t       dtype.DType
	op      driver.Op
	rows    int64 // of op of each
	cols    int64
	ld      int64
	between int64
	data    []byte
	at      driver.Ptr
}

func newMatrices(t dtype.DType, op driver.Op, rows, cols, batch, pad int64, value func() complex128) *matrices {
	x := &matrices{t: t, op: op, rows: rows, cols: cols}
	if op != driver.NoTrans {
		rows, cols = cols, rows
	}
	x.ld = max(rows, 1) + pad
	x.between = x.ld*cols + pad
	x.data = make([]byte, max(x.between*batch, 1)*t.Size())
	for e := range slices.Chunk(x.data, int(t.Size())) {
		encode(t, e, value())
	}
	return x
}

// element is the memory of element (i, j) of op of matrix q.
func (x *matrices) element(q, i, j int64) []byte {
	if x.op != driver.NoTrans {
		i, j = j, i
	}
	return x.data[(q*x.between+j*x.ld+i)*x.t.Size():][:x.t.Size()]
}

func (x *matrices) get(q, i, j int64) complex128 {
	return conj(decode(x.t, x.element(q, i, j)), x.op == driver.ConjTrans)
}

// multiply is the definition of product q, on what c's memory is to be.
func multiply(q, k int64, alpha complex128, a, b *matrices, beta complex128, c *matrices) {
	for i := range c.rows {
		for j := range c.cols {
			sum := complex128(0)
			for l := range k {
				sum += a.get(q, i, l) * b.get(q, l, j)
			}
			sum *= alpha
			if beta != 0 {
				sum += beta * c.get(q, i, j)
			}
			encode(c.t, c.element(q, i, j), sum)
		}
	}
}

// matches ends the test unless got, read from x's memory, is what it is to be.
func (x *matrices) matches(f *fixture, got []byte, what func() string) {
	f.t.Helper()
	size := int(x.t.Size())
	for i := 0; i < len(got); i += size {
		g, w := decode(x.t, got[i:]), decode(x.t, x.data[i:])
		if g != w && (real(w) == real(w) || real(g) == real(g)) {
			f.t.Fatalf("%s: element %d of C's memory is %v; expected %v", what(), i/size, g, w)
		}
	}
}

// gemmKeepsPrecision multiplies a number by 1 that has more bits than the
// short formats (TF32 and the half precisions) that devices offer.
func gemmKeepsPrecision(f *fixture) {
	d := f.device(0)
	const n = 32
	p := f.alloc(d, 3*4*n*n)
	s, handle := f.stream(d), f.blas(d)
	a, b := make([]float32, n*n), make([]float32, n*n)
	for i := range n {
		b[i*n+i] = 1
		for j := range n {
			a[i*n+j] = 1 + float32(i+1)*0x1p-23
		}
	}
	write(f, s, p, append(a, b...)...)
	f.ok(handle.Gemm(s, &driver.Gemm{DType: dtype.Float32, M: n, N: n, K: n, Alpha: 1,
		A: p, B: p + 4*n*n, C: p + 8*n*n, LDA: n, LDB: n, LDC: n, Batch: 1}))
	if got := read[float32](f, s, p+8*n*n, n*n); !slices.Equal(got, a) {
		f.t.Errorf("A·1 is not A in float32: %x became %x", a[0], got[0])
	}
}

func gemmWraps(f *fixture) {
	d := f.device(0)
	p := f.alloc(d, 3*8)
	s, handle := f.stream(d), f.blas(d)
	x64, y64, c64 := int64(math.MaxInt64-4), int64(1<<40+3), int64(77)
	write(f, s, p, x64, y64, c64)
	f.ok(handle.Gemm(s, &driver.Gemm{DType: dtype.Int64, M: 1, N: 1, K: 1, Alpha: -3, Beta: 5,
		A: p, B: p + 8, C: p + 16, LDA: 1, LDB: 1, LDC: 1, Batch: 1}))
	if got, want := read[int64](f, s, p+16, 1)[0], -3*x64*y64+5*c64; got != want {
		f.t.Errorf("the int64 product is %d; arithmetic modulo 2⁶⁴ gives %d", got, want)
	}
	x32, y32, c32 := int32(math.MaxInt32-4), int32(1<<20+3), int32(77)
	write(f, s, p, x32, y32, c32)
	f.ok(handle.Gemm(s, &driver.Gemm{DType: dtype.Int32, M: 1, N: 1, K: 1, Alpha: -3, Beta: 5,
		A: p, B: p + 4, C: p + 8, LDA: 1, LDB: 1, LDC: 1, Batch: 1}))
	if got, want := read[int32](f, s, p+8, 1)[0], -3*x32*y32+5*c32; got != want {
		f.t.Errorf("the int32 product is %d; arithmetic modulo 2³² gives %d", got, want)
	}
}

func refusesGemms(f *fixture) {
	d := f.device(0)
	p := f.alloc(d, 3*16*8)
	s, handle := f.stream(d), f.blas(d)
	for what, spoil := range map[string]func(g *driver.Gemm){
		"an unknown type":               func(g *driver.Gemm) { g.DType = 99 },
		"an unknown op":                 func(g *driver.Gemm) { g.OpA = 9 },
		"a negative M":                  func(g *driver.Gemm) { g.M = -1 },
		"a negative N":                  func(g *driver.Gemm) { g.N = -1 },
		"a negative K":                  func(g *driver.Gemm) { g.K = -1 },
		"a negative batch":              func(g *driver.Gemm) { g.Batch = -1 },
		"an unknown compute mode":       func(g *driver.Gemm) { g.Compute = driver.ComputeFP16 + 1 },
		"LDA below M":                   func(g *driver.Gemm) { g.LDA = 2 },
		"LDA below K when A transposes": func(g *driver.Gemm) { g.OpA, g.LDA = driver.Trans, 1 },
		"LDB below K":                   func(g *driver.Gemm) { g.LDB = 1 },
		"LDC below M":                   func(g *driver.Gemm) { g.LDC = 2 },
		"no address of A":               func(g *driver.Gemm) { g.A = 0 },
		"no address of B":               func(g *driver.Gemm) { g.B = 0 },
		"no address of C":               func(g *driver.Gemm) { g.C = 0 },
		"a size over int64":             func(g *driver.Gemm) { g.M, g.LDA, g.LDC = 1<<40, 1<<40, 1<<40; g.N = 1 << 40 },
	} {
		g := driver.Gemm{DType: dtype.Float64, M: 3, N: 2, K: 2, Alpha: 1,
			A: p, B: p + 128, C: p + 256, LDA: 3, LDB: 2, LDC: 3, Batch: 1}
		spoil(&g)
		err := handle.Gemm(s, &g)
		if err == nil {
			f.t.Errorf("%s was taken", what)
			continue
		}
		f.refused(err, "BLAS.Gemm", d, weir.ErrArgument)
	}
	f.sync("the stream", s)
	if d.Err() != nil {
		f.t.Errorf("a refused product killed the device: %v", d.Err())
	}
}
