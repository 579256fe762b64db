package bench

import (
	"context"
	goruntime "runtime"
	"time"
)

// effort is how thoroughly a case is measured: rounds go on until there are
// most of them, or least of them and the budget is spent.
type effort struct {
	least, most int
	round       time.Duration // the least that a round lasts, where the number of operations is free
	budget      time.Duration
}

// effortOf takes short rounds, and many: on a machine that others use too, most
// of them run between two interruptions, and the median is of those.
func effortOf(quick bool) effort {
	if quick {
		return effort{least: 3, most: 11, round: time.Millisecond / 2, budget: 20 * time.Millisecond}
	}
	return effort{least: 15, most: 401, round: time.Millisecond, budget: 2 * time.Second}
}

// time runs value and floor in turns, and calls tick after each pair with what
// part of the case is done. The samples are in the unit.
func (t *Trial) time(ctx context.Context, e effort, u Unit, tick func(part float64)) (values, floors []float64, err error) {
	nv, err := t.operations(t.Value, e.round)
	if err != nil {
		return nil, nil, err
	}
	nf, err := t.operations(t.Floor, e.round)
	if err != nil {
		return nil, nil, err
	}
	goruntime.GC() // what came before is not paid for here
	spent := time.Duration(0)
	for k := 0; k < e.most && (k < e.least || spent < e.budget); k++ {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		v, err := t.Value(nv)
		if err != nil {
			return nil, nil, err
		}
		f, err := t.Floor(nf)
		if err != nil {
			return nil, nil, err
		}
		values, floors = append(values, u.of(v, nv)), append(floors, u.of(f, nf))
		spent += v + f
		tick(max(float64(k+1)/float64(e.most), min(float64(spent)/float64(e.budget), float64(k+1)/float64(e.least))))
	}
	return values, floors, nil
}

// operations is the number of operations in a round of the loop.
func (t *Trial) operations(loop Loop, least time.Duration) (int, error) {
	if t.Fixed > 0 {
		return t.Fixed, nil
	}
	return calibrate(loop, least)
}

// maxOperations bounds a round of something that takes no time.
const maxOperations = 1 << 30

// calibrate finds how many operations last at least so long. It also warms up
// caches and pools.
func calibrate(loop Loop, least time.Duration) (int, error) {
	for n := 1; ; {
		d, err := loop(n)
		if err != nil || d >= least || n >= maxOperations {
			return n, err
		}
		// Aim a fifth beyond what this attempt foretells, at most a hundredfold.
		next := float64(n) * 1.2 * float64(least) / float64(max(d, 1))
		n = int(min(max(next, float64(n)+1), float64(n)*100, maxOperations))
	}
}

// allocations is how many heap allocations an operation makes: the whole part of
// the average, as testing.AllocsPerRun has it, so that what the rest of the process
// allocates meanwhile does not count; the least of three attempts.
func allocations(mallocs func(n int) (int64, error)) (*int64, error) {
	const operations = 200
	if _, err := mallocs(operations); err != nil { // fills pools
		return nil, err
	}
	var least *int64
	for range 3 {
		n, err := mallocs(operations)
		if err != nil {
			return nil, err
		}
		if n /= operations; least == nil || n < *least {
			least = &n
		}
	}
	return least, nil
}

// mallocs counts the heap allocations of n operations of the value.
func (t *Trial) mallocs(n int) (int64, error) {
	if t.Mallocs != nil {
		return t.Mallocs(n)
	}
	return t.Value.mallocs(n)
}

// mallocs counts the heap allocations of n operations.
func (l Loop) mallocs(n int) (int64, error) {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	_, err := l(n)
	goruntime.ReadMemStats(&after)
	return int64(after.Mallocs - before.Mallocs), err
}
