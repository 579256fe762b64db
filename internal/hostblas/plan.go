package hostblas

import (
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// plan is how a product uses cores. A core is worth waking for a grain, 50 µs of
// its work; waking a helper costs 5 to 25 µs. The rule:
//
//   - Less than two grains: the calling goroutine, one core.
//   - A library with threads of its own, and few members of 16 grains or more:
//     one member after another with the library's threads, while it holds the
//     whole budget, so that nothing else runs. OpenBLAS's threads share packed
//     panels, which beats dividing the product outside by up to 25 % from
//     512×512 on, and not below; and they spin while they wait for each other,
//     which costs short products most when the machine is busy.
//   - Else members, or tiles of C where members are too few, are handed to
//     goroutines with one library thread each: one core is waited for, and
//     helpers take what is free beyond it. A batch of many members goes this
//     way too, since members apart scale better than threads within one.
//
// Groups of one call are planned one by one by this rule. Those that are not
// computed alone are then handed out together: their tiles stay as they are, and
// a core comes for each grain of all of them.
//
// The tiles are the same however many helpers come, so results do not depend
// on the load.
type plan struct {
	threads int     // threads of the library's own; 1 unless the product runs alone
	workers int     // goroutines at most, the caller included
	grains  float64 // of work

	tileM, tileN int64 // the size of a tile
	gridM, gridN int64 // tiles of one member
	tiles        int64 // of all members
	chunk        int64 // tiles that a worker takes at a time
}

// grainNanos is a grain. Two of them are a 144×144 product of float64 with
// OpenBLAS, or one of 84×84 without.
const grainNanos = 50e3

// threadedGrains is the size of a member that the library's own threads do:
// 290×290 of float64.
const threadedGrains = 16

// rates are multiply-adds per nanosecond and core, as the package reaches on
// an ordinary server core; they only decide what is worth dividing.
var rates = [...]struct{ library, own float64 }{
	dtype.Float32:    {60, 12},
	dtype.Float64:    {30, 6},
	dtype.Complex64:  {15, 1.1},
	dtype.Complex128: {7.5, 1.1},
	dtype.Float16:    {30, 8},
	dtype.BFloat16:   {30, 8},
	dtype.Int32:      {3.5, 3.5},
	dtype.Int64:      {3.5, 3.5},
}

// plan applies the rule to g.
func (l *Library) plan(g *driver.Gemm) plan {
	p := plan{threads: 1, workers: 1, tileM: g.M, tileN: g.N, gridM: 1, gridN: 1, tiles: g.Batch, chunk: g.Batch}
	if l.cores.total == 1 || l.exclusive(g.DType) {
		return p
	}
	rate := rates[g.DType].own
	if l.ext != nil {
		rate = rates[g.DType].library
	}
	member := float64(g.M) * float64(g.N) * float64(g.K) / (rate * l.grain) // in grains
	p.grains = member * float64(g.Batch)
	useful := int64(min(float64(l.cores.total), p.grains))
	if useful < 2 {
		return p
	}
	fewMembers := g.Batch < 4*useful && g.Batch%useful != 0
	if l.ext != nil && inBLAS(g.DType) && fewMembers && member >= threadedGrains {
		if p.threads = min(int(useful), l.ext.threads); p.threads > 1 {
			return p
		}
	}
	p.divide(partsOf(g.Batch, useful))
	p.tiles = g.Batch * p.gridM * p.gridN
	p.workers = int(min(useful, p.tiles))
	p.chunk = max(1, min(64, p.tiles/(8*useful)))
	return p
}

// together is how parts use cores that are computed at once: as the only one
// says, or a core for each grain of all of them.
func (l *Library) together(parts []part) plan {
	if len(parts) == 1 {
		return parts[0].plan
	}
	tiles := parts[len(parts)-1].end
	p := plan{threads: 1, workers: 1, tiles: tiles, chunk: tiles}
	largest := 0.0 // tile
	for i := range parts {
		q := &parts[i].plan
		p.grains += q.grains
		largest = max(largest, q.grains/float64(q.tiles))
	}
	useful := int64(min(float64(l.cores.total), p.grains))
	if useful < 2 {
		return p
	}
	p.workers = int(min(useful, tiles))
	// The largest tiles may all lie in one chunk: it is at most about an eighth of
	// a grain of them.
	p.chunk = max(1, min(64, tiles/(8*useful), int64(1/(8*largest))))
	return p
}

// partsOf is into how many parts a member is divided so that the cores are
// kept evenly busy.
func partsOf(batch, cores int64) int64 {
	for parts := int64(1); parts < cores; parts++ {
		if all := batch * parts; all%cores == 0 || all >= 4*cores {
			return parts
		}
	}
	return cores
}

// divide cuts C into parts tiles as square as possible, since the operands that
// a tile reads grow with its circumference. Tiles start at multiples of 16,
// which is what vector kernels like.
func (p *plan) divide(parts int64) {
	m, n := p.tileM, p.tileN
	best := m + n + 1
	for rows := int64(1); rows <= parts; rows++ {
		if parts%rows != 0 {
			continue
		}
		tm, tn := tileSize(m, rows), tileSize(n, parts/rows)
		if tm+tn < best {
			best, p.tileM, p.tileN = tm+tn, tm, tn
		}
	}
	p.gridM, p.gridN = ceilDiv(m, p.tileM), ceilDiv(n, p.tileN)
}

func tileSize(extent, parts int64) int64 { return min(extent, ceilDiv(ceilDiv(extent, parts), 16)*16) }

func ceilDiv(a, b int64) int64 { return (a-1)/b + 1 }
