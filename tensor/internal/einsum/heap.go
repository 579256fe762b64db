package einsum

// heap is a binary heap with the least item first. Items that compare equal
// come out in an order that depends only on the calls made.
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
}

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	for k := len(h.items) - 1; k > 0; {
		up := (k - 1) / 2
		if !h.less(h.items[k], h.items[up]) {
			return
		}
		h.items[k], h.items[up] = h.items[up], h.items[k]
		k = up
	}
}

// pop takes the least item; the heap must not be empty.
func (h *heap[T]) pop() T {
	least, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	for k := 0; ; {
		child := 2*k + 1
		if child >= last {
			return least
		}
		if child+1 < last && h.less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.less(h.items[child], h.items[k]) {
			return least
		}
		h.items[k], h.items[child] = h.items[child], h.items[k]
		k = child
	}
}
