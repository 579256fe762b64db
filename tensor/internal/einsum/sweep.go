package einsum

import (
	"cmp"
	"math"
	"slices"
)

// A sweep multiplies the terms one after the other into one growing term, in
// an order that follows a cut. On lattices that beats every bushy tree, if the
// front of the growing term stays a straight line; greedy growth alone makes a
// ball, whose front is longer. A straight line to start from comes for free:
// the smallest term of a good tree that has a fair part of all operands behind
// it is a good cut. The operands' distances from it, negative on one side, are
// the levels that the sweep goes through; within a level the operand comes next
// that leaves the smallest term.

// cuts returns up to n products of t with between a quarter and three quarters
// of the terms below them, the smallest first.
func (t *tree) cuts(n int) []int {
	var found []int
	all := len(t.net.terms)
	for k := all; k < len(t.nodes); k++ {
		if part := 4 * t.nodes[k].leaves; part >= all && part <= 3*all {
			found = append(found, k)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return cmp.Compare(t.nodes[a].size, t.nodes[b].size) })
	return found[:min(n, len(found))]
}

// levels returns for each term its distance from the cut that node k makes: 1
// and up for the terms below k, 0 and down for the others. Terms that are not
// connected to the cut come last.
func (t *tree) levels(k int, holders [][]int32) []int {
	inside := t.below(k)
	level := make([]int, len(t.net.terms))
	for j := range level {
		level[j] = math.MaxInt
	}
	var queue []int32
	for _, terms := range holders {
		if slices.ContainsFunc(terms, func(j int32) bool { return inside[j] != inside[terms[0]] }) {
			for _, j := range terms {
				if level[j] == math.MaxInt {
					level[j] = 0
					queue = append(queue, j)
				}
			}
		}
	}
	passed := make([]bool, len(holders))
	for ; len(queue) > 0; queue = queue[1:] {
		j := queue[0]
		for _, i := range t.net.terms[j] {
			if passed[i] {
				continue
			}
			passed[i] = true
			for _, h := range holders[i] {
				if level[h] == math.MaxInt {
					level[h] = level[j] + 1
					queue = append(queue, h)
				}
			}
		}
	}
	for j := range level {
		switch {
		case level[j] == math.MaxInt:
		case inside[j]:
			level[j]++
		default:
			level[j] = -level[j]
		}
	}
	return level
}

// below marks the terms below node k.
func (t *tree) below(k int) []bool {
	marks := make([]bool, len(t.net.terms))
	for stack := []int{k}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t.nodes[n].left < 0 {
			marks[n] = true
			continue
		}
		stack = append(stack, t.nodes[n].left, t.nodes[n].right)
	}
	return marks
}

// sweep orders the products as the levels say. When the work is spent the
// order within a level is that of the operands.
func sweep(net *network, level []int) []pair {
	n := len(net.terms)
	order := make([]int, n)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(level[a], level[b]) })
	f := frontier{net, net.uses()}
	var front []int32
	for step := range n {
		at, least := step, math.Inf(1)
		for j := step; j < n && level[order[j]] == level[order[step]] && !net.spent(); j++ {
			if size := f.size(front, net.terms[order[j]]); size < least {
				at, least = j, size
			}
		}
		k := order[at]
		copy(order[step+1:at+1], order[step:at]) // keeps the others in order
		order[step] = k
		front = f.multiply(front, net.terms[k])
	}
	pairs := make([]pair, 0, n-1)
	growing := order[0]
	for _, k := range order[1:] {
		pairs = append(pairs, pair{growing, k})
		growing = n + len(pairs) - 1
	}
	return pairs
}
