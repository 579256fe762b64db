// Package rows computes on the rows of row-major matrices in the processor's memory:
// what RAFT does on a GPU, with the same meaning. Elements are float32 or float64;
// matrices lie without gaps at the addresses that are given.
//
// It checks nothing, allocates what one row needs, and runs on the calling goroutine.
package rows

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/hostmem"
)

// Reduction is what a row is reduced to.
type Reduction uint8

const (
	Sum  Reduction = iota
	Mean           // sum over the number of elements
	Norm           // root of the sum of squares, which may overflow or vanish
	Min
	Max
)

// Reduce writes to out what each of rows rows of n elements at a is reduced to. Sums
// are of float64, rounded once. Where a row has a NaN, so is its result.
func Reduce(t dtype.DType, r Reduction, rows, n int64, a, out uintptr) {
	if t == dtype.Float32 {
		reduce(r, n, hostmem.Slice[float32](a, rows*n), hostmem.Slice[float32](out, rows))
	} else {
		reduce(r, n, hostmem.Slice[float64](a, rows*n), hostmem.Slice[float64](out, rows))
	}
}

func reduce[T float32 | float64](r Reduction, n int64, a, out []T) {
	for i := range out {
		row := a[int64(i)*n:][:n]
		switch r {
		case Min:
			out[i] = extreme(row, func(a, b T) bool { return a < b }, math.Inf(1))
			continue
		case Max:
			out[i] = extreme(row, func(a, b T) bool { return a > b }, math.Inf(-1))
			continue
		}
		sum := 0.0
		for _, x := range row {
			if r == Norm {
				sum += float64(x) * float64(x)
			} else {
				sum += float64(x)
			}
		}
		switch r {
		case Mean:
			sum /= float64(n)
		case Norm:
			sum = math.Sqrt(sum)
		}
		out[i] = T(sum)
	}
}

// extreme is the element before which none comes, none itself where there is none, and
// NaN where there is one.
func extreme[T float32 | float64](row []T, before func(a, b T) bool, none float64) T {
	best := T(none)
	for _, x := range row {
		if x != x {
			return x
		}
		if before(x, best) {
			best = x
		}
	}
	return best
}

// Select writes the k smallest or largest elements of each of rows rows of n elements
// at a to values, in their order, and where they are in the row to indices, which are
// int64. They are ordered as their bits are: NaN lies beyond infinity of its sign. Of
// equal ones the first are taken.
func Select(t dtype.DType, smallest bool, rows, n, k int64, a, values, indices uintptr) {
	to := hostmem.Slice[int64](indices, rows*k)
	if t == dtype.Float32 {
		choose(smallest, n, k, hostmem.Slice[float32](a, rows*n), hostmem.Slice[float32](values, rows*k), to, func(x float32) uint64 {
			b := math.Float32bits(x)
			return uint64(ordered(b, int32(b) < 0))
		})
	} else {
		choose(smallest, n, k, hostmem.Slice[float64](a, rows*n), hostmem.Slice[float64](values, rows*k), to, func(x float64) uint64 {
			b := math.Float64bits(x)
			return ordered(b, int64(b) < 0)
		})
	}
}

// ordered makes numbers, of which the sign is given, of bits that compare as they do.
func ordered[U uint32 | uint64](bits U, negative bool) U {
	if negative {
		return ^bits
	}
	return bits | ^(^U(0) >> 1)
}

// candidate is an element that may be among the first k.
type candidate struct {
	key uint64
	at  int64
}

func compare(a, b candidate) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) }

func choose[T float32 | float64](smallest bool, n, k int64, a, values []T, indices []int64, key func(T) uint64) {
	heap := make([]candidate, 0, k) // the last of the first k on top
	for ; len(values) > 0; a, values, indices = a[n:], values[k:], indices[k:] {
		heap = heap[:0]
		for i, x := range a[:n] {
			c := candidate{key(x), int64(i)}
			if !smallest {
				c.key = ^c.key
			}
			if int64(len(heap)) < k {
				heap = append(heap, c)
				if int64(len(heap)) == k {
					for j := k/2 - 1; j >= 0; j-- {
						sink(heap, j)
					}
				}
			} else if c.key < heap[0].key { // at an equal key it comes later
				heap[0] = c
				sink(heap, 0)
			}
		}
		slices.SortFunc(heap, compare)
		for j, c := range heap {
			values[j], indices[j] = a[c.at], c.at
		}
	}
}

// sink moves a candidate down a heap to its place.
func sink(heap []candidate, i int64) {
	for n := int64(len(heap)); ; {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && compare(heap[child+1], heap[child]) > 0 {
			child++
		}
		if compare(heap[child], heap[i]) <= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
