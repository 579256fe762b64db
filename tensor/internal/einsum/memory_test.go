package einsum

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

// outcome is what one order of products costs.
type outcome struct {
	peak  int64
	flops float64
}

// everyOrder lays out every sequence of pairs, each with either side first,
// and calls visit with what it costs. It shares only the builder with the
// search, which TestPathsComputeTheDefinition holds to real memory.
func everyOrder(p *Problem, opts Options, visit func(outcome)) {
	b := &builder{lowering{p, opts.DType.Size(), 1}, opts}
	var order []pair
	var extend func(terms []int)
	extend = func(terms []int) {
		if len(terms) == 1 {
			path := b.build(order, nil, "")
			visit(outcome{path.PeakBytes, path.FLOPs})
			return
		}
		for x := range terms {
			for y := range terms {
				if x == y {
					continue
				}
				var rest []int
				for k, t := range terms {
					if k != x && k != y {
						rest = append(rest, t)
					}
				}
				order = append(order, pair{terms[x], terms[y]})
				extend(append(rest, len(p.inputs)+len(order)-1))
				order = order[:len(order)-1]
			}
		}
	}
	terms := make([]int, len(p.inputs))
	for k := range terms {
		terms[k] = k
	}
	extend(terms)
}

// checkLimits compares Path with everyOrder at, below and between the peaks
// that matter.
func checkLimits(t failer, p *Problem, name string) {
	opts := Options{DType: dtype.Float64}
	all := map[outcome]bool{}
	least := int64(math.MaxInt64)
	cheapest := math.Inf(1)
	everyOrder(p, opts, func(o outcome) {
		all[o] = true
		least, cheapest = min(least, o.peak), min(cheapest, o.flops)
	})
	if path := mustPath(t, p, opts); path.FLOPs != cheapest {
		t.Fatalf("%s: got %v flops; the best order has %v\n%v", name, path.FLOPs, cheapest, path)
	}
	limits := []int64{least, least - 1, least/2 + 1}
	for o := range all {
		limits = append(limits, o.peak)
	}
	for _, limit := range limits {
		if limit <= 0 {
			continue
		}
		opts.MemoryLimit = limit
		path, err := p.Path(opts)
		if limit < least {
			says := fmt.Sprintf("got %s; expected at least %s", bytesExactly(limit), bytesExactly(least))
			if !errors.Is(err, weir.ErrOutOfMemory) || !strings.Contains(err.Error(), says) {
				t.Fatalf("%s: under %d bytes got %v; want an error that says %q", name, limit, err, says)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v, but %d bytes do", name, err, least)
		}
		best := math.Inf(1)
		for o := range all {
			if o.peak <= limit {
				best = min(best, o.flops)
			}
		}
		if path.PeakBytes > limit || path.FLOPs != best {
			t.Fatalf("%s: under %d bytes got %v flops and a peak of %d; the best order within it has %v flops\n%v",
				name, limit, path.FLOPs, path.PeakBytes, best, path)
		}
	}
}

func TestLimitIsKeptWheneverAnyOrderOfFiveOperandsKeepsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 5)
		checkLimits(t, d.problem, d.spec)
	})
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		p := randomNetwork(t, random, 5, 2)
		checkLimits(t, p, p.expr.String())
	}
}

func TestLimitIsKeptWheneverAnyOrderOfSixOperandsKeepsIt(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2 {
		p := randomNetwork(t, random, 6, 2)
		checkLimits(t, p, p.expr.String())
	}
}

// randomNetwork joins every tensor to that many others.
func randomNetwork(t failer, random *rand.Rand, operands, degree int) *Problem {
	inputs, shapes := make([][]int, operands), make([][]int64, operands)
	label := 0
	for k := range inputs {
		for range degree {
			other := (k + 1 + random.IntN(operands-1)) % operands
			extent := 2 + random.Int64N(4)
			for _, end := range []int{k, other} {
				inputs[end], shapes[end] = append(inputs[end], label), append(shapes[end], extent)
			}
			label++
		}
	}
	e, err := FromLabels(inputs, []int{random.IntN(label)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Bind(shapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSearchOfAllOrdersGivesUpAfterItsMoves(t *testing.T) {
	p := randomNetwork(t, rand.New(rand.NewPCG(1, 2)), 6, 2)
	x := exhaustive{b: &builder{lowering{p, 4, 1}, Options{MemoryLimit: 1}}, moves: 40}
	if order, complete := x.search(); complete || order != nil {
		t.Errorf("got %v, %v after 40 moves", order, complete)
	}
}

// Beyond the exact search nothing is promised, but it must not get lost: on
// these networks it comes close to the lowest peak there is.
func TestSearchOfTreesComesCloseToTheLowestPeak(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	good := 0
	const networks = 16
	for range networks {
		p := randomNetwork(t, random, 7, 2)
		b := &builder{lowering{p, 4, 1}, Options{MemoryLimit: 1}}
		x := exhaustive{b: b, moves: math.MaxInt}
		order, _ := x.search()
		lowest := b.build(order, nil, "").PeakBytes
		net := p.network()
		found := int64(math.MaxInt64)
		find(net, 0, func(p plan) { found = min(found, b.arrange(net, p).PeakBytes) })
		if found < lowest {
			t.Errorf("%v: the search of all orders finds %d, a tree needs %d", p.expr, lowest, found)
		}
		if float64(found) <= 1.2*float64(lowest) {
			good++
		}
	}
	if good < networks*3/4 {
		t.Errorf("only %d of %d come within a fifth of the lowest peak", good, networks)
	}
}

func TestTighterLimitsTradeFlopsForMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	traded := 0
	for _, operands := range []int{8, 10, 12, 16, 20} {
		p := randomNetwork(t, random, operands, 2)
		free := mustPath(t, p, Options{})
		path := free
		for {
			next, err := p.Path(Options{MemoryLimit: path.PeakBytes - 1})
			if err != nil {
				if !errors.Is(err, weir.ErrOutOfMemory) {
					t.Fatal(err)
				}
				break
			}
			if next.PeakBytes >= path.PeakBytes {
				t.Fatalf("%d operands: limit %d, peak %d", operands, path.PeakBytes-1, next.PeakBytes)
			}
			path = next
		}
		if path.PeakBytes < free.PeakBytes && path.FLOPs > free.FLOPs {
			traded++
		}
	}
	if traded < 2 {
		t.Errorf("only %d of 5 networks have a path with less memory and more flops than the cheapest", traded)
	}
}

func TestToriFitIntoLessMemoryThanTheirCheapestPath(t *testing.T) {
	p := torus(t, 8, 1)
	free := mustPath(t, p, Options{})
	if path := mustPath(t, p, Options{MemoryLimit: free.PeakBytes / 2}); path.PeakBytes > free.PeakBytes/2 {
		t.Errorf("limit %d, peak %d", free.PeakBytes/2, path.PeakBytes)
	}
}

func TestGivenOrderIsRefusedBeyondTheLimit(t *testing.T) {
	p := mustBind(t, "ab,bc,cd->ad", []int64{100, 2}, []int64{2, 100}, []int64{100, 2})
	order := [][2]int{{0, 1}, {3, 2}}
	_, err := p.Path(Options{Order: order, MemoryLimit: 1000})
	want := "got 1000 bytes; expected at least 40800 bytes (39.84 KiB), for the given order, for step 2 of 2, ac,cd->ad"
	if !errors.Is(err, weir.ErrOutOfMemory) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want it to say %q", err, want)
	}
	if path := mustPath(t, p, Options{MemoryLimit: 1000}); path.PeakBytes > 1000 {
		t.Errorf("another order keeps the limit, but got\n%v", path)
	}
}
