package einsum

import (
	"math"
	"math/rand/v2"
	"slices"
)

// maxHolders bounds the terms of one index that are tried as partners, so that
// an index shared by thousands of terms doesn't make millions of pairs.
const maxHolders = 16

// greedy multiplies the pair of connected terms that scores least, again and
// again, and then what is left, which shares no index, smallest first. The
// score is the growth in elements, size(ab) - alpha*(size(a)+size(b)) (D. G. A.
// Smith, J. Gray, "opt_einsum", J. Open Source Softw. 3(26), 753, 2018). With a
// temperature it gets noise, so that pairs are drawn with Boltzmann weights
// (Gray and Kourtis, 2021). When the work is spent it stops scoring, and the
// rest counts as left.
type greedy struct {
	frontier
	alpha       float64
	temperature float64
	random      *rand.Rand // for a temperature

	sets    [][]int32 // of all terms made so far
	sizes   []float64
	alive   []bool
	holders [][]int32 // terms that have the index, used up ones included
	queue   heap[candidate]
}

type candidate struct {
	score float64
	a, b  int32
}

func (x candidate) less(y candidate) bool {
	if x.score != y.score {
		return x.score < y.score
	}
	if x.b != y.b {
		return x.b < y.b
	}
	return x.a < y.a
}

// newGreedy prepares a run without noise.
func newGreedy(net *network) *greedy {
	return &greedy{frontier: frontier{net, net.uses()}, alpha: 1,
		holders: make([][]int32, len(net.extents)), queue: heap[candidate]{less: candidate.less}}
}

func (g *greedy) run() []pair {
	pairs := make([]pair, 0, len(g.net.terms)-1)
	for _, set := range g.net.terms {
		g.append(set)
	}
	for len(g.queue.items) > 0 {
		if c := g.queue.pop(); g.alive[c.a] && g.alive[c.b] {
			pairs = append(pairs, g.replace(int(c.a), int(c.b)))
		}
	}
	rest := heap[int]{less: func(x, y int) bool {
		if g.sizes[x] != g.sizes[y] {
			return g.sizes[x] < g.sizes[y]
		}
		return x < y
	}}
	for k, alive := range g.alive {
		if alive {
			rest.push(k)
		}
	}
	for len(rest.items) > 1 {
		a, b := rest.pop(), rest.pop()
		pairs = append(pairs, g.replace(a, b))
		rest.push(len(g.sets) - 1)
	}
	return pairs
}

// replace uses up two terms and appends their product.
func (g *greedy) replace(a, b int) pair {
	g.alive[a], g.alive[b] = false, false
	g.append(g.multiply(g.sets[a], g.sets[b]))
	return pair{a, b}
}

// append adds a term, and queues its products with the terms that share an
// index with it.
func (g *greedy) append(set []int32) {
	k := int32(len(g.sets))
	g.sets, g.sizes, g.alive = append(g.sets, set), append(g.sizes, g.net.elements(set)), append(g.alive, true)
	if g.net.spent() {
		return
	}
	var partners []int32
	for _, i := range set {
		known := slices.DeleteFunc(g.holders[i], func(h int32) bool { return !g.alive[h] })
		partners = append(partners, known[max(0, len(known)-maxHolders):]...)
		g.holders[i] = append(known, k)
	}
	slices.Sort(partners)
	for _, p := range slices.Compact(partners) {
		g.queue.push(candidate{g.score(p, k), p, k})
	}
}

func (g *greedy) score(a, b int32) float64 {
	growth := g.size(g.sets[a], g.sets[b]) - g.alpha*(g.sizes[a]+g.sizes[b])
	if g.temperature == 0 {
		return growth
	}
	// The logarithm, with the sign kept, makes the noise relative. Gumbel noise
	// makes the least score a draw with Boltzmann weights.
	return math.Copysign(math.Log1p(math.Abs(growth)), growth) + g.temperature*math.Log(-math.Log(g.random.Float64()))
}
