package einsum

import (
	"math"
	"math/rand/v2"
)

// How much a finder does. Work is counted in visits of an index, a few
// nanoseconds each.
const (
	minWork   = 1 << 20
	maxWork   = 1 << 26 // about a quarter of a second
	workShare = 8       // between them: flops of the first tree for each visit
	lastWork  = 1 << 23 // at least, for the last refining
	layWork   = 1 << 9  // what it counts to lay out a step, to see the memory it needs

	restarts  = 64 // greedy runs with noise
	survivors = 16 // trees that go on, after the greedy runs and before the last refining
	treeCuts  = 2  // cuts of a tree that are swept from
)

// finder searches trees over many terms. It makes greedy trees with noise,
// refines the best of them roughly, sweeps from the cuts of each, and refines
// the best of all thoroughly.
type finder struct {
	net     *network
	ceiling float64
	try     func(plan)
	holders [][]int32
	random  *rand.Rand
	refiner refiner

	best   *tree
	finals []*tree // the best refined ones, best first
}

// newFinder prepares a search; with a ceiling it calls try for each tree.
func newFinder(net *network, ceiling float64, try func(plan)) *finder {
	return &finder{net: net, ceiling: ceiling, try: try, holders: net.holders(),
		random:  rand.New(rand.NewPCG(1, 2)), // the same in every search
		refiner: refiner{opt: newOptimizer(net), ceiling: ceiling, width: roughly}}
}

func (f *finder) run(first *tree) {
	f.consider(first)
	pool := []*tree{first}
	enough := f.net.work * 3 / 4
	for k := 0; k < restarts && f.net.work > enough; k++ {
		g := newGreedy(f.net)
		g.random = f.random
		g.alpha = 1.5 * f.random.Float64()
		g.temperature = math.Pow(10, -2*f.random.Float64())
		t := newTree(f.net, g.run(), "random greedy")
		f.consider(t)
		pool = f.insert(pool, t)
	}
	for _, t := range pool {
		f.refine(t)
		f.sweep(t)
	}
	for last := (*tree)(nil); last != f.best && !f.net.spent(); {
		last = f.best
		f.sweep(last)
	}
	f.net.work = max(f.net.work, lastWork)
	f.refiner.width = thoroughly
	for _, t := range f.finals {
		if !f.net.spent() {
			f.refiner.refine(t)
			f.consider(t)
		}
	}
}

// sweep sweeps from the cuts of a tree.
func (f *finder) sweep(t *tree) {
	for _, k := range t.cuts(treeCuts) {
		if f.net.spent() {
			return
		}
		swept := newTree(f.net, sweep(f.net, t.levels(k, f.holders)), "sweep")
		if f.promising(swept.total()) {
			f.refine(swept)
		}
	}
}

// refine makes a tree a candidate for the last refining.
func (f *finder) refine(t *tree) {
	if f.net.spent() {
		return
	}
	f.refiner.refine(t)
	t.how += ", refined"
	f.consider(t)
	f.finals = f.insert(f.finals, t)
}

// promising says whether refining could make a tree of this value the best.
func (f *finder) promising(v value) bool {
	const factor = 8
	best := f.best.total()
	return max(v.peak, f.ceiling) <= factor*max(best.peak, f.ceiling) && (f.ceiling < noCeiling || v.flops <= factor*best.flops)
}

func (f *finder) consider(t *tree) {
	if f.best == nil || t.total().better(f.best.total(), f.ceiling) {
		f.best = t
	}
	if f.ceiling < noCeiling {
		f.try(plan{t.pairs(), t.how})
	}
}

// insert keeps the best trees, best first.
func (f *finder) insert(trees []*tree, t *tree) []*tree {
	trees = append(trees, t)
	for k := len(trees) - 1; k > 0 && trees[k].total().better(trees[k-1].total(), f.ceiling); k-- {
		trees[k], trees[k-1] = trees[k-1], trees[k]
	}
	return trees[:min(len(trees), survivors)]
}
