package lease

import (
	"fmt"
	"slices"

	"github.com/weirgo/weir"
)

// Handle is one holder's claim on a slot. It is a value; a copy is the same
// claim. The zero Handle is stale.
type Handle[T any, C Tail] struct {
	slot *slot[T, C]
	gen  uint64
	id   uint32 // 0 of the first holder
	lent bool   // see Lend
}

// Value is what the handle leases; ErrStale after its release.
func (h Handle[T, C]) Value() (T, error) {
	if h.Valid() {
		return h.slot.value, nil
	}
	var zero T
	return zero, h.stale()
}

// Index is the number of the slot in its pool, -1 of a zero handle.
func (h Handle[T, C]) Index() int {
	if h.slot == nil {
		return -1
	}
	return h.slot.index
}

// Valid says whether the handle still holds its slot.
func (h Handle[T, C]) Valid() bool {
	if h.slot == nil {
		return false
	}
	word := h.slot.word.Load()
	if h.id == 0 {
		return word == h.gen<<1|1
	}
	if word>>1 != h.gen {
		return false
	}
	h.slot.pool.mu.Lock()
	defer h.slot.pool.mu.Unlock()
	return h.holds()
}

// holds is Valid under the mutex.
func (h Handle[T, C]) holds() bool {
	word := h.slot.word.Load()
	if word>>1 != h.gen {
		return false
	}
	if h.id == 0 {
		return word&1 == 1
	}
	return slices.Contains(h.slot.holders, h.id)
}

func (h Handle[T, C]) stale() error {
	name := "lease"
	if h.slot != nil {
		name = fmt.Sprintf("%s %d", h.slot.pool.cfg.Name, h.slot.index)
	}
	return &weir.Error{Op: name, Kind: weir.KindLogic, Message: "used after its release; expected a live lease", Err: weir.ErrStale}
}

// Retain answers a further handle of the same slot, to be released on its own.
func (h Handle[T, C]) Retain() (Handle[T, C], error) {
	if h.slot == nil {
		return h, h.stale()
	}
	p := h.slot.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.holds() {
		return Handle[T, C]{}, h.stale()
	}
	h.slot.nextID++
	h.id = h.slot.nextID
	h.slot.holders = append(h.slot.holders, h.id)
	h.lent = false
	return h, nil
}

// Lend answers the same claim for somebody to use who does not own it: it is
// good for as long as h is, and does not give the claim up.
func (h Handle[T, C]) Lend() Handle[T, C] {
	h.lent = true
	return h
}

// Break says that the thing answered an error: once released, it is remade
// before anyone gets it. A stale handle breaks nothing.
func (h Handle[T, C]) Break() {
	if h.slot == nil {
		return
	}
	p := h.slot.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.holds() && p.cfg.Make != nil {
		h.slot.broken = true
	}
}

// Leave gives the claim up. last says that it was the last one of its slot; the
// caller, and nobody else, then owes a Return. A stale or lent handle does
// nothing.
func (h Handle[T, C]) Leave() (last bool) {
	if h.slot == nil || h.lent {
		return false
	}
	h.slot.pool.mu.Lock()
	defer h.slot.pool.mu.Unlock()
	return h.leave()
}

// leave is Leave under the mutex, of a handle that is somebody's own.
func (h Handle[T, C]) leave() (last bool) {
	s := h.slot
	if !h.holds() {
		return false
	}
	if h.id == 0 {
		s.word.Store(s.word.Load() &^ 1)
	} else {
		s.holders = slices.DeleteFunc(s.holders, func(id uint32) bool { return id == h.id })
	}
	return s.word.Load()&1 == 0 && len(s.holders) == 0
}

// Return gives back the slot whose last claim was h; it is pending until tail
// is done. To call it otherwise is a bug of Weir.
func (h Handle[T, C]) Return(tail C) {
	h.slot.pool.mu.Lock()
	defer h.slot.pool.mu.Unlock()
	h.giveBack(tail)
}

// giveBack is Return under the mutex.
func (h Handle[T, C]) giveBack(tail C) {
	s, p := h.slot, h.slot.pool
	if s.word.Load() != h.gen<<1 || len(s.holders) > 0 {
		panic(fmt.Sprintf("lease: %s %d was to be returned by somebody who did not leave it last", p.cfg.Name, s.index))
	}
	s.move(leased, pending)
	s.tail, s.stack = tail, ""
	p.attend(s)
}

// Release is Leave and, after the last claim, Return.
func (h Handle[T, C]) Release(tail C) {
	if h.slot == nil || h.lent {
		return
	}
	h.slot.pool.mu.Lock()
	defer h.slot.pool.mu.Unlock()
	if h.leave() {
		h.giveBack(tail)
	}
}
