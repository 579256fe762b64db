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

// kernelTests compares every kernel with a naive model, for every element
// type, on random strided views.
func kernelTests() []test {
	tests := []test{
		{"copy rounds to nearest and ties to even", copyRounds},
		{"copy keeps 64-bit integers exact", copyKeepsInt64},
		{"half precision sums accumulate in single precision", sumsAccumulateWide},
		{"an axpby with beta 0 does not read its output", axpbyIgnoresOutput},
		{"large views", largeViews},
		{"malformed kernels are refused", refusesKernels},
	}
	for _, t := range dtype.All() {
		for _, op := range []driver.KernelOp{driver.KernelMul, driver.KernelSum, driver.KernelFill, driver.KernelAxpby} {
			tests = append(tests, test{fmt.Sprintf("%s of %s", op, t), func(f *fixture) {
				kernelCases(f, op, t, t)
			}})
		}
		for _, from := range dtype.All() {
			tests = append(tests, test{fmt.Sprintf("copy of %s to %s", from, t), func(f *fixture) {
				kernelCases(f, driver.KernelCopy, from, t)
			}})
		}
	}
	return tests
}

// shapes are the awkward ones; more are drawn.
var shapes = [][]int64{
	{}, {1}, {0}, {7}, {3, 0, 2}, {1, 1, 1}, {4, 5}, {2, 1, 2, 1, 3, 1, 2, 2, 1, 2}, {0, 0},
}

func kernelCases(f *fixture, op driver.KernelOp, from, to dtype.DType) {
	rng := rand.New(rand.NewPCG(uint64(op), uint64(from)<<8|uint64(to)))
	d := f.device(0)
	s := f.stream(d)
	drawn := slices.Clone(shapes)
	for range 8 {
		shape := make([]int64, 1+rng.IntN(4))
		for i := range shape {
			shape[i] = 1 + rng.Int64N(5)
		}
		drawn = append(drawn, shape)
	}
	for _, shape := range drawn {
		for _, l := range []layout{contiguous, injective, repeating} {
			kernelCase(f, d, s, rng, op, from, to, shape, l)
		}
	}
}

// kernelCase runs one kernel on the device and on the model.
func kernelCase(f *fixture, d driver.Device, s driver.Stream, rng *rand.Rand, op driver.KernelOp, from, to dtype.DType, shape []int64, l layout) {
	f.t.Helper()
	value := values(rng, op, from)
	outLayout := min(l, injective)
	k := driver.Kernel{Op: op, ConjA: rng.IntN(2) == 0, ConjB: rng.IntN(2) == 0, Alpha: value(), Beta: value()}
	in := shape
	if op == driver.KernelSum {
		shape = shape[:rng.IntN(len(shape)+1)]
	}
	a := newArray(rng, from, in, l, value)
	b := newArray(rng, from, in, l, value)
	out := newArray(rng, to, shape, outLayout, values(rng, op, to))
	for _, x := range []*array{a, b, out} {
		x.upload(f, d, s)
	}
	k.Out = out.view()
	switch op {
	case driver.KernelMul:
		k.A, k.B = a.view(), b.view()
	case driver.KernelCopy, driver.KernelSum, driver.KernelAxpby:
		k.A = a.view()
	}
	f.ok(s.Launch(&k))
	model(&k, out, a, b)
	out.matches(f, s, fmt.Sprintf("%s of %v with strides %v, conjugates %v %v, alpha %v, beta %v",
		op, a.shape, a.strides, k.ConjA, k.ConjB, k.Alpha, k.Beta))
}

// model applies k to out's model, element by element.
func model(k *driver.Kernel, out, a, b *array) {
	for i := range each(out.shape) {
		switch k.Op {
		case driver.KernelCopy:
			out.set(i, conj(a.get(i), k.ConjA))
		case driver.KernelMul:
			out.set(i, conj(a.get(i), k.ConjA)*conj(b.get(i), k.ConjB))
		case driver.KernelSum:
			sum := complex128(0)
			for j := range each(a.shape[len(i):]) {
				sum += conj(a.get(append(slices.Clone(i), j...)), k.ConjA)
			}
			out.set(i, sum)
		case driver.KernelFill:
			out.set(i, k.Alpha)
		case driver.KernelAxpby:
			out.set(i, k.Alpha*conj(a.get(i), k.ConjA)+k.Beta*out.get(i))
		}
	}
}

// values draws numbers so small that what op makes of them is exact in every
// type. Copies of real types have quarters too, for integers to truncate.
func values(rng *rand.Rand, op driver.KernelOp, t dtype.DType) func() complex128 {
	return func() complex128 {
		v := complex(float64(rng.IntN(7)-3), 0)
		switch {
		case t.IsComplex():
			v += complex(0, float64(rng.IntN(7)-3))
		case op == driver.KernelCopy && !t.IsInteger():
			v += complex(float64(rng.IntN(4))/4, 0)
		}
		return v
	}
}

// conversion is one element before and after a copy, in bits.
type conversion struct {
	from     dtype.DType
	value    any
	to       dtype.DType
	expected any
}

// The expected bits are worked out by hand from IEEE 754's rule and from the
// widths of the significands: 24 bits in float32, 11 in float16, 8 in bfloat16.
var conversions = []conversion{
	{dtype.Float64, 1 + 0x1p-24, dtype.Float32, float32(1)},
	{dtype.Float64, 1 + 0x3p-24, dtype.Float32, float32(1 + 0x1p-22)},
	{dtype.Float64, 1e300, dtype.Float32, float32(math.Inf(1))},
	{dtype.Float64, math.Inf(-1), dtype.Float32, float32(math.Inf(-1))},
	{dtype.Float32, float32(1 + 0x1p-11), dtype.Float16, uint16(0x3c00)},
	{dtype.Float32, float32(1 + 0x3p-11), dtype.Float16, uint16(0x3c02)},
	{dtype.Float32, float32(65504), dtype.Float16, uint16(0x7bff)},
	{dtype.Float32, float32(65520), dtype.Float16, uint16(0x7c00)},
	{dtype.Float32, float32(0x1p-24), dtype.Float16, uint16(0x0001)},
	{dtype.Float32, float32(0x1p-25), dtype.Float16, uint16(0x0000)},
	{dtype.Float32, float32(-0x3p-25), dtype.Float16, uint16(0x8002)},
	{dtype.Float32, float32(math.Inf(-1)), dtype.Float16, uint16(0xfc00)},
	{dtype.Float32, float32(1 + 0x1p-8), dtype.BFloat16, uint16(0x3f80)},
	{dtype.Float32, float32(1 + 0x3p-8), dtype.BFloat16, uint16(0x3f82)},
	{dtype.Float32, float32(math.MaxFloat32), dtype.BFloat16, uint16(0x7f80)},
	{dtype.Float32, float32(math.Inf(1)), dtype.BFloat16, uint16(0x7f80)},
	{dtype.Float16, uint16(0x0001), dtype.Float32, float32(0x1p-24)},
	{dtype.Float16, uint16(0x7c00), dtype.Float64, math.Inf(1)},
	{dtype.BFloat16, uint16(0x3f82), dtype.Float16, uint16(0x3c10)},
	{dtype.Int32, int32(16777217), dtype.Float32, float32(16777216)},
	{dtype.Int32, int32(259), dtype.BFloat16, uint16(0x4382)},
	{dtype.Int32, int32(math.MinInt32), dtype.Int64, int64(math.MinInt32)},
	{dtype.Int64, int64(1<<53 + 1), dtype.Float64, float64(1 << 53)},
	{dtype.Int64, int64(-7), dtype.Int32, int32(-7)},
	{dtype.Float64, -1.75, dtype.Int32, int32(-1)},
	{dtype.Float64, 0x1p62, dtype.Int64, int64(1 << 62)},
	{dtype.Float64, -0.75, dtype.Complex64, complex64(-0.75)},
	{dtype.Complex128, complex(2, 3), dtype.Float64, 2.0},
	{dtype.Complex128, complex(1+0x1p-24, 1+0x3p-24), dtype.Complex64, complex(float32(1), float32(1+0x1p-22))},
	{dtype.Complex64, complex64(complex(-2.5, 9)), dtype.Int64, int64(-2)},
}

func copyRounds(f *fixture) {
	d := f.device(0)
	p, q := f.alloc(d, 16), f.alloc(d, 16)
	s := f.stream(d)
	for _, c := range conversions {
		want := bits(c.expected)
		f.ok(s.CopyIn(p, bits(c.value)))
		f.ok(s.Launch(&driver.Kernel{Op: driver.KernelCopy, Out: line(q, c.to, 1), A: line(p, c.from, 1)}))
		if got := read[byte](f, s, q, len(want)); !slices.Equal(got, want) {
			f.t.Errorf("%s %v became %s %v (%x); expected %v", c.from, c.value, c.to, decode(c.to, got), got, c.expected)
		}
	}
	for _, from := range []dtype.DType{dtype.Float32, dtype.Float64, dtype.Float16, dtype.BFloat16} {
		for _, to := range []dtype.DType{dtype.Float32, dtype.Float64, dtype.Float16, dtype.BFloat16, dtype.Complex64} {
			nan := make([]byte, from.Size())
			encode(from, nan, complex(math.NaN(), 0))
			f.ok(s.CopyIn(p, nan))
			f.ok(s.Launch(&driver.Kernel{Op: driver.KernelCopy, Out: line(q, to, 1), A: line(p, from, 1)}))
			if got := decode(to, read[byte](f, s, q, int(to.Size()))); real(got) == real(got) {
				f.t.Errorf("a NaN of %s became %s %v", from, to, got)
			}
		}
	}
}

// bits is the memory of one number.
func bits(v any) []byte {
	switch v := v.(type) {
	case float32:
		return bytesOf([]float32{v})
	case float64:
		return bytesOf([]float64{v})
	case int32:
		return bytesOf([]int32{v})
	case int64:
		return bytesOf([]int64{v})
	case uint16:
		return bytesOf([]uint16{v})
	case complex64:
		return bytesOf([]complex64{v})
	case complex128:
		return bytesOf([]complex128{v})
	}
	panic(fmt.Sprintf("no element type has Go type %T", v))
}

func copyKeepsInt64(f *fixture) {
	d := f.device(0)
	want := []int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, -1}
	p, q := f.alloc(d, 32), f.alloc(d, 32)
	s := f.stream(d)
	write(f, s, p, want...)
	f.ok(s.Launch(&driver.Kernel{Op: driver.KernelCopy, Out: line(q, dtype.Int64, 4), A: line(p, dtype.Int64, 4)}))
	if got := read[int64](f, s, q, 4); !slices.Equal(got, want) {
		f.t.Errorf("the copy is %v; expected %v", got, want)
	}
	write(f, s, p, int64(1<<31+1))
	f.ok(s.Launch(&driver.Kernel{Op: driver.KernelMul, Out: line(q, dtype.Int64, 1), A: line(p, dtype.Int64, 1), B: line(p, dtype.Int64, 1)}))
	if got := read[int64](f, s, q, 1); got[0] != 1<<62+1<<32+1 {
		f.t.Errorf("(2³¹+1)² is %d; expected %d", got[0], int64(1<<62+1<<32+1))
	}
	write(f, s, p, int64(1<<53), 1)
	sum := line(q, dtype.Int64, 1)
	sum.Shape, sum.Strides = nil, nil
	f.ok(s.Launch(&driver.Kernel{Op: driver.KernelSum, Out: sum, A: line(p, dtype.Int64, 2)}))
	if got := read[int64](f, s, q, 1); got[0] != 1<<53+1 {
		f.t.Errorf("2⁵³+1 is %d", got[0])
	}
	write(f, s, q, int64(1))
	f.ok(s.Launch(&driver.Kernel{Op: driver.KernelAxpby, Alpha: 1, Beta: 1, Out: line(q, dtype.Int64, 1), A: line(p, dtype.Int64, 1)}))
	if got := read[int64](f, s, q, 1); got[0] != 1<<53+1 {
		f.t.Errorf("1·2⁵³ + 1·1 is %d", got[0])
	}
}

// sumsAccumulateWide adds ones: a sum in float16 sticks at 2048, in bfloat16
// at 256.
func sumsAccumulateWide(f *fixture) {
	const n = 4096
	d := f.device(0)
	p, q := f.alloc(d, 2*n), f.alloc(d, 2)
	s := f.stream(d)
	for _, t := range []dtype.DType{dtype.Float16, dtype.BFloat16} {
		f.ok(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, t, n), Alpha: 1}))
		f.ok(s.Launch(&driver.Kernel{Op: driver.KernelSum, Out: driver.View{Ptr: q, DType: t}, A: line(p, t, n)}))
		if got := decode(t, read[byte](f, s, q, 2)); got != n {
			f.t.Errorf("%d ones of %s add up to %v", n, t, real(got))
		}
	}
}

func axpbyIgnoresOutput(f *fixture) {
	d := f.device(0)
	p, q := f.alloc(d, 16), f.alloc(d, 16)
	s := f.stream(d)
	for _, t := range dtype.All() {
		if t.IsInteger() {
			continue
		}
		two, nan := make([]byte, t.Size()), make([]byte, t.Size())
		encode(t, two, 2)
		encode(t, nan, complex(math.NaN(), 0))
		f.ok(s.CopyIn(p, two))
		f.ok(s.CopyIn(q, nan))
		f.ok(s.Launch(&driver.Kernel{Op: driver.KernelAxpby, Out: line(q, t, 1), A: line(p, t, 1), Alpha: 3}))
		if got := decode(t, read[byte](f, s, q, int(t.Size()))); got != 6 {
			f.t.Errorf("3·2 over a NaN of %s is %v; expected 6", t, got)
		}
	}
}

// largeViews is for implementations that treat large or regular views apart.
func largeViews(f *fixture) {
	d := f.device(0)
	s := f.stream(d)
	rng := rand.New(rand.NewPCG(7, 7))
	for _, shape := range [][]int64{{10_007}, {129, 67}, {5, 1, 1031}} {
		for _, op := range []driver.KernelOp{driver.KernelCopy, driver.KernelMul, driver.KernelSum, driver.KernelFill, driver.KernelAxpby} {
			for _, l := range []layout{contiguous, injective} {
				for _, t := range []dtype.DType{dtype.Float32, dtype.Complex128} {
					kernelCase(f, d, s, rng, op, t, t, shape, l)
				}
			}
		}
	}
}

func refusesKernels(f *fixture) {
	d := f.device(0)
	p := f.alloc(d, 1024)
	s := f.stream(d)
	v := line(p, dtype.Float64, 4)
	of := func(t dtype.DType) driver.View { return line(p, t, 4) }
	short := line(p, dtype.Float64, 3)
	for what, k := range map[string]driver.Kernel{
		"an unknown operation":            {Op: 200, Out: v, A: v, B: v},
		"an unknown type":                 {Op: driver.KernelFill, Out: of(99)},
		"mul of two types":                {Op: driver.KernelMul, Out: v, A: v, B: of(dtype.Float32)},
		"mul to another type":             {Op: driver.KernelMul, Out: of(dtype.Int64), A: v, B: v},
		"sum to another type":             {Op: driver.KernelSum, Out: of(dtype.Int64), A: v},
		"axpby of two types":              {Op: driver.KernelAxpby, Out: v, A: of(dtype.Float32), Alpha: 1},
		"copy of another shape":           {Op: driver.KernelCopy, Out: v, A: short},
		"mul of another shape":            {Op: driver.KernelMul, Out: v, A: v, B: short},
		"axpby of another shape":          {Op: driver.KernelAxpby, Out: v, A: short, Alpha: 1},
		"a sum to more axes than it has":  {Op: driver.KernelSum, Out: v, A: driver.View{Ptr: p, DType: dtype.Float64}},
		"a sum with other leading axes":   {Op: driver.KernelSum, Out: short, A: v},
		"a negative extent":               {Op: driver.KernelFill, Out: line(p, dtype.Float64, -1)},
		"fewer strides than axes":         {Op: driver.KernelFill, Out: driver.View{Ptr: p, DType: dtype.Float64, Shape: []int64{2, 2}, Strides: []int64{1}}},
		"no address":                      {Op: driver.KernelFill, Out: line(0, dtype.Float64, 4)},
		"no address to read":              {Op: driver.KernelCopy, Out: v, A: line(0, dtype.Float64, 4)},
		"a number of elements over int64": {Op: driver.KernelFill, Out: driver.View{Ptr: p, DType: dtype.Float64, Shape: []int64{1 << 40, 1 << 40}, Strides: []int64{0, 0}}},
	} {
		err := s.Launch(&k)
		if err == nil {
			f.t.Errorf("%s was taken", what)
			continue
		}
		f.refused(err, "Stream.Launch", d, weir.ErrArgument)
	}
	f.ok(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(0, dtype.Float64, 0)}))
	f.sync("the stream", s)
}
