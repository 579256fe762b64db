package graph

import "github.com/weirgo/weir/internal/driver"

// Node is an operation: steps that are submitted to one stream, one after another.
type Node struct {
	After []int // earlier nodes that it comes after
	Steps []Step
}

// Step is one submission. h is nil unless it is a product.
type Step struct {
	Product bool
	Submit  func(s driver.Stream, h driver.BLAS) error
}

// mostLanes bounds the streams of a graph. More would help operations that fill less
// than a quarter of the device each; but each with products has a workspace, 32 MiB
// on an H200.
const mostLanes = 4

// place is where a node was put.
type place struct {
	lane     int
	waits    []int // nodes of other lanes that it is to wait for
	awaited  bool  // another lane waits for it
	products bool
}

// plan puts each node on a lane: on that of a node that it comes after if nothing
// has followed that one yet, so that a chain needs no event, else on a lane that has
// nothing, or whose last node is the oldest. It answers how many lanes there are.
func plan(nodes []Node) (places []place, lanes int) {
	places = make([]place, len(nodes))
	var tail []int            // the last node of each lane
	var seen [mostLanes][]int // seen[k][l] is the latest node of lane l that lane k comes after
	for i := range nodes {
		p := &places[i]
		for _, s := range nodes[i].Steps {
			p.products = p.products || s.Product
		}
		p.lane = -1
		for _, before := range nodes[i].After {
			if l := places[before].lane; tail[l] == before && (p.lane < 0 || before > tail[p.lane]) {
				p.lane = l
			}
		}
		switch {
		case p.lane >= 0:
		case len(tail) < mostLanes:
			p.lane = len(tail)
			tail = append(tail, -1)
			for k := range seen {
				seen[k] = append(seen[k], -1)
			}
		default:
			p.lane = 0
			for l := range tail {
				if tail[l] < tail[p.lane] {
					p.lane = l
				}
			}
		}
		var latest [mostLanes]int // of the nodes that it comes after, on each lane
		for l := range latest {
			latest[l] = -1
		}
		for _, before := range nodes[i].After {
			l := places[before].lane
			latest[l] = max(latest[l], before)
		}
		for l, before := range latest {
			if l != p.lane && before >= 0 && before > seen[p.lane][l] {
				p.waits = append(p.waits, before)
				places[before].awaited = true
				seen[p.lane][l] = before
			}
		}
		tail[p.lane] = i
	}
	return places, len(tail)
}
