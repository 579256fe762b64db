package einsum

// maxMoves bounds the exhaustive search; all orders of six operands take fewer.
const maxMoves = 1 << 17

// plan is an order and how it was found.
type plan struct {
	order []pair
	how   string
}

// search finds a path for three operands or more: first the cheapest; if that
// exceeds the limit, for few operands the best of all orders; and else trees
// whose peak, as far as trees know it, stays below the limit and lower and
// lower shares of it, since trees know nothing of packed copies.
func (b *builder) search() (*Path, error) {
	net := b.p.network()
	limit := b.opts.limit()
	var best *Path
	try := func(p plan) {
		net.work -= layWork * len(p.order)
		if path := b.arrange(net, p); best == nil || path.better(best, limit) {
			best = path
		}
	}
	few := len(net.terms) <= maxOptimal
	if few || b.opts.MemoryLimit == 0 {
		find(net, noCeiling, try)
	}
	if best != nil && best.PeakBytes <= limit {
		return best, nil
	}
	if len(net.terms) <= maxExhaustive {
		x := exhaustive{b: b, moves: maxMoves}
		if order, complete := x.search(); complete {
			best = b.arrange(net, plan{order, "optimal under the memory limit (all orders)"})
			best.exact = true
			return b.within(best)
		}
	}
	for _, share := range []float64{1, 0.5, 0} {
		find(net, share*float64(limit/b.size), try)
		if best.PeakBytes <= limit {
			break
		}
	}
	return b.within(best)
}

// better says whether p is preferred to q when all peaks up to limit are alike.
func (p *Path) better(q *Path, limit int64) bool {
	if a, b := max(p.PeakBytes, limit), max(q.PeakBytes, limit); a != b {
		return a < b
	}
	return p.FLOPs < q.FLOPs
}

// arrange builds the path of a plan. It exchanges sides to save packed copies,
// unless the limit is kept only without.
func (b *builder) arrange(net *network, p plan) *Path {
	path := b.build(p.order, newTree(net, p.order, p.how), p.how)
	if path.PeakBytes > b.opts.limit() && path.PeakBytes < tooMany {
		if plain := b.build(p.order, nil, p.how); plain.PeakBytes < path.PeakBytes {
			return plain
		}
	}
	return path
}

// find searches the tree that is best for a ceiling on its peak and tries it.
// With a ceiling it tries every tree that it makes.
func find(net *network, ceiling float64, try func(plan)) {
	net.work = maxWork
	first := newTree(net, newGreedy(net).run(), "greedy")
	if len(net.terms) <= maxOptimal {
		try(optimal(net, first, ceiling))
		if ceiling == noCeiling {
			return
		}
	}
	net.work = int(min(maxWork, max(minWork, first.total().flops/workShare)))
	f := newFinder(net, ceiling, try)
	f.run(first)
	if ceiling == noCeiling {
		try(plan{f.best.pairs(), f.best.how})
	}
}

// optimal finds the best of all trees.
func optimal(net *network, known *tree, ceiling float64) plan {
	leaves := make([]leaf, len(net.terms))
	for k := range leaves {
		n := &known.nodes[k]
		leaves[k] = leaf{n.set, n.live, n.total}
	}
	how := "optimal (dynamic programming)"
	if ceiling < noCeiling {
		how = "dynamic programming under the memory limit"
	}
	opt := newOptimizer(net)
	if _, ok := opt.run(leaves, net.out, known.total().bound(ceiling), ceiling); !ok {
		return plan{known.pairs(), known.how} // rounding put every tree above the bound
	}
	return plan{opt.pairs(len(leaves)), how}
}
