package host

// ring is a queue of work in a circular slice whose length is a power of two.
// It doubles when full and lets a large slice go when it runs empty, so that a
// burst does not keep its memory.
type ring struct {
	entries []work
	head    int
	n       int
}

const keepEntries = 64

func (r *ring) push(w *work) {
	r.grow()
	r.entries[(r.head+r.n)&(len(r.entries)-1)] = *w
	r.n++
}

// pushFront puts w before all others.
func (r *ring) pushFront(w *work) {
	r.grow()
	r.head = (r.head - 1) & (len(r.entries) - 1)
	r.entries[r.head] = *w
	r.n++
}

// grow makes room for one more.
func (r *ring) grow() {
	if r.n < len(r.entries) {
		return
	}
	grown := make([]work, max(2*len(r.entries), 8))
	for i := range r.n {
		grown[i] = r.entries[(r.head+i)&(len(r.entries)-1)]
	}
	r.entries, r.head = grown, 0
}

func (r *ring) pop(w *work) bool {
	if r.n == 0 {
		if len(r.entries) > keepEntries {
			*r = ring{}
		}
		return false
	}
	*w, r.entries[r.head] = r.entries[r.head], work{}
	r.head = (r.head + 1) & (len(r.entries) - 1)
	r.n--
	return true
}
