package buffer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Memory is one device's memory. There is one for each Resources; Of finds it.
//
// mu guards everything below it. No driver call happens under it: blocks that
// need one are first taken out.
type Memory struct {
	resources *runtime.Resources
	drv       driver.Device
	pool      driver.Pool // nil where the device has no stream-ordered memory
	debug     bool        // remember where buffers were made
	pressed   atomic.Bool // a collection may be due; see pressure.go

	mu         sync.Mutex
	closed     bool
	classes    [classCount]freeList
	slabs      []*slab
	cores      []*core // every one ever made; a live one has an odd generation
	spareCores []*core
	unwanted   []unwanted // found unreachable by the collector
	reclaiming bool
	collecting chan struct{} // closed when the collection that runs has ended; see pressure.go
	survived   int64         // bytes in use after the latest collection for pressure
	taken      int64         // by all buffers ever
	collected  int           // how many there were
	idle       sync.Cond     // reclaiming became false
	stats      Stats
	errs       []error // of frees that nobody waited for; Close answers them
}

// Stats counts a device's memory, in bytes unless named otherwise.
type Stats struct {
	Buffers  int64 // live buffers, a number
	Used     int64 // what live buffers asked for, except page-locked ones
	HighUsed int64 // the largest Used since the start or ResetPeak
	Cached   int64 // free blocks kept for reuse
	Held     int64 // taken from the device, caches and the pool's spare included
	Limit    int64 // the most that Held may become; 0 is no limit
}

type unwanted struct {
	core *core
	gen  uint64
}

// block is one piece of physical memory, of a slab or by itself.
type block struct {
	ptr     Ptr
	bytes   int64
	class   int // -1: by itself
	slab    *slab
	pinned  bool
	foreign func() error        // gives adopted memory back
	fresh   bool                // never owned
	owners  int                 // live buffers; under Memory.mu
	residue []stream.Completion // of former owners; under Memory.mu while owned, else the holder's
}

// onDevice is how many bytes of a part of the block are the device's memory.
func (b *block) onDevice(bytes int64) int64 {
	if b.pinned || b.foreign != nil {
		return 0
	}
	return bytes
}

// Of answers the memory of r's device, made on first use.
func Of(r *runtime.Resources) (*Memory, error) {
	return runtime.Use(r, runtime.StageMemory, newMemory)
}

func newMemory(r *runtime.Resources) (*Memory, error) {
	m := &Memory{resources: r, drv: r.Device().Driver(), debug: r.Options().Debug}
	m.idle.L = &m.mu
	m.stats.Limit = r.Options().MemoryLimit
	if m.drv.Capabilities().StreamOrderedPools {
		pool, err := m.drv.NewPool(driver.PoolConfig{ReleaseThreshold: r.Options().ReleaseThreshold, Limit: r.Options().MemoryLimit})
		if err != nil {
			return nil, err
		}
		m.pool = pool
	}
	return m, nil
}

func (m *Memory) device() driver.Device { return m.drv }

// Resources are those whose memory this is.
func (m *Memory) Resources() *runtime.Resources { return m.resources }

// New makes a buffer of bytes > 0 with undefined contents. It waits for nothing
// but for garbage to be collected, when use has doubled or memory is exhausted,
// and for frees in flight, when it is exhausted.
func (m *Memory) New(bytes int64) (*Buffer, error) {
	b := &Buffer{}
	if err := m.Init(b, bytes); err != nil {
		return nil, err
	}
	return b, nil
}

// Init is New into b, the first field of a heap object made for it.
func (m *Memory) Init(b *Buffer, bytes int64) error {
	const op = "buffer.New"
	if bytes <= 0 {
		return weir.Argf(op, "%d bytes; expected a positive size", bytes)
	}
	if err := m.init(b, bytes); err != nil {
		return err
	}
	b.watch()
	return nil
}

// InitPart is Init into b, which lies in a heap object that the caller watches: when
// the collector finds that unreachable, he has Unreachable called of each.
func (m *Memory) InitPart(b *Buffer, bytes int64) error { return m.init(b, bytes) }

// init makes b the owner of a block, without having the collector look after it.
func (m *Memory) init(b *Buffer, bytes int64) error {
	m.relieve()
	blk, err := m.take(bytes)
	if err != nil {
		return err
	}
	return m.adopt(b, blk, bytes)
}

// NewPinned makes a buffer of page-locked host memory, which copies at full
// speed and which HostRead and HostWrite open to host code.
func (m *Memory) NewPinned(bytes int64) (*Buffer, error) {
	if bytes <= 0 {
		return nil, weir.Argf("buffer.NewPinned", "%d bytes; expected a positive size", bytes)
	}
	ptr, err := m.drv.AllocHost(bytes)
	if err != nil {
		return nil, err
	}
	b := &Buffer{}
	if err := m.adopt(b, &block{ptr: ptr, bytes: bytes, class: -1, pinned: true}, bytes); err != nil {
		return nil, err
	}
	b.watch()
	return b, nil
}

// adopt makes b the owner of blk. The block's residue starts its ledger. When
// the memory was closed meanwhile the block goes back, as far as it still can.
func (m *Memory) adopt(b *Buffer, blk *block, bytes int64) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errors.Join(m.closedError("buffer.New"), m.release(blk))
	}
	c := m.newCoreLocked()
	blk.owners = 1
	m.stats.Buffers++
	m.stats.Used += blk.onDevice(bytes)
	m.taken += blk.onDevice(bytes)
	m.stats.HighUsed = max(m.stats.HighUsed, m.stats.Used)
	m.press()
	m.mu.Unlock()
	// Nobody looks at the rest of a core that is not in use.
	c.block, c.offset, c.bytes = blk, 0, bytes
	for _, r := range blk.residue {
		c.readers = addReader(c.readers, r)
	}
	clear(blk.residue)
	blk.residue, blk.fresh = blk.residue[:0], false
	c.stack = m.stack()
	b.core, b.gen = c, c.gen.Add(1)
	return nil
}

func (m *Memory) newCore() *core {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newCoreLocked()
}

func (m *Memory) newCoreLocked() *core {
	if n := len(m.spareCores); n > 0 {
		c := m.spareCores[n-1]
		m.spareCores = m.spareCores[:n-1]
		return c
	}
	c := &core{memory: m}
	m.cores = append(m.cores, c)
	return c
}

func (m *Memory) stack() string {
	if !m.debug {
		return ""
	}
	return callers.Stack()
}

// share adds owners to a block of which a buffer is partitioned, in place of
// that one. What lies between the parts is not used any more.
func (m *Memory) share(blk *block, bytes int64, parts []Range) {
	m.mu.Lock()
	defer m.mu.Unlock()
	blk.owners += len(parts) - 1
	m.stats.Buffers += int64(len(parts))
	m.stats.Used -= blk.onDevice(bytes)
	for _, p := range parts {
		m.stats.Used += blk.onDevice(p.Bytes)
	}
}

// recycle takes back a core whose generation ended without freeing its block.
func (m *Memory) recycle(c *core) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Buffers--
	m.spareCores = append(m.spareCores, c)
}

// gaveUp takes back the core of a freed buffer, whose ledger goes to its block, and
// the block with the last owner.
func (m *Memory) gaveUp(c *core) error {
	m.mu.Lock()
	blk := c.block
	blk.residue = addReader(blk.residue, c.writer)
	for _, r := range c.readers {
		blk.residue = addReader(blk.residue, r)
	}
	m.stats.Buffers--
	m.stats.Used -= blk.onDevice(c.bytes)
	m.decay()
	m.press()
	c.reset()
	m.spareCores = append(m.spareCores, c)
	blk.owners--
	last := blk.owners == 0
	if last && blk.class >= 0 {
		m.classes[blk.class].push(blk)
		m.stats.Cached += blk.bytes
	}
	m.mu.Unlock()
	if !last || blk.class >= 0 {
		return nil
	}
	return m.release(blk)
}

// release gives a block by itself back to the device once its last users are
// done: in stream order where the memory is, else the host waits. A wait that
// fails is made once more by the host; if that fails too, the users may still
// run and the block is kept.
func (m *Memory) release(blk *block) error {
	ordered := m.pool != nil && !blk.pinned && blk.foreign == nil
	if ordered && !m.resources.Reclaim().Valid() {
		return m.closedError("buffer.Free")
	}
	var errs []error
	for _, c := range blk.residue {
		done, err := m.outlast(c, ordered)
		errs = append(errs, err)
		if !done {
			return errors.Join(errs...)
		}
	}
	clear(blk.residue)
	return errors.Join(append(errs, m.giveBack(blk))...)
}

// outlast makes the reclamation stream, or else the host, wait for a user of
// memory. done is false when the user may still run.
func (m *Memory) outlast(c stream.Completion, ordered bool) (done bool, err error) {
	ctx := context.Background()
	if ordered {
		err = m.resources.Reclaim().Wait(c)
	} else {
		err = c.Wait(ctx)
	}
	if err == nil || over(err, m.drv) {
		return true, nil
	}
	if again := c.Wait(ctx); again != nil && !over(again, m.drv) {
		return m.drv.Err() != nil, errors.Join(err, again)
	}
	return true, err
}

// giveBack frees a block by itself. Of what is in stream order, the stream's
// work is the last use.
func (m *Memory) giveBack(blk *block) error {
	if blk.foreign != nil {
		return blk.foreign()
	}
	if blk.pinned {
		return m.drv.FreeHost(blk.ptr)
	}
	if m.pool == nil {
		m.mu.Lock()
		m.stats.Held -= blk.bytes
		m.mu.Unlock()
		return m.drv.Free(blk.ptr)
	}
	d, err := m.resources.Reclaim().Submit()
	if err != nil {
		return err
	}
	return m.pool.Free(d, blk.ptr)
}

// reclaimLater is called by the collector: it only enqueues.
func (m *Memory) reclaimLater(c *core, gen uint64) {
	m.mu.Lock()
	m.unwanted = append(m.unwanted, unwanted{c, gen})
	begin := !m.reclaiming
	m.reclaiming = true
	m.mu.Unlock()
	if begin {
		go m.reclaimAll()
	}
}

// reclaimAll frees what the collector found, until nothing is left.
func (m *Memory) reclaimAll() {
	for {
		m.mu.Lock()
		found := m.unwanted
		m.unwanted = nil
		if len(found) == 0 {
			m.reclaiming = false
			m.idle.Broadcast()
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		for _, u := range found {
			if _, err := u.core.free(u.gen); err != nil {
				m.mu.Lock()
				m.errs = append(m.errs, err)
				m.mu.Unlock()
			}
		}
	}
}

// settleGarbage collects garbage and waits until the reclaimer is idle.
func (m *Memory) settleGarbage() {
	runtime.Collect()
	m.quiesce()
}

// quiesce waits until the reclaimer is idle.
func (m *Memory) quiesce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.reclaiming {
		m.idle.Wait()
	}
}

// Stats answers the counts now.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	s := m.stats
	m.mu.Unlock()
	if m.pool != nil {
		if p, err := m.pool.Stats(); err == nil {
			s.Held = p.Held
		}
	}
	return s
}

// Used is Stats().Used, without asking the device.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats.Used
}

// ResetPeak makes HighUsed what is used now.
func (m *Memory) ResetPeak() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.HighUsed = m.stats.Used
}

// Trim gives free memory back to the device: slabs of which every block is
// free, then what the pool keeps.
func (m *Memory) Trim() error {
	errs := []error{m.dropSlabs()}
	if m.pool != nil {
		errs = append(errs, m.pool.Trim(0))
	}
	return errors.Join(errs...)
}

// Live lists the buffers that have not been freed.
func (m *Memory) Live() []runtime.Leak {
	m.quiesce()
	m.mu.Lock()
	cores := slices.Clone(m.cores)
	m.mu.Unlock()
	var live []runtime.Leak
	for _, c := range cores {
		c.mu.Lock()
		if c.gen.Load()%2 == 1 {
			live = append(live, runtime.Leak{Kind: "buffer", Bytes: c.bytes, Device: m.drv.Name(), Stack: c.stack})
		}
		c.mu.Unlock()
	}
	return live
}

// Drain refuses new buffers.
func (m *Memory) Drain() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Close gives all memory back, except that of buffers which still live: it
// stays mapped, so that late uses fail without a fault.
func (m *Memory) Close() error {
	m.quiesce()
	errs := []error{m.dropSlabs()}
	if m.pool != nil {
		errs = append(errs, m.resources.Reclaim().Synchronize(context.Background()))
		m.mu.Lock()
		leaked := m.stats.Buffers
		m.mu.Unlock()
		if err := m.pool.Destroy(); leaked == 0 { // else the leak has been reported
			errs = append(errs, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(append(m.errs, errs...)...)
}

func (m *Memory) exhausted(bytes int64, cause error) error {
	s := m.Stats()
	limit := s.Limit
	if limit == 0 {
		limit = m.drv.Capabilities().MemoryBytes
	}
	return &weir.Error{Op: "buffer.New", Device: m.drv.Name(), Kind: weir.KindOutOfMemory, Err: cause,
		Message: fmt.Sprintf("asked for %d bytes; %d held, of which %d in use; limit %d", bytes, s.Held, s.Used, limit)}
}

// usable is nil, or why nothing can be done with the memory any more.
func (m *Memory) usable(op string) error {
	if err := m.drv.Err(); err != nil {
		return &weir.Error{Op: op, Device: m.drv.Name(), Kind: weir.KindCUDA, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return m.closedError(op)
	}
	return nil
}
