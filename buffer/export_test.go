package buffer

// What tests see of the inside.

const (
	SmallLimit    = smallLimit
	SmallestBlock = smallestBlock
	InFlight      = inFlight
	SlabBytes     = slabBytes
	ClassCount    = classCount
)

var (
	ClassOf    = classOf
	ClassBytes = classBytes
)

// LedgerLength is the number of completions in a buffer's ledger.
func LedgerLength(b *Buffer) int {
	b.core.mu.Lock()
	defer b.core.mu.Unlock()
	n := len(b.core.readers)
	if !b.core.writer.IsZero() {
		n++
	}
	return n
}

// HoldLocks takes the locks of one buffer's ledger and of its device's memory,
// which no access of another buffer may need.
func HoldLocks(b *Buffer) (release func()) {
	b.core.mu.Lock()
	b.core.memory.mu.Lock()
	return func() {
		b.core.memory.mu.Unlock()
		b.core.mu.Unlock()
	}
}

// Address is where a live buffer lies.
func Address(b *Buffer) Ptr {
	b.core.mu.Lock()
	defer b.core.mu.Unlock()
	return b.core.block.ptr + Ptr(b.core.offset)
}

// BlockBytes is the size of the block that a live buffer lies in.
func BlockBytes(b *Buffer) int64 {
	b.core.mu.Lock()
	defer b.core.mu.Unlock()
	return b.core.block.bytes
}

// Collections is how many collections the use of memory has started and ended.
func (m *Memory) Collections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.collected
}
