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

// groupTests compares products of groups with the sum that defines them.
func groupTests() []test {
	tests := []test{
		{"no groups are nothing to do", func(f *fixture) {
			d := f.device(0)
			s, handle := f.stream(d), f.blas(d)
			f.ok(handle.GemmGroups(s, nil))
			f.ok(handle.GemmGroups(s, []driver.GemmGroup{{Gemm: driver.Gemm{DType: dtype.Float32, M: 3, N: 3, K: 3, LDA: 3, LDB: 3, LDC: 3, Batch: 5}}}))
			f.finished("the stream", s)
		}},
		{"more products than a launch takes", manyProducts},
		{"groups of different types in one call", groupsOfAllTypes},
		{"groups are captured", groupsAreCaptured},
		{"groups keep the order of their stream", groupsInOrder},
		{"groups move between streams with their handle", groupsOnTwoStreams},
		{"a handle destroyed after its groups spoils none", func(f *fixture) {
			d := f.device(0)
			s, b := f.stream(d), f.blas(d)
			x := newScalars(f, d, s, 8)
			x.rehearse(b)
			release := f.stall(s)
			f.ok(b.GemmGroups(s, x.groups))
			destroy := f.startWaiting("BLAS.Destroy", b.Destroy)
			release()
			f.ok(destroy.join())
			x.holds(1)
		}},
		{"malformed groups are refused", refusesGroups},
	}
	for _, t := range dtype.All() {
		tests = append(tests, test{fmt.Sprintf("groups of %s", t), func(f *fixture) { groupsOf(f, t) }})
	}
	return tests
}

// member is one product of a group, on the model's memory.
type member struct {
	g       *driver.GemmGroup
	a, b, c *matrices
}

// newMember gives g a further product with matrices of its own.
func newMember(g *driver.GemmGroup, value, start func() complex128, pad int64) *member {
	return &member{g,
		newMatrices(g.DType, g.OpA, g.M, g.K, 1, pad, value),
		newMatrices(g.DType, g.OpB, g.K, g.N, 1, pad, value),
		newMatrices(g.DType, driver.NoTrans, g.M, g.N, 1, pad, start)}
}

func groupsOf(f *fixture, t dtype.DType) {
	rng := rand.New(rand.NewPCG(uint64(t), 17))
	value := smallNumber(rng, t)
	nan := func() complex128 { return complex(math.NaN(), 0) }
	for _, shapes := range [][]gemmProblem{
		{{m: 3, n: 4, k: 5, batch: 1}},
		{{m: 3, n: 4, k: 5, batch: 7, pad: 2}},
		{{m: 2, n: 2, k: 2, batch: 3}, {m: 5, n: 1, k: 4, batch: 2, pad: 1}, {m: 1, n: 6, k: 3, batch: 1}},
		{{m: 2, n: 3, k: 0, batch: 3, pad: 1}, {m: 2, n: 3, k: 1, batch: 3}, {m: 0, n: 3, k: 2, batch: 2}, {m: 3, n: 0, k: 2, batch: 2}, {m: 3, n: 3, k: 3}},
		{{m: 4, n: 4, k: 4, batch: 5, sameA: true}, {m: 4, n: 4, k: 4, batch: 2, sameA: true}},
		{{m: 33, n: 20, k: 40, batch: 2}, {m: 1, n: 1, k: 1, batch: 30}},
	} {
		for round, beta := range []complex128{0, -1} {
			var made []*member
			groups := make([]driver.GemmGroup, len(shapes))
			for i, p := range shapes {
				g := &groups[i]
				g.Gemm = driver.Gemm{DType: t, OpA: allOps[rng.IntN(3)], OpB: allOps[rng.IntN(3)], M: p.m, N: p.n, K: p.k,
					Alpha: 2, Beta: beta, LDA: 8, LDB: 8, LDC: 8, Batch: -7, A: 1, B: 1, C: 1, StrideA: 1 << 40}
				if t.IsComplex() && i%2 == 1 {
					g.Alpha = 1 - 1i
				}
				start := value
				if beta == 0 && !t.IsInteger() {
					start = nan
				}
				for k := range p.batch {
					m := newMember(g, value, start, p.pad)
					if p.sameA && k > 0 {
						m.a = made[len(made)-1].a
					}
					if p.sameA && round == 1 && g.OpA == g.OpB { // and B is A
						m.b = m.a
					}
					made = append(made, m)
				}
			}
			d := f.device(0)
			s, handle := f.stream(d), f.blas(d)
			place(f, d, s, made, true)
			f.ok(handle.GemmGroups(s, groups))
			check(f, s, made)
		}
	}
}

// smallNumber draws whole numbers, whose sums of products every type holds.
func smallNumber(rng *rand.Rand, t dtype.DType) func() complex128 {
	return func() complex128 {
		v := complex(float64(rng.IntN(5)-2), 0)
		if t.IsComplex() {
			v += complex(0, float64(rng.IntN(5)-2))
		}
		return v
	}
}

// place copies the members' matrices, each once, to device memory, and tells
// their groups where. Members of one size lie at even steps, with gaps at uneven
// ones.
func place(f *fixture, d driver.Device, s driver.Stream, made []*member, gaps bool) {
	f.t.Helper()
	const align = 256
	offsets, bytes := map[*matrices]int64{}, int64(0)
	for i, m := range made {
		if gaps {
			bytes += int64(i*i%5) * align
		}
		for _, x := range []*matrices{m.a, m.b, m.c} {
			if _, ok := offsets[x]; !ok {
				offsets[x] = bytes
				bytes += (int64(len(x.data)) + align - 1) &^ (align - 1)
			}
		}
	}
	p := f.alloc(d, max(bytes, 1))
	for x, offset := range offsets {
		x.at = p + driver.Ptr(offset)
		write(f, s, x.at, x.data...)
	}
	for _, m := range made {
		g := m.g
		g.LDA, g.LDB, g.LDC = m.a.ld, m.b.ld, m.c.ld
		g.As, g.Bs, g.Cs = append(g.As, m.a.at), append(g.Bs, m.b.at), append(g.Cs, m.c.at)
		if g.K == 0 { // not read
			g.As[len(g.As)-1], g.Bs[len(g.Bs)-1] = 0, 0
		}
	}
}

// check compares every C with the model.
func check(f *fixture, s driver.Stream, made []*member) {
	f.t.Helper()
	for i, m := range made {
		multiply(0, m.g.K, m.g.Alpha, m.a, m.b, m.g.Beta, m.c)
		m.c.matches(f, read[byte](f, s, m.c.at, len(m.c.data)), func() string {
			return fmt.Sprintf("product %d of %+v", i, m.g.Gemm)
		})
	}
}

// groupsOfAllTypes has two groups of each type, in two orders.
func groupsOfAllTypes(f *fixture) {
	rng := rand.New(rand.NewPCG(3, 18))
	types := append(dtype.All(), dtype.All()...)
	for round := range 2 {
		var made []*member
		groups := make([]driver.GemmGroup, len(types))
		for i, t := range types {
			g := &groups[i]
			g.Gemm = driver.Gemm{DType: t, Compute: driver.Compute(i % 4), OpB: driver.Trans, M: 2 + int64(i%3), N: 3, K: 4, Alpha: 1, Beta: 1}
			for range 1 + i%2 {
				made = append(made, newMember(g, smallNumber(rng, t), smallNumber(rng, t), 0))
			}
		}
		d := f.device(0)
		s, handle := f.stream(d), f.blas(d)
		place(f, d, s, made, true)
		ordered := slices.Clone(groups)
		if round == 1 { // groups of one type next to each other
			slices.SortStableFunc(ordered, func(x, y driver.GemmGroup) int { return int(x.DType) - int(y.DType) })
		}
		f.ok(handle.GemmGroups(s, ordered))
		check(f, s, made)
	}
}

// scalars are products c += a·b of single float64, in two groups.
type scalars struct {
	f       *fixture
	s       driver.Stream
	n       int
	results driver.Ptr
	groups  []driver.GemmGroup
}

// newScalars makes n of them, c being 0, a 1, 2, 3 … and b 2.
func newScalars(f *fixture, d driver.Device, s driver.Stream, n int) *scalars {
	f.t.Helper()
	values := make([]float64, 2*n+1)
	for i := range n {
		values[i] = float64(i + 1)
	}
	values[n] = 2
	p := f.alloc(d, int64(8*len(values)))
	write(f, s, p, values...)
	x := &scalars{f: f, s: s, n: n, results: p + driver.Ptr(8*(n+1)), groups: make([]driver.GemmGroup, 2)}
	for i := range n {
		g := &x.groups[i*2/n]
		g.Gemm = driver.Gemm{DType: dtype.Float64, M: 1, N: 1, K: 1, Alpha: 1, Beta: 1, LDA: 1, LDB: 1, LDC: 1}
		g.As, g.Bs, g.Cs = append(g.As, p+driver.Ptr(8*i)), append(g.Bs, p+driver.Ptr(8*n)), append(g.Cs, x.results+driver.Ptr(8*i))
	}
	return x
}

// rehearse runs the products once and clears their results, see fixture.rehearse.
func (x *scalars) rehearse(b driver.BLAS) {
	x.f.t.Helper()
	for i := range x.groups { // one group is another operation than several
		x.f.ok(b.GemmGroups(x.s, x.groups[i:i+1]))
	}
	x.f.ok(b.GemmGroups(x.s, x.groups))
	x.f.ok(x.s.Zero(x.results, int64(8*x.n)))
	x.f.sync("first groups", x.s)
}

// holds fails the test unless the products were added so often.
func (x *scalars) holds(times int) {
	x.f.t.Helper()
	for i, got := range read[float64](x.f, x.s, x.results, x.n) {
		if want := float64(2 * (i + 1) * times); got != want {
			x.f.t.Errorf("product %d, %d times, is %v; expected %v", i, times, got, want)
			return
		}
	}
}

func manyProducts(f *fixture) {
	d := f.device(0)
	s, handle := f.stream(d), f.blas(d)
	before := handle.WorkspaceBytes()
	for _, n := range []int{18_000, 8192, 8193} {
		x := newScalars(f, d, s, n)
		f.ok(handle.GemmGroups(s, x.groups))
		f.ok(handle.GemmGroups(s, x.groups[:1]))
		f.ok(handle.GemmGroups(s, x.groups[1:]))
		x.holds(2)
	}
	if after := handle.WorkspaceBytes(); after != before {
		f.t.Errorf("the workspace was %d bytes and is %d after many small products", before, after)
	}
}

func groupsAreCaptured(f *fixture) {
	d := f.device(0)
	s, handle := f.stream(d), f.blas(d)
	x := newScalars(f, d, s, 6)
	x.rehearse(handle)
	release := f.stall(s)
	f.ok(handle.GemmGroups(s, x.groups))
	for i := range x.groups {
		g := &x.groups[i]
		g.Alpha, g.K = 100, 0
		for k := range g.Cs {
			g.As[k], g.Bs[k], g.Cs[k] = g.Cs[k], g.Cs[k], g.As[k]
		}
	}
	x.groups[0] = driver.GemmGroup{}
	release()
	x.holds(1)
}

func groupsInOrder(f *fixture) {
	const rounds = 10
	d := f.device(0)
	s, handle := f.stream(d), f.blas(d)
	x, y := newScalars(f, d, s, 40), newScalars(f, d, s, 3)
	x.rehearse(handle)
	y.rehearse(handle)
	release := f.stall(s)
	f.within("products behind a stall", func() error {
		for range rounds {
			for _, groups := range [][]driver.GemmGroup{x.groups, y.groups, x.groups[1:], x.groups[:1]} {
				if err := handle.GemmGroups(s, groups); err != nil {
					return err
				}
			}
		}
		return nil
	})
	f.pending("the stream", s)
	release()
	x.holds(2 * rounds)
	y.holds(rounds)
}

func groupsOnTwoStreams(f *fixture) {
	d := f.device(0)
	s1, s2, handle := f.stream(d), f.stream(d), f.blas(d)
	x, y := newScalars(f, d, s1, 30), newScalars(f, d, s2, 5)
	x.rehearse(handle)
	y.rehearse(handle)
	release := f.stall(s1)
	f.ok(handle.GemmGroups(s1, x.groups))
	f.within("groups of the same handle on another stream", func() error { return handle.GemmGroups(s2, y.groups) })
	f.pending("the first stream", s1)
	release()
	for range 10 {
		f.ok(handle.GemmGroups(s1, x.groups))
		f.ok(handle.GemmGroups(s2, y.groups))
	}
	x.holds(11)
	y.holds(11)
}

func refusesGroups(f *fixture) {
	d := f.device(0)
	p := f.alloc(d, 3*16*8)
	s, handle := f.stream(d), f.blas(d)
	for what, spoil := range map[string]func(g *driver.GemmGroup){
		"an unknown type":         func(g *driver.GemmGroup) { g.DType = 99 },
		"an unknown op":           func(g *driver.GemmGroup) { g.OpB = 9 },
		"an unknown compute mode": func(g *driver.GemmGroup) { g.Compute = 9 },
		"a negative M":            func(g *driver.GemmGroup) { g.M = -1 },
		"a negative K":            func(g *driver.GemmGroup) { g.K = -1 },
		"LDA below M":             func(g *driver.GemmGroup) { g.LDA = 2 },
		"LDB below K":             func(g *driver.GemmGroup) { g.LDB = 1 },
		"LDC below M":             func(g *driver.GemmGroup) { g.LDC = 2 },
		"fewer As than Cs":        func(g *driver.GemmGroup) { g.As = g.As[:1] },
		"more Bs than Cs":         func(g *driver.GemmGroup) { g.Bs = append(g.Bs, p) },
		"no Cs":                   func(g *driver.GemmGroup) { g.Cs = nil },
		"no address of an A":      func(g *driver.GemmGroup) { g.As[1] = 0 },
		"no address of a B":       func(g *driver.GemmGroup) { g.Bs[1] = 0 },
		"no address of a C":       func(g *driver.GemmGroup) { g.Cs[1] = 0 },
		"no address to scale":     func(g *driver.GemmGroup) { g.K, g.Cs[0] = 0, 0 },
		"a size over int64":       func(g *driver.GemmGroup) { g.M, g.LDA, g.LDC, g.N = 1<<40, 1<<40, 1<<40, 1<<40 },
	} {
		group := func(from driver.Ptr) driver.GemmGroup {
			return driver.GemmGroup{
				Gemm: driver.Gemm{DType: dtype.Float64, M: 3, N: 2, K: 2, Alpha: 1, LDA: 3, LDB: 2, LDC: 3},
				As:   []driver.Ptr{from, from}, Bs: []driver.Ptr{from + 64, from + 64}, Cs: []driver.Ptr{from + 96, from + 144}}
		}
		groups := []driver.GemmGroup{group(p), group(p + 192)}
		spoil(&groups[1])
		err := handle.GemmGroups(s, groups)
		if err == nil {
			f.t.Errorf("%s was taken", what)
			continue
		}
		f.refused(err, "BLAS.GemmGroups", d, weir.ErrArgument)
	}
	x := newScalars(f, d, s, 4)
	f.refused(handle.GemmGroups(foreignStream{}, x.groups), "BLAS.GemmGroups", d, weir.ErrArgument)
	gone := f.stream(d)
	f.ok(gone.Destroy())
	f.refused(handle.GemmGroups(gone, x.groups), "BLAS.GemmGroups", d, weir.ErrClosed)
	x.holds(0)
	if d.Err() != nil {
		f.t.Errorf("refused groups killed the device: %v", d.Err())
	}
	f.ok(handle.Destroy())
	f.refused(handle.GemmGroups(s, x.groups), "BLAS.GemmGroups", d, weir.ErrClosed)
}
