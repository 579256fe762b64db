package einsum

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

// drawn is a random expression with operands that lie in any way.
type drawn struct {
	spec     string
	problem  *Problem
	operands []array
}

// draw makes a random expression over few indices and small extents: repeated
// indices, ellipses, axes that broadcast, empty axes, and operands that are
// permuted, reversed, spread out or repeated by a stride of zero.
func draw(t *rapid.T, most int) drawn {
	const letters = "abcde"
	extents := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 2, 2, 2, 3}), len(letters), len(letters)).Draw(t, "extents")
	batch := rapid.SliceOfN(rapid.Int64Range(1, 3), 0, 2).Draw(t, "ellipsis")
	var d drawn
	var terms []string
	var shapes, strides [][]int64
	seen, dotted := "", false
	for range rapid.IntRange(1, most).Draw(t, "operands") {
		var term []byte
		var shape []int64
		for range rapid.IntRange(0, 3).Draw(t, "rank") {
			i := rapid.IntRange(0, len(letters)-1).Draw(t, "index")
			n := extents[i]
			if !strings.ContainsRune(string(term), rune(letters[i])) && rapid.IntRange(0, 9).Draw(t, "broadcast") == 0 {
				n = 1
			}
			if at := strings.IndexByte(string(term), letters[i]); at >= 0 {
				n = shape[at]
			}
			term, shape = append(term, letters[i]), append(shape, n)
		}
		seen += string(term)
		text := string(term)
		if rapid.IntRange(0, 3).Draw(t, "dots") == 0 {
			at := rapid.IntRange(0, len(term)).Draw(t, "at")
			axes := batch[rapid.IntRange(0, len(batch)).Draw(t, "from"):]
			text = text[:at] + "..." + text[at:]
			shape = slices.Insert(shape, at, axes...)
			dotted = true
		}
		terms, shapes = append(terms, text), append(shapes, shape)
		a := drawArray(t, shape)
		d.operands, strides = append(d.operands, a), append(strides, a.strides)
	}
	d.spec = strings.Join(terms, ",")
	if rapid.Bool().Draw(t, "explicit") {
		var output []string
		for _, r := range letters {
			if strings.ContainsRune(seen, r) && rapid.Bool().Draw(t, "kept") {
				output = append(output, string(r))
			}
		}
		if dotted {
			output = append(output, "...")
		}
		if len(output) > 1 {
			output = rapid.Permutation(output).Draw(t, "output")
		}
		d.spec += "->" + strings.Join(output, "")
	}
	var err error
	if d.problem, err = bind(d.spec, shapes, strides); err != nil {
		t.Fatalf("%q of %v: %v", d.spec, shapes, err)
	}
	return d
}

// drawArray makes an operand of small integers.
func drawArray(t *rapid.T, shape []int64) array {
	a := array{shape: shape}
	step := int64(1)
	if rapid.Bool().Draw(t, "strided") {
		axes := make([]int, len(shape))
		for k := range axes {
			axes[k] = k
		}
		if len(axes) > 1 {
			axes = rapid.Permutation(axes).Draw(t, "axes")
		}
		a.strides = make([]int64, len(shape))
		for _, axis := range axes {
			step *= rapid.SampledFrom([]int64{1, 1, 1, 2}).Draw(t, "gap")
			a.strides[axis] = step
			switch rapid.IntRange(0, 7).Draw(t, "stride") {
			case 0:
				a.strides[axis] = 0
			case 1:
				a.strides[axis] = -step
				a.offset += max(0, shape[axis]-1) * step
			}
			step *= max(1, shape[axis])
		}
	} else {
		step = max(1, product(shape))
	}
	a.data = make([]float64, step)
	seed := rapid.IntRange(0, 6).Draw(t, "data")
	for k := range a.data {
		a.data[k] = float64((7*k+seed)%5 - 2)
	}
	return a
}

func TestPathsComputeTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 5)
		path, err := d.problem.Path(Options{DType: dtype.Float64})
		if err != nil {
			t.Fatalf("%q: %v", d.spec, err)
		}
		if err := same(run(t, path, d.operands), sum(d.problem, d.operands)); err != nil {
			t.Fatalf("%q: %v\n%v", d.spec, err, path)
		}
	})
}

func TestAnyGivenOrderComputesTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 5)
		order := drawOrder(t, len(d.operands))
		path, err := d.problem.Path(Options{DType: dtype.Float64, Order: order})
		if err != nil {
			t.Fatalf("%q: %v", d.spec, err)
		}
		products := 0
		for _, s := range path.Steps {
			if s.Right >= 0 {
				products++
			}
		}
		if products != len(order) {
			t.Fatalf("%q: %d products for %d pairs", d.spec, products, len(order))
		}
		if err := same(run(t, path, d.operands), sum(d.problem, d.operands)); err != nil {
			t.Fatalf("%q in order %v: %v\n%v", d.spec, order, err, path)
		}
	})
}

func drawOrder(t *rapid.T, operands int) [][2]int {
	order := [][2]int{}
	var left []int
	for k := range operands {
		left = append(left, k)
	}
	take := func() int {
		k := rapid.IntRange(0, len(left)-1).Draw(t, "term")
		term := left[k]
		left = slices.Delete(left, k, k+1)
		return term
	}
	for len(left) > 1 {
		order = append(order, [2]int{take(), take()})
		left = append(left, operands+len(order)-1)
	}
	return order
}

func TestLargerNetworksComputeTheDefinition(t *testing.T) {
	// A ring of 16 matrices with a tail: beyond the exact search.
	inputs := make([][]int, 17)
	shapes := make([][]int64, 17)
	for k := range 16 {
		inputs[k], shapes[k] = []int{k, (k + 1) % 16}, []int64{2, 2}
	}
	inputs[16], shapes[16] = []int{3, 16}, []int64{2, 3}
	e, err := FromLabels(inputs, []int{16, 7})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Bind(shapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	operands := make([]array, 17)
	for k, shape := range shapes {
		data := make([]float64, product(shape))
		for j := range data {
			data[j] = float64((j+k)%3 - 1)
		}
		operands[k] = contiguous(shape, data)
	}
	path, err := p.Path(Options{DType: dtype.Float64})
	if err != nil {
		t.Fatal(err)
	}
	if err := same(run(t, path, operands), sum(p, operands)); err != nil {
		t.Fatal(err)
	}
}

func mustBind(t failer, spec string, shapes ...[]int64) *Problem {
	t.Helper()
	p, err := bind(spec, shapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustPath(t failer, p *Problem, opts Options) *Path {
	t.Helper()
	path, err := p.Path(opts)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMatrixProductIsOneStepWithoutCopies(t *testing.T) {
	for _, spec := range []string{"ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "ji,kj->ik", "ij,jk->ki", "bij,bjk->bik", "bij,jbk->ibk", "isj,jtk->istk"} {
		terms := strings.Split(strings.Split(spec, "->")[0], ",")
		extents := map[rune]int64{'b': 5, 'i': 2, 'j': 3, 'k': 4, 's': 6, 't': 7}
		var shapes [][]int64
		for _, term := range terms {
			var shape []int64
			for _, r := range term {
				shape = append(shape, extents[r])
			}
			shapes = append(shapes, shape)
		}
		path := mustPath(t, mustBind(t, spec, shapes...), Options{})
		if len(path.Steps) != 1 || path.Steps[0].Kind != Product || path.Steps[0].PackBytes != 0 {
			t.Errorf("%s: got %+v; want one product without packed copies", spec, path.Steps)
		}
	}
}

func TestOneSharedOrderOfGroupsIsChosenToSaveCopies(t *testing.T) {
	// The contracted pair lies as jk in both, the result wants its rows
	// reversed: only the smaller side should be packed, or the result.
	p := mustBind(t, "ajk,kjb->ab", []int64{2, 3, 4}, []int64{4, 3, 50})
	s := mustPath(t, p, Options{}).Steps[0]
	if !s.PackLeft || s.PackRight || s.PackBytes != 2*3*4*4 {
		t.Errorf("got %+v; want only the smaller operand packed", s)
	}
}

func TestIndicesOfOneOperandAreSummedBeforeTheProduct(t *testing.T) {
	path := mustPath(t, mustBind(t, "ij,jkl->ik", []int64{2, 3}, []int64{3, 4, 5}), Options{})
	if len(path.Steps) != 2 || path.Steps[0].Kind != Reduce || path.Steps[0].Left != 1 || path.Steps[1].Right != 2 {
		t.Fatalf("got\n%v", path)
	}
	if got := path.Steps[0].FLOPs + path.Steps[1].FLOPs; got != 60+2*2*3*4 {
		t.Errorf("got %v flops", got)
	}
}

func TestBroadcastAndUnitIndicesTakePartInNothing(t *testing.T) {
	path := mustPath(t, mustBind(t, "aib,bjc,cja->ij", []int64{1, 6, 1}, []int64{1, 7, 1}, []int64{1, 7, 1}), Options{})
	for _, s := range path.Steps {
		if s.Kind != Multiply {
			t.Errorf("bonds of extent 1 were contracted:\n%v", path)
		}
	}
	// j has extent 1 in the first operand, so the second sums it on its own.
	path = mustPath(t, mustBind(t, "ij,jk->ik", []int64{2, 1}, []int64{3, 4}), Options{})
	if path.Steps[0].Kind != Reduce || path.Steps[1].Kind != Multiply {
		t.Errorf("got\n%v", path)
	}
}

func TestDisconnectedPartsAreMultipliedLast(t *testing.T) {
	path := mustPath(t, mustBind(t, "ab,cd,bc,ef,fg->adeg",
		[]int64{4, 4}, []int64{4, 4}, []int64{4, 4}, []int64{4, 4}, []int64{4, 4}), Options{})
	for k, s := range path.Steps {
		if (s.Kind == Multiply) != (k == len(path.Steps)-1) {
			t.Errorf("step %d of\n%v", k+1, path)
		}
	}
}

func TestSidesAreExchangedWhereThatSavesTheNextProductACopy(t *testing.T) {
	// As xab the first result would have a between x and b for the second.
	path := mustPath(t, mustBind(t, "xap,xpb,ad->xbd", []int64{4, 3, 50}, []int64{4, 50, 5}, []int64{3, 20}), Options{})
	if path.Subscripts(0) != "xpb,xap->xba" || path.Steps[1].PackBytes != 0 {
		t.Errorf("got\n%v", path)
	}
}

func TestOfEquallyCheapOrdersTheOneWithTheLowerPeakIsTaken(t *testing.T) {
	// Either order takes 2*4*6*4 + 2*4*4*3 = 2*6*4*3 + 2*4*6*3 flops.
	for _, spec := range []string{"ab,bc,cd->ad", "cd,bc,ab->ad"} {
		shape := map[byte]int64{'a': 4, 'b': 6, 'c': 4, 'd': 3}
		var shapes [][]int64
		for _, term := range strings.Split(spec[:8], ",") {
			shapes = append(shapes, []int64{shape[term[0]], shape[term[1]]})
		}
		path := mustPath(t, mustBind(t, spec, shapes...), Options{})
		if path.FLOPs != 288 || path.Largest != 16 {
			t.Errorf("%s: got\n%v", spec, path)
		}
	}
}

func TestComplexElementsCostFourTimesAsMuchOnTheSamePath(t *testing.T) {
	p := mustBind(t, "ij,jk,kl->il", []int64{2, 3}, []int64{3, 4}, []int64{4, 5})
	r, c := mustPath(t, p, Options{DType: dtype.Float64}), mustPath(t, p, Options{DType: dtype.Complex128})
	if c.FLOPs != 4*r.FLOPs || c.NaiveFLOPs != 4*r.NaiveFLOPs || c.PeakBytes != 2*r.PeakBytes {
		t.Errorf("real: %v %v %v; complex: %v %v %v", r.FLOPs, r.NaiveFLOPs, r.PeakBytes, c.FLOPs, c.NaiveFLOPs, c.PeakBytes)
	}
}

func TestEqualInputGivesAnEqualPath(t *testing.T) {
	for range 3 {
		a, b := mustPath(t, torus(t, 5, 3), Options{}), mustPath(t, torus(t, 5, 3), Options{})
		if !reflect.DeepEqual(a, b) {
			t.Fatal("two searches of one network differ")
		}
	}
}

func TestOneProblemIsPlannedFromManyGoroutines(t *testing.T) {
	p := torus(t, 4, 1)
	want := mustPath(t, p, Options{}).FLOPs
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if path, err := p.Path(Options{}); err != nil || path.FLOPs != want {
				t.Errorf("got %v, %v; want %v flops", path, err, want)
			}
		})
	}
	group.Wait()
}

func TestFirstUseOfAMatrixProductAllocatesLittle(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { firstUse(t) }); n > 40 {
		t.Errorf("parsing, binding and planning a matrix product makes %v allocations; 40 are enough", n)
	}
}

func TestPathRefusesOrdersThatDontUseEveryTermOnce(t *testing.T) {
	p := mustBind(t, "ij,jk,kl->il", []int64{2, 3}, []int64{3, 4}, []int64{4, 5})
	for _, c := range []struct {
		order [][2]int
		says  string
	}{
		{[][2]int{}, "got 0 pairs; expected 2 for 3 operands"},
		{[][2]int{{0, 1}}, "got 1 pairs"},
		{[][2]int{{0, 3}, {1, 2}}, "pair 1 names term 3; expected a term from 0 to 2"},
		{[][2]int{{0, -1}, {1, 2}}, "pair 1 names term -1"},
		{[][2]int{{0, 1}, {1, 3}}, "pair 2 names term 1, which is used up"},
		{[][2]int{{0, 0}, {1, 3}}, "pair 1 names term 0, which is used up"},
		{[][2]int{{0, 1}, {4, 3}}, "pair 2 names term 4"},
	} {
		_, err := p.Path(Options{Order: c.order})
		refused(t, err, c.says)
	}
}

func TestPathRefusesOptionsThatAreNone(t *testing.T) {
	p := mustBind(t, "i->", []int64{2})
	_, err := p.Path(Options{MemoryLimit: -1})
	refused(t, err, "memory limit: got -1 bytes")
	_, err = p.Path(Options{DType: 200})
	refused(t, err, "dtype: got dtype(200)")
}

func TestPathRefusesResultsOfTooManyBytes(t *testing.T) {
	// Each operand has 2^62 elements, and so has any product of two.
	n := int64(1) << 31
	p := mustBind(t, "ab,bc,ca->", []int64{n, n}, []int64{n, n}, []int64{n, n})
	_, err := p.Path(Options{})
	var e *weir.Error
	if !errors.Is(err, weir.ErrOutOfMemory) || !errors.As(err, &e) || !strings.Contains(e.Message, "2^63-1 bytes or more") {
		t.Errorf("got %v", err)
	}
	if _, err := p.Path(Options{MemoryLimit: 1 << 62}); !errors.Is(err, weir.ErrOutOfMemory) {
		t.Errorf("under a limit: got %v", err)
	}
}

// refused checks for an argument error of this package that says so.
func refused(t testing.TB, err error, says string) {
	t.Helper()
	var e *weir.Error
	if !errors.Is(err, weir.ErrArgument) || !errors.As(err, &e) || e.Op != "einsum" {
		t.Errorf("got %v; want an argument error that says %q", err, says)
	} else if !strings.Contains(err.Error(), says) {
		t.Errorf("got %q; want it to say %q", err, says)
	}
}

// torus is a closed network of l by l tensors with bonds of extent 2. A seed
// that is not zero shuffles the operands.
func torus(t failer, l int, seed uint64) *Problem {
	t.Helper()
	place := shuffled(l*l, seed)
	inputs := make([][]int, l*l)
	shapes := make([][]int64, l*l)
	bonds := 0
	bond := func(a, b int) {
		for _, k := range []int{place[a], place[b]} {
			inputs[k], shapes[k] = append(inputs[k], bonds), append(shapes[k], 2)
		}
		bonds++
	}
	for r := range l {
		for c := range l {
			bond(r*l+c, r*l+(c+1)%l)
			bond(r*l+c, (r+1)%l*l+c)
		}
	}
	e, err := FromLabels(inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Bind(shapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func log2(n int64) float64 { return math.Log2(float64(n)) }
