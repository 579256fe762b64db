package flow

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// launcher launches a level of a log: the products that BLAS takes together as one
// batch, then the others one by one. A batch comes first because it is short: behind
// a large operation its results would come as late as that one's.
//
// A batch never changes what an operation means. What cannot go with others, for
// whatever reason, is launched by itself and says so itself; when a batch is refused
// before anything was submitted (no memory, an array that was freed), each of its
// members is launched by itself, so that a failure is of the one that it is of.
type launcher struct {
	lowering runtime.Lowering
	largest  int64 // multiplications of a product that goes with others
	counts   *counts
	memory   *buffer.Memory
	ahead    int64 // bytes that a window may take ahead of the order of the calls
	crowded  int64 // what is in use when this one has
}

// aheadOfMemory is the part of a device's memory that a window may take beyond what
// it would in the order of the calls, in which what is freed is freed sooner.
const aheadOfMemory = 16

// askedAgain is how many products are gathered between two looks at the memory.
const askedAgain = 16

// mostShared bounds the products that share a launch. On a GPU it is what takes about
// as long as a launch, 8 us: beyond that a stream of its own serves a product better.
// On the host device it is what takes as long as a hand-over to a stream.
const (
	mostShared     = 1 << 28
	mostSharedHost = 1 << 18
)

// defaultTogether is how many products one batch has if nothing else is said. Of the
// host device each batch runs on one processor.
const (
	defaultTogether     = 1024
	defaultTogetherHost = 64
)

func newLauncher(r *runtime.Resources, c *counts) (*launcher, error) {
	m, err := buffer.Of(r)
	if err != nil {
		return nil, err
	}
	l := &launcher{lowering: r.Options().Lowering, largest: mostShared, counts: c, memory: m}
	l.ahead = cmp.Or(r.Options().MemoryLimit, r.Device().Capabilities().MemoryBytes, math.MaxInt64/2) / aheadOfMemory
	together := defaultTogether
	if r.Device().IsHost() {
		l.largest, together = mostSharedHost, defaultTogetherHost
	}
	l.lowering.MostTogether = cmp.Or(l.lowering.MostTogether, together)
	return l, nil
}

// Window begins to count what is taken.
func (l *launcher) Window() { l.crowded = l.memory.Used() + l.ahead }

// wait has what is left of a window launched in the order of the calls if it took
// too much memory ahead of that.
func (l *launcher) wait(x *async.Launch[*tensor.Array]) bool {
	return l.memory.Used() > l.crowded && x.Later()
}

// LaunchAll launches a level.
func (l *launcher) LaunchAll(ctx context.Context, level []async.Launch[*tensor.Array]) {
	if several(level) {
		l.products(ctx, level)
	}
	for i := range level {
		if x := &level[i]; !x.Done() {
			if l.wait(x) {
				return
			}
			l.alone(ctx, x)
		}
	}
}

// alone launches an operation by itself, unless memory is short: then its turn comes
// again.
func (l *launcher) alone(ctx context.Context, x *async.Launch[*tensor.Array]) {
	gone := true // unless Alone returns: the operation ends this goroutine
	defer func() {
		if gone || x.Done() {
			l.counts.launched(x, false, gone || x.Failed())
		}
	}()
	x.Alone(ctx)
	gone = false
}

// several says whether there are at least two products.
func several(level []async.Launch[*tensor.Array]) bool {
	n := 0
	for i := range level {
		if _, ok := level[i].Op.(gatherer); ok {
			if n++; n == 2 {
				return true
			}
		}
	}
	return false
}

// Together says whether operations share launches.
func (l *launcher) Together() bool { return !l.lowering.Separate && !l.lowering.Reproducible }

// Scarce says whether err is that there is no memory.
func (l *launcher) Scarce(err error) bool { return errors.Is(err, weir.ErrOutOfMemory) }

// products launches those of a level that can go together, in batches.
func (l *launcher) products(ctx context.Context, level []async.Launch[*tensor.Array]) {
	b := batch{launcher: l, products: tensor.NewProducts(l.largest)}
	defer func() { b.products.Close() }()
	for i := range level {
		x := &level[i]
		op, ok := x.Op.(gatherer)
		if !ok {
			continue
		}
		if out, ok := b.gather(ctx, op, x); ok { // else it says why by itself
			b.members = append(b.members, member{x, out})
		}
		if len(b.members) == l.lowering.MostTogether {
			b.submit(ctx)
			x.Tell() // the next batch may wait
		}
		if i%askedAgain == askedAgain-1 && l.wait(x) {
			break
		}
	}
	b.submit(ctx)
}

// batch is products that are gathered.
type batch struct {
	*launcher
	products tensor.Products
	members  []member
}

type member struct {
	*async.Launch[*tensor.Array]
	out *tensor.Array
}

// gather is op.Gather. Its options and its context are anybody's: they are to panic, as
// the context is to have ended, when it is launched by itself.
func (b *batch) gather(ctx context.Context, op gatherer, x *async.Launch[*tensor.Array]) (out *tensor.Array, ok bool) {
	defer func() {
		if recover() != nil {
			b.products.Truncate(len(b.members))
			ok = false
		}
	}()
	under, err := x.Context(ctx)
	if err != nil {
		return nil, false
	}
	return op.Gather(under, b.products, x.In)
}

// submit submits what was gathered, and begins anew. One product alone is no batch.
func (b *batch) submit(ctx context.Context) {
	if len(b.members) == 0 {
		return
	}
	submitted, err := false, error(nil)
	if together := len(b.members) > 1; together {
		if submitted, err = b.products.Submit(ctx); submitted {
			b.counts.batches.Add(1)
		}
		for i, m := range b.members {
			switch {
			case err == nil:
				m.Made(m.out)
				b.counts.launched(m.Launch, true, false)
			case submitted && !b.products.Again(i):
				m.Fail(err)
				b.counts.launched(m.Launch, true, true)
			}
		}
	}
	for i, m := range b.members {
		if !m.Done() { // it is launched by itself, and makes another
			_ = b.products.Discard(i)
		}
	}
	b.products.Close()
	b.products = tensor.NewProducts(b.largest)
	clear(b.members)
	b.members = b.members[:0]
}
