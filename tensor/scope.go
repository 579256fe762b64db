package tensor

import (
	"context"
	"sync"
	"sync/atomic"
)

// scope remembers what was made under a context. It is known to arrays by its
// number only, so that they do not keep it alive.
type scope struct {
	id     uint64
	parent *scope
	ctx    context.Context // that it was made under

	mu     sync.Mutex // guards what follows
	arrays []*Array
	sweep  int       // how many arrays make it worth to drop those that were freed or kept
	before []Flusher // what free calls first
	known  map[Flusher]struct{}
}

// Flusher is what makes arrays for a scope after it was asked for them.
type Flusher interface {
	// Flush waits, under ctx, until what was asked for so far has been submitted,
	// as far as that waits for no other Flusher. It answers a number that grows with
	// what it submits because another one did: then both are called again.
	Flush(ctx context.Context) uint64
}

// BeforeFree has f flushed before the scope of ctx frees its arrays, and answers
// whether there is a scope. Calling it again with the same f does nothing.
func BeforeFree(ctx context.Context, f Flusher) bool {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.known[f]; !known {
		if s.known == nil {
			s.known = map[Flusher]struct{}{}
		}
		s.known[f] = struct{}{}
		s.before = append(s.before, f)
	}
	return true
}

type scopeKey struct{}

var scopeIDs atomic.Uint64

// Scope answers a context under which constructors and operations remember the
// arrays that they make, and a function that frees those which Keep did not
// take out. Freeing waits for nothing, but for operations of tensor/flow that were
// asked for under the context to be launched; calling it again does nothing. Arrays
// made later under the context are freed at once by the next call.
func Scope(ctx context.Context) (context.Context, func() error) {
	parent, _ := ctx.Value(scopeKey{}).(*scope)
	s := &scope{id: scopeIDs.Add(1), parent: parent, ctx: ctx}
	return context.WithValue(ctx, scopeKey{}, s), s.free
}

// Keep takes arrays out of ctx's scope and into the one around it, if there is
// one, so that they outlive the scope. Of a view it keeps the array whose
// memory it shares. It answers its first array, for return statements.
func Keep(ctx context.Context, a *Array, more ...*Array) *Array {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	if s == nil {
		return a
	}
	for _, k := range append([]*Array{a}, more...) {
		if k == nil {
			continue
		}
		if k.root != nil {
			k = k.root
		}
		if !k.scope.CompareAndSwap(s.id, 0) {
			continue
		}
		if s.parent != nil {
			s.parent.add(k)
		}
	}
	return a
}

// minSweep is how many arrays a scope gathers before it looks for dead ones.
const minSweep = 64

// register puts a fresh array into ctx's scope.
func register(ctx context.Context, a *Array) {
	if s, _ := ctx.Value(scopeKey{}).(*scope); s != nil {
		s.add(a)
	}
}

func (s *scope) add(a *Array) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.scope.Store(s.id)
	if len(s.arrays) >= s.sweep {
		live := s.arrays[:0]
		for _, b := range s.arrays {
			if b.scope.Load() == s.id && b.own.Live() {
				live = append(live, b)
			}
		}
		clear(s.arrays[len(live):])
		s.arrays = live
		s.sweep = max(2*len(live), minSweep)
	}
	s.arrays = append(s.arrays, a)
}

func (s *scope) free() error {
	s.mu.Lock()
	before := s.before
	s.before, s.known = nil, nil
	s.mu.Unlock()
	flush := func() (n uint64) {
		for _, f := range before {
			n += f.Flush(context.WithoutCancel(s.ctx))
		}
		return n
	}
	for n := flush(); len(before) > 1; { // what one submitted, another may have waited for
		last := n
		if n = flush(); n == last {
			break
		}
	}
	s.mu.Lock()
	arrays := s.arrays
	s.arrays = nil
	s.mu.Unlock()
	var errs []error
	for _, a := range arrays {
		if a.scope.CompareAndSwap(s.id, 0) {
			errs = append(errs, a.Free())
		}
	}
	return join(errs...)
}

// unscoped is ctx without its scope, for temporaries that are freed where they
// are made.
func unscoped(ctx context.Context) context.Context {
	if ctx.Value(scopeKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, scopeKey{}, (*scope)(nil))
}
