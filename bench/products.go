package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// products are matrix products of float32, of sources and of each other's results,
// that flow is asked for and that a floor computes without Weir.
type products struct {
	sources []source
	steps   []step
}

type source struct {
	rows, columns int
	data          []float32
}

// step is a product of an m×k and a k×n matrix. Operands are numbers: first those of
// the sources, then those of the steps' results.
type step struct{ a, b, m, n, k int }

// window answers matrices of random elements in [-1, 1), of which each is the one
// before moved by an element.
func window() func(rows, columns int) source {
	random := rand.New(rand.NewPCG(64, 7))
	var sequence []float32
	next := -1
	return func(rows, columns int) source {
		next++
		for len(sequence) < next+rows*columns {
			sequence = append(sequence, float32(2*random.Float64()-1))
		}
		return source{rows, columns, sequence[next : next+rows*columns]}
	}
}

// independentProducts are count products of n×n matrices, all of their own: first
// come all left operands, then all right ones.
func independentProducts(n, count int) products {
	var p products
	matrix := window()
	for range 2 * count {
		p.sources = append(p.sources, matrix(n, n))
	}
	for i := range count {
		p.steps = append(p.steps, step{i, count + i, n, n, n})
	}
	return p
}

// chainProducts are x·r, x·r·r and so on, where r is a rotation, so that they
// neither grow nor shrink.
func chainProducts(n, count int) products {
	p := products{sources: []source{window()(n, n), rotation(n, 0)}}
	for i := range count {
		last := 0
		if i > 0 {
			last = len(p.sources) + i - 1
		}
		p.steps = append(p.steps, step{last, 1, n, n, n})
	}
	return p
}

// rotation is the product of two reflections at random planes, others for each i.
func rotation(n, i int) source {
	random := rand.New(rand.NewPCG(uint64(n), uint64(8+i)))
	var planes [2][]float64
	for p := range planes {
		norm := 0.0
		for range n {
			x := random.NormFloat64()
			planes[p] = append(planes[p], x)
			norm += x * x
		}
		for i := range planes[p] {
			planes[p][i] /= math.Sqrt(norm)
		}
	}
	u, v, both := planes[0], planes[1], 0.0
	for i := range n {
		both += u[i] * v[i]
	}
	data := make([]float32, n*n)
	for i := range n {
		for j := range n {
			x := -2*u[i]*u[j] - 2*v[i]*v[j] + 4*both*u[i]*v[j]
			if i == j {
				x++
			}
			data[i*n+j] = float32(x)
		}
	}
	return source{n, n, data}
}

// mixedProducts are count products whose extents are random, from least to most.
func mixedProducts(least, most, count int) products {
	random := rand.New(rand.NewPCG(uint64(most), 9))
	extent := func() int { return least + random.IntN(most-least+1) }
	matrix := window()
	var p products
	for i := range count {
		s := step{2 * i, 2*i + 1, extent(), extent(), extent()}
		p.sources = append(p.sources, matrix(s.m, s.k), matrix(s.k, s.n))
		p.steps = append(p.steps, s)
	}
	return p
}

// lastUses answers, for each step, which results no later step takes, and which
// results no step takes at all.
func (p products) lastUses() (spent [][]int, finals []int) {
	spent = make([][]int, len(p.steps))
	used := make([]bool, len(p.steps))
	for i := len(p.steps) - 1; i >= 0; i-- {
		for _, operand := range [2]int{p.steps[i].a, p.steps[i].b} {
			if r := operand - len(p.sources); r >= 0 && !used[r] {
				used[r] = true
				spent[i] = append(spent[i], r)
			}
		}
	}
	for i, u := range used {
		if !u {
			finals = append(finals, i)
		}
	}
	return spent, finals
}

// reference computes products without Weir.
type reference struct {
	run     func() (time.Duration, error) // all of them, until they are done
	result  func(i int) ([]float32, error)
	figures func() ([]Figure, error) // what else is known; nil is nothing
	close   func() error
}

// flowing asks flow for products. Results that a later product takes are freed once
// it was asked for, the others after each round.
type flowing struct {
	products
	ctx     context.Context
	arrays  []*tensor.Array // the sources
	values  []*flow.Value   // the sources, then the results that were asked for
	spent   [][]int
	finals  []int
	ref     *reference
	sent    samples // the host's time to ask
	cpu     samples // the process's time on all processors, until all is done
	further []Figure
}

// newFlowing puts the sources on ctx's device. It takes the reference, also when it
// fails.
func newFlowing(ctx context.Context, p products, ref *reference) (*flowing, error) {
	x := &flowing{products: p, ctx: ctx, ref: ref}
	x.spent, x.finals = p.lastUses()
	for _, s := range p.sources {
		a, err := tensor.From(ctx, s.data, s.rows, s.columns)
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		x.arrays = append(x.arrays, a)
		x.values = append(x.values, async.Of(a))
	}
	return x, nil
}

// trial is that of a case whose round is all products.
func (x *flowing) trial() *Trial {
	return &Trial{
		Value: func(int) (time.Duration, error) { return x.round(nil) }, Floor: func(int) (time.Duration, error) { return x.ref.run() },
		Fixed: len(x.steps), Check: x.check, Figures: x.figures, Close: x.close, Peers: x.peers(),
	}
}

// peers is a round for other libraries, compared with what the reference computed.
func (x *flowing) peers() *PeerWork {
	w := &PeerWork{DType: dtype.Float32, Operations: len(x.steps), Results: x.compared()}
	for _, s := range x.sources {
		w.Inputs = append(w.Inputs, peerInput(s.data, s.rows, s.columns))
	}
	for _, s := range x.steps {
		w.Products = append(w.Products, [2]int{s.a, s.b})
	}
	w.Check = peerCheck(func(k int) ([]float32, int, error) {
		i := w.Results[k]
		want, err := x.ref.result(i)
		return want, x.terms(i), err
	})
	return w
}

// ask asks for product i.
func (x *flowing) ask(i int) {
	s := x.steps[i]
	x.values = append(x.values, flow.MatMul(x.ctx, x.values[s.a], x.values[s.b]))
	for _, r := range x.spent[i] {
		flow.Free(x.ctx, x.values[len(x.sources)+r])
	}
}

// round asks for all products and waits for those that are left; then look sees
// them. It answers the time until they were done.
func (x *flowing) round(look func(i int, a *tensor.Array) error) (time.Duration, error) {
	start, before := time.Now(), cpuTime()
	for i := range x.steps {
		x.ask(i)
	}
	asked := time.Since(start)
	return x.finish(start, before, asked, look)
}

// finish waits for what a round asked for, and frees it.
func (x *flowing) finish(start time.Time, before, asked time.Duration, look func(i int, a *tensor.Array) error) (done time.Duration, err error) {
	results := x.values[len(x.sources):]
	defer func() {
		for _, i := range x.finals {
			flow.Free(x.ctx, results[i])
		}
		clear(results)
		x.values = x.values[:len(x.sources)]
		err = errors.Join(err, x.flush())
	}()
	for _, i := range x.finals {
		a, err := results[i].Get(x.ctx)
		if err != nil {
			return 0, err
		}
		if err := settle(a); err != nil {
			return 0, err
		}
	}
	done = time.Since(start)
	x.sent.add(asked, len(x.steps))
	x.cpu.add(cpuTime()-before, len(x.steps))
	for _, i := range x.finals {
		if look == nil {
			break
		}
		a, err := results[i].Get(x.ctx)
		if err != nil {
			return 0, err
		}
		if err := look(i, a); err != nil {
			return 0, err
		}
	}
	return done, nil
}

// flush waits until all that was asked for is launched: what was to be freed is.
func (x *flowing) flush() error {
	ctx, free := tensor.Scope(context.WithoutCancel(x.ctx))
	flow.T(ctx, x.values[0])
	return free()
}

// mostCompared is about how many results a check looks at.
const mostCompared = 128

// compared are the final results that a check looks at, in their order.
func (x *flowing) compared() (some []int) {
	every := max(1, len(x.finals)/mostCompared)
	for k, i := range x.finals {
		if k%every == 0 || k == len(x.finals)-1 {
			some = append(some, i)
		}
	}
	return some
}

// check compares results with the reference's.
func (x *flowing) check() error {
	if _, err := x.ref.run(); err != nil {
		return err
	}
	some := x.compared()
	_, err := x.round(func(i int, a *tensor.Array) error {
		if !slices.Contains(some, i) {
			return nil
		}
		want, err := x.ref.result(i)
		if err != nil {
			return err
		}
		return compare(a, want, x.terms(i))
	})
	x.sent, x.cpu = samples{}, samples{} // the first use loads libraries
	if err == nil && x.ref.figures != nil {
		x.further, err = x.ref.figures()
	}
	return err
}

// terms is how many products of elements are summed on the way to result i.
func (x *flowing) terms(i int) int {
	s := x.steps[i]
	n := s.k
	for _, operand := range [2]int{s.a, s.b} {
		if r := operand - len(x.sources); r >= 0 {
			n += x.terms(r)
		}
	}
	return n
}

// processCPU is the figure of the process's time for an operation, on all processors.
const processCPU = "process CPU"

func (x *flowing) figures(Result) []Figure {
	return append([]Figure{x.sent.figure("submit"), x.cpu.figure(processCPU)}, x.further...)
}

func (x *flowing) close() error {
	var errs []error
	for _, a := range x.arrays {
		errs = append(errs, a.Free())
	}
	return errors.Join(append(errs, x.ref.close())...)
}

// hostReference calls the BLAS that Weir itself calls for each product, on plain
// memory.
func hostReference(p products) (*reference, error) {
	l := hostblas.Default()
	var scratch hostblas.Scratch
	type block struct {
		at    uintptr
		bytes int64
	}
	var blocks []block
	ref := &reference{close: func() error {
		var errs []error
		for _, b := range blocks {
			errs = append(errs, hostmem.Free(b.at, b.bytes))
		}
		scratch.Free()
		return errors.Join(errs...)
	}}
	alloc := func(elements int) (uintptr, error) {
		b := block{bytes: int64(elements) * dtype.Float32.Size()}
		var err error
		if b.at, err = hostmem.Alloc(b.bytes); err == nil {
			blocks = append(blocks, b)
		}
		return b.at, err
	}
	var at []uintptr
	for _, s := range p.sources {
		m, err := alloc(len(s.data))
		if err != nil {
			return nil, errors.Join(err, ref.close())
		}
		copy(hostmem.Slice[float32](m, int64(len(s.data))), s.data)
		at = append(at, m)
	}
	var calls []driver.Gemm
	for _, s := range p.steps {
		c, err := alloc(s.m * s.n)
		if err != nil {
			return nil, errors.Join(err, ref.close())
		}
		at = append(at, c)
		calls = append(calls, driver.Gemm{DType: dtype.Float32, M: int64(s.n), N: int64(s.m), K: int64(s.k), Alpha: 1, Batch: 1, A: driver.Ptr(at[s.b]),
			B: driver.Ptr(at[s.a]), C: driver.Ptr(c), LDA: int64(s.n), LDB: int64(s.k), LDC: int64(s.n)}) // transposed, as BLAS is column-major
	}
	ref.run = func() (time.Duration, error) {
		start := time.Now()
		for i := range calls {
			l.Gemm(&calls[i], &scratch)
		}
		return time.Since(start), nil
	}
	ref.result = func(i int) ([]float32, error) {
		s := p.steps[i]
		return hostmem.Slice[float32](at[len(p.sources)+i], int64(s.m*s.n)), nil
	}
	return ref, nil
}
