package buffer

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/stream"
)

// The cache of small blocks. Sizes below smallLimit are rounded up to a class,
// four to each doubling, and carved from slabs, so that steady state makes no
// driver call. A free block waits in its class, oldest first, with the
// completions of its last users.
//
// Which free block is taken: that which was given back last, if its users are known
// to be done, since it is the likeliest to lie in the processor's or the device's
// cache; else one that nobody has had yet; else the oldest, if its users are done (if
// not it goes to the end, so that one that is long in use does not hide those behind
// it, and the next few takers do not ask: on a busy GPU the answer costs 1 to 3 us, and
// is the same); else one of a new slab, so that the new owner depends on nobody. When inFlight blocks of the class already
// wait for their users, or there is no memory for a slab, the next one is taken
// all the same, and its first access makes its stream wait (which costs nothing
// on the stream of the last use).
const (
	smallestBlock = 256
	smallLimit    = 1 << 20
	classCount    = 48
	slabBytes     = 2 << 20
	inFlight      = 64
	unaskedBlocks = 8 // takers that do not ask after one was told that a block is in use
)

// classOf is the class of a size up to smallLimit.
func classOf(bytes int64) int {
	units := (bytes + smallestBlock - 1) / smallestBlock // ≥ 1
	if units <= 4 {
		return int(units) - 1
	}
	shift := bits.Len64(uint64(units-1)) - 3 // so that units-1 is 4..7 shifted
	step := (units - 1) >> shift             // 4..7
	return int(4*shift + int(step))
}

// classBytes is the block size of a class, the inverse of classOf.
func classBytes(class int) int64 {
	if class < 4 {
		return int64(class+1) * smallestBlock
	}
	shift := class/4 - 1
	step := int64(class%4 + 4)
	return (step + 1) << shift * smallestBlock
}

// slab is one allocation cut into blocks of a class.
type slab struct {
	whole  *block
	blocks []*block
}

// freeList is a queue of free blocks.
type freeList struct {
	blocks  []*block
	head    int
	unasked int // how many takers are not to ask
}

func (l *freeList) len() int { return len(l.blocks) - l.head }

func (l *freeList) push(b *block) {
	if l.head > 0 && l.head == len(l.blocks) {
		l.blocks, l.head = l.blocks[:0], 0
	}
	if l.head > 64 && l.head > len(l.blocks)/2 {
		n := copy(l.blocks, l.blocks[l.head:])
		clear(l.blocks[n:])
		l.blocks, l.head = l.blocks[:n], 0
	}
	l.blocks = append(l.blocks, b)
}

func (l *freeList) pop() *block {
	b := l.blocks[l.head]
	l.blocks[l.head] = nil
	l.head++
	return b
}

// popHot takes the block that was given back last, if its users are known to be
// done; nil if not.
func (l *freeList) popHot() *block {
	k := len(l.blocks) - 1
	if k < l.head {
		return nil
	}
	b := l.blocks[k]
	if !b.known() {
		return nil
	}
	l.blocks[k], l.blocks = nil, l.blocks[:k]
	return b
}

// known says whether the users of a free block are known to be done.
func (b *block) known() bool {
	for _, c := range b.residue {
		if !c.Known() {
			return false
		}
	}
	return true
}

// take answers a block of at least bytes that nobody else has.
func (m *Memory) take(bytes int64) (*block, error) {
	if bytes >= smallLimit {
		return m.takeLarge(bytes, bytes)
	}
	class := classOf(bytes)
	if blk, err := m.reuse(class, false); blk != nil || err != nil {
		return blk, err
	}
	size := classBytes(class)
	count := max(slabBytes/size, 4)
	whole, err := m.allocate(size * count)
	if errors.Is(err, weir.ErrOutOfMemory) {
		if blk, err := m.reuse(class, true); blk != nil || err != nil {
			return blk, err
		}
		count = 1
		whole, err = m.takeLarge(size, bytes)
	}
	if err != nil {
		return nil, err
	}
	return m.cut(whole, class, count), nil
}

// reuse takes a free block of the class, as the policy above says, or nil; with
// anyway, also one whose users are not done.
func (m *Memory) reuse(class int, anyway bool) (*block, error) {
	l := &m.classes[class]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, m.closedError("buffer.New")
	}
	next := func() *block {
		blk := l.pop()
		m.stats.Cached -= blk.bytes
		return blk
	}
	if blk := l.popHot(); blk != nil {
		m.stats.Cached -= blk.bytes
		return blk, nil
	}
	switch {
	case l.len() == 0:
		return nil, nil
	case anyway || l.blocks[l.head].fresh || l.blocks[l.head].known():
		return next(), nil
	case l.unasked > 0:
		l.unasked--
	default:
		blk := next()
		m.mu.Unlock()
		done := finished(blk.residue)
		m.mu.Lock()
		if done {
			return blk, nil
		}
		l.push(blk)
		m.stats.Cached += blk.bytes
		l.unasked = unaskedBlocks
	}
	if l.len() > inFlight {
		return next(), nil
	}
	return nil, nil
}

// finished says whether all is done, asking the device where that is not known.
func finished(list []stream.Completion) bool {
	for _, c := range list {
		if done, err := c.Done(); !done && err == nil {
			return false
		}
	}
	return true
}

// cut makes memory a slab of count blocks, answers the first, and puts the
// others in front of the class's free ones. dropSlabs undoes it.
func (m *Memory) cut(whole *block, class int, count int64) *block {
	size := classBytes(class)
	s := &slab{whole: whole}
	for i := range count {
		s.blocks = append(s.blocks, &block{ptr: whole.ptr + Ptr(i*size), bytes: size, class: class, slab: s, fresh: true,
			residue: slices.Clone(whole.residue)})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &m.classes[class]
	l.blocks, l.head = slices.Concat(s.blocks[1:], l.blocks[l.head:]), 0
	m.slabs = append(m.slabs, s)
	m.stats.Cached += size * (count - 1)
	return s.blocks[0]
}

// takeLarge takes memory from the device in the supply stream's order; the
// block's residue is the completion after which it may be used. asked is what
// the caller wanted it for. When memory is exhausted it gives back, in turn,
// what is cached, what the collector can find, and what is still being freed.
func (m *Memory) takeLarge(bytes, asked int64) (*block, error) {
	blk, err := m.allocate(bytes)
	if !errors.Is(err, weir.ErrOutOfMemory) {
		return blk, err
	}
	for _, relieve := range []func(){
		func() {},
		m.settleGarbage,
		func() {
			d, err := m.resources.Reclaim().Submit()
			if err == nil {
				_ = d.Synchronize() // its failure is the allocation's, next
			}
		},
	} {
		relieve()
		if err := m.Trim(); err != nil {
			return nil, err
		}
		if blk, err = m.allocate(bytes); !errors.Is(err, weir.ErrOutOfMemory) {
			return blk, err
		}
	}
	return nil, m.exhausted(asked, err)
}

func (m *Memory) allocate(bytes int64) (*block, error) {
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return nil, m.closedError("buffer.New")
	}
	if m.pool == nil {
		return m.allocatePlain(bytes)
	}
	s := m.resources.Supply()
	d, err := s.Submit()
	if err != nil {
		return nil, err
	}
	ptr, err := m.pool.Alloc(d, bytes)
	if err != nil {
		return nil, err
	}
	blk := &block{ptr: ptr, bytes: bytes, class: -1}
	// Always a record of its own: others use the stream too, and one that was
	// made before this allocation must not stand for it.
	ready, err := s.Record()
	if err != nil {
		return nil, errors.Join(err, d.Synchronize(), m.release(blk))
	}
	// Mostly the memory is there already, and then nobody waits for it. A failure
	// is met by whoever uses it.
	if done, err := ready.Done(); !done || err != nil {
		blk.residue = addReader(nil, ready)
	}
	return blk, nil
}

// allocatePlain takes memory that is not in stream order, within the limit that
// a pool would hold otherwise.
func (m *Memory) allocatePlain(bytes int64) (*block, error) {
	m.mu.Lock()
	held, limit := m.stats.Held, m.stats.Limit
	if limit > 0 && bytes > limit-held {
		m.mu.Unlock()
		return nil, &weir.Error{Op: "buffer.New", Device: m.drv.Name(), Kind: weir.KindOutOfMemory, Err: weir.ErrOutOfMemory,
			Message: fmt.Sprintf("%d bytes more than the %d held exceed the limit of %d", bytes, held, limit)}
	}
	m.stats.Held += bytes
	m.mu.Unlock()
	ptr, err := m.drv.Alloc(bytes)
	if err != nil {
		m.mu.Lock()
		m.stats.Held -= bytes
		m.mu.Unlock()
		return nil, err
	}
	return &block{ptr: ptr, bytes: bytes, class: -1}, nil
}

func (m *Memory) closedError(op string) error {
	return &weir.Error{Op: op, Device: m.drv.Name(), Kind: weir.KindLogic, Message: "the device's memory is closed", Err: weir.ErrClosed}
}

// dropSlabs gives back every slab of which all blocks are free.
func (m *Memory) dropSlabs() error {
	m.mu.Lock()
	free := map[*slab]int{}
	for i := range m.classes {
		l := &m.classes[i]
		for _, b := range l.blocks[l.head:] {
			free[b.slab]++
		}
	}
	whole := func(s *slab) bool { return free[s] == len(s.blocks) }
	for i := range m.classes {
		l := &m.classes[i]
		l.blocks = slices.DeleteFunc(l.blocks[l.head:], func(b *block) bool {
			if !whole(b.slab) {
				return false
			}
			m.stats.Cached -= b.bytes
			for _, c := range b.residue {
				b.slab.whole.residue = addReader(b.slab.whole.residue, c)
			}
			return true
		})
		l.head = 0
	}
	var dropped []*slab
	m.slabs = slices.DeleteFunc(m.slabs, func(s *slab) bool {
		if whole(s) {
			dropped = append(dropped, s)
			return true
		}
		return false
	})
	m.mu.Unlock()
	var errs []error
	for _, s := range dropped {
		errs = append(errs, m.release(s.whole))
	}
	return errors.Join(errs...)
}
