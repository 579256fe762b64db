package hostblas

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// grouped are problems, one for each product, and the groups that ask for them.
type grouped struct {
	problems []*problem
	groups   []driver.GemmGroup
}

// add makes a group of so many products of g.
func (x *grouped) add(t testing.TB, g driver.Gemm, count int, pad int64, random *rand.Rand) {
	group := driver.GemmGroup{Gemm: g}
	for range count {
		g.Batch = 1
		p := newProblem(t, g, pad, 0, false, false, random)
		x.problems = append(x.problems, p)
		group.Gemm = p.g
		group.As, group.Bs, group.Cs = append(group.As, p.g.A), append(group.Bs, p.g.B), append(group.Cs, p.g.C)
	}
	// What a group does not read.
	group.A, group.B, group.C, group.Batch, group.StrideA, group.StrideB, group.StrideC = 0, 0, 0, 77, -1, -1, -1
	x.groups = append(x.groups, group)
}

func (x *grouped) check(t testing.TB) {
	t.Helper()
	for _, p := range x.problems {
		p.check(t)
	}
}

func TestGroupsAgreeWithANaiveModel(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		l.grain = 50
		var s Scratch
		defer s.Free()
		rapid.Check(t, func(r *rapid.T) {
			ops := rapid.SampledFrom([]driver.Op{driver.NoTrans, driver.Trans, driver.ConjTrans})
			extents := rapid.SampledFrom([]int64{0, 1, 2, 3, 5, 8, 9, 17, 33})
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
			var clean cleanups
			defer clean.run()
			var x grouped
			for range rapid.IntRange(0, 5).Draw(r, "groups") {
				dt := rapid.SampledFrom(dtype.All()).Draw(r, "dtype")
				x.add(cleaner{t, &clean}, driver.Gemm{
					DType: dt, OpA: ops.Draw(r, "opA"), OpB: ops.Draw(r, "opB"),
					M: extents.Draw(r, "m"), N: extents.Draw(r, "n"), K: extents.Draw(r, "k"),
					Alpha: scalar(r, dt, "alpha"), Beta: scalar(r, dt, "beta"),
				}, rapid.IntRange(0, 4).Draw(r, "count"), rapid.Int64Range(0, 2).Draw(r, "pad"), random)
			}
			l.GemmGroups(x.groups, &s)
			x.check(t)
		})
	})
}

// mixed has products that a library's own threads compute, that are divided, and
// that are too small for a core each.
func mixed(t testing.TB, dt dtype.DType, random *rand.Rand) *grouped {
	x := &grouped{}
	for _, e := range []struct {
		m, n, k int64
		count   int
	}{{3, 4, 5, 9}, {70, 50, 60, 1}, {6, 2, 1, 3}, {20, 20, 20, 4}, {5, 5, 0, 2}} {
		x.add(t, driver.Gemm{DType: dt, OpB: driver.Trans, M: e.m, N: e.n, K: e.k, Alpha: -1, Beta: 2}, e.count, 1, random)
	}
	return x
}

func TestGroupsOfAllSizesAreSharedAmongCores(t *testing.T) {
	for _, cores := range []int{1, 2, 5} {
		withLibraries(t, cores, func(t *testing.T, l *Library) {
			l.grain = 50
			var s Scratch
			defer s.Free()
			for _, dt := range dtype.All() {
				x := mixed(t, dt, rand.New(rand.NewPCG(uint64(dt), uint64(cores))))
				l.GemmGroups(x.groups, &s)
				x.check(t)
				threaded := l.ext != nil && l.ext.threads > 1 && inBLAS(dt) // may have the large ones alone
				if cores > 1 && s.plan.workers == 1 && !threaded && !l.exclusive(dt) {
					t.Errorf("%v: the groups are computed by one worker", dt)
				}
			}
		})
	}
}

func TestResultsOfGroupsDoNotDependOnTheLoad(t *testing.T) {
	withLibraries(t, 3, func(t *testing.T, l *Library) {
		l.grain = 50
		if l.ext != nil {
			divided := *l.ext // its own threads would wait for all cores
			divided.threads, divided.exclusive = 1, false
			l.ext = &divided
		}
		var s Scratch
		defer s.Free()
		for _, dt := range dtype.All() {
			x := mixed(t, dt, rand.New(rand.NewPCG(9, uint64(dt))))
			l.GemmGroups(x.groups, &s)
			var idle [][]byte
			for _, p := range x.problems {
				idle = append(idle, slices.Clone(p.c.bytes()))
				copy(p.c.bytes(), p.original.bytes())
			}
			l.cores.acquire(2, newWaiter())
			l.GemmGroups(x.groups, &s)
			l.cores.release(2)
			for i, p := range x.problems {
				if !bytes.Equal(idle[i], p.c.bytes()) {
					t.Errorf("%v: product %d with one core free differs from that with three", dt, i)
				}
			}
		}
	})
}

func TestGroupsAreTriedOnAFreeCoreOnly(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		if l.exclusive(dtype.Float64) {
			t.Skip("this OpenBLAS is built for one thread: its products always have all cores")
		}
		var s Scratch
		defer s.Free()
		random := rand.New(rand.NewPCG(12, 12))
		x := mixed(t, dtype.Float64, random)
		l.cores.acquire(2, newWaiter())
		if l.TryGemmGroups(x.groups, &s) {
			t.Error("groups were computed with no core free")
		}
		l.cores.release(2)
		if !l.TryGemmGroups(x.groups, &s) {
			t.Error("small groups were not computed with all cores free")
		}
		x.check(t)
		if !l.TryGemmGroups(nil, &s) {
			t.Error("no groups were not computed")
		}
		x = &grouped{}
		x.add(t, square(900, dtype.Float64, 1), 1, 0, random)
		if l.TryGemmGroups(x.groups, &s) {
			t.Error("a product for all cores was computed on one")
		}
		if l.cores.free != 2 {
			t.Errorf("%d cores are free at the end; expected 2", l.cores.free)
		}
	})
}

func TestGroupsArePlannedTogether(t *testing.T) {
	l := &Library{ext: &external{threads: 8}, cores: newCores(8), grain: grainNanos}
	parts := func(all ...driver.Gemm) []part {
		var parts []part
		end := int64(0)
		for _, g := range all {
			p := part{g: g, plan: l.plan(&g)}
			end += p.plan.tiles
			p.end = end
			parts = append(parts, p)
		}
		return parts
	}
	for _, c := range []struct {
		name    string
		parts   []part
		workers int
		tiles   int64
		chunk   int64
	}{
		{"one group is a batch", parts(square(16, dtype.Float32, 100000)), 8, 100000, 64},
		{"little work takes one core", parts(square(8, dtype.Float64, 10), square(9, dtype.Float64, 10)), 1, 20, 20},
		{"groups that are small one by one share cores", parts(square(100, dtype.Float64, 1), square(101, dtype.Float64, 1), square(102, dtype.Float64, 1), square(103, dtype.Float64, 1)), 2, 4, 1},
		{"large tiles are taken one by one", parts(square(2, dtype.Float64, 100000), square(200, dtype.Float64, 64)), 8, 100064, 1},
		{"small ones many at a time", parts(square(10, dtype.Float64, 100000), square(20, dtype.Float64, 100000)), 8, 200000, 23},
	} {
		p := l.together(c.parts)
		if p.threads != 1 || p.workers != c.workers || p.tiles != c.tiles || p.chunk != c.chunk {
			t.Errorf("%s: threads %d, workers %d, tiles %d, chunk %d; expected 1, %d, %d, %d", c.name, p.threads, p.workers, p.tiles, p.chunk, c.workers, c.tiles, c.chunk)
		}
	}
}
