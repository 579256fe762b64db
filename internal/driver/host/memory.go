package host

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// largeBlock is from which size on the machine is asked whether it has the
// memory, which takes some 20 us.
const largeBlock = 64 << 20

// granule is what allocations are rounded up to: a page.
const granule = 4096

func (d *device) outOfMemory(op string, asked, held, limit int64) error {
	return &weir.Error{Op: op, Device: d.name, Kind: weir.KindOutOfMemory, Code: 3, Name: "HOST_OUT_OF_MEMORY",
		Message: fmt.Sprintf("asked for %d bytes with %d of %d held", asked, held, limit), Err: weir.ErrOutOfMemory}
}

// rounded is the size that an allocation of bytes takes.
func (d *device) rounded(op string, bytes int64) (int64, error) {
	if bytes <= 0 {
		return 0, d.argument(op, "%d bytes; expected a positive size", bytes)
	}
	if bytes > math.MaxInt64-granule {
		return 0, d.outOfMemory(op, bytes, 0, d.total)
	}
	return (bytes + granule - 1) &^ (granule - 1), nil
}

// take gets bytes (rounded) from the system against the device's total.
func (d *device) take(op string, bytes int64) (driver.Ptr, error) {
	d.mu.Lock()
	if bytes > d.total-d.used {
		used := d.used
		d.mu.Unlock()
		return 0, d.outOfMemory(op, bytes, used, d.total)
	}
	d.used += bytes
	d.mu.Unlock()
	if bytes >= largeBlock { // the system promises more than it has, and kills later
		if available := availableMemory(); bytes > available {
			d.mu.Lock()
			d.used -= bytes
			d.mu.Unlock()
			return 0, &weir.Error{Op: op, Device: d.name, Kind: weir.KindOutOfMemory, Code: 3, Name: "HOST_OUT_OF_MEMORY",
				Message: fmt.Sprintf("asked for %d bytes; the machine has %d available", bytes, available), Err: weir.ErrOutOfMemory}
		}
	}
	p, err := hostmem.Alloc(bytes)
	if err != nil {
		d.mu.Lock()
		d.used -= bytes
		d.mu.Unlock()
		return 0, &weir.Error{Op: op, Device: d.name, Kind: weir.KindOutOfMemory, Err: err}
	}
	return driver.Ptr(p), nil
}

// giveBack unmaps memory, except where a dead device's last work may still run:
// that keeps its memory to the end of the process.
func (d *device) giveBack(p driver.Ptr, bytes int64) error {
	d.mu.Lock()
	d.used -= bytes
	d.mu.Unlock()
	if d.dead.Load() != nil && d.active.Load() > 0 {
		return nil
	}
	return hostmem.Free(uintptr(p), bytes)
}

// ours is st as a stream of d, or an argument error.
func (d *device) ours(op string, st driver.Stream) (*stream, error) {
	s, ok := st.(*stream)
	if !ok || s.dev != d {
		return nil, d.argument(op, "a stream of another device; expected one of %s", d.name)
	}
	return s, nil
}

func (d *device) Alloc(bytes int64) (driver.Ptr, error) {
	const op = "Device.Alloc"
	if err := d.alive(op); err != nil {
		return 0, err
	}
	size, err := d.rounded(op, bytes)
	if err != nil {
		return 0, err
	}
	p, err := d.take(op, size)
	if err == nil {
		d.mu.Lock()
		d.blocks[p] = size
		d.mu.Unlock()
	}
	return p, err
}

// Free waits for all work of the device, as the plain free of a GPU does.
func (d *device) Free(p driver.Ptr) error {
	const op = "Device.Free"
	d.mu.Lock()
	size, ok := d.blocks[p]
	delete(d.blocks, p)
	streams := slices.Clone(d.streams)
	d.mu.Unlock()
	if !ok {
		return d.argument(op, "%#x is not a live allocation", p)
	}
	for _, s := range streams {
		s.settle()
	}
	if err := d.giveBack(p, size); err != nil {
		return err
	}
	return d.alive(op)
}

func (d *device) AllocHost(bytes int64) (driver.Ptr, error) {
	const op = "Device.AllocHost"
	if err := d.alive(op); err != nil {
		return 0, err
	}
	size, err := d.rounded(op, bytes)
	if err != nil {
		return 0, err
	}
	p, err := hostmem.Alloc(size)
	if err != nil {
		return 0, &weir.Error{Op: op, Device: d.name, Kind: weir.KindOutOfMemory, Err: err}
	}
	d.mu.Lock()
	if d.pinned == nil {
		d.pinned = map[driver.Ptr]int64{}
	}
	d.pinned[driver.Ptr(p)] = size
	d.mu.Unlock()
	return driver.Ptr(p), nil
}

func (d *device) FreeHost(p driver.Ptr) error {
	const op = "Device.FreeHost"
	d.mu.Lock()
	size, ok := d.pinned[p]
	delete(d.pinned, p)
	d.mu.Unlock()
	if !ok {
		return d.argument(op, "%#x is not a live page-locked allocation", p)
	}
	if err := hostmem.Free(uintptr(p), size); err != nil {
		return err
	}
	return d.alive(op)
}

// trim lets every pool keep only its threshold; a synchronisation does so.
func (d *device) trim() {
	d.mu.Lock()
	pools := slices.Clone(d.pools)
	d.mu.Unlock()
	for _, p := range pools {
		p.shrink(p.cfg.ReleaseThreshold)
	}
}

// pool is stream-ordered memory. mu guards everything below it; memory is
// taken from and given back to the system outside it.
type pool struct {
	dev *device
	cfg driver.PoolConfig

	mu        sync.Mutex
	live      map[driver.Ptr]int64
	free      []freeBlock // oldest first
	stats     driver.PoolStats
	destroyed bool
}

// freeBlock may be reused by its stream at once, by others when the work that
// the stream had been given at the free is done.
type freeBlock struct {
	ptr    driver.Ptr
	bytes  int64
	stream *stream
	after  uint64
}

func (b *freeBlock) done() bool {
	return b.stream.finished.Load() >= b.after || b.stream.dev.dead.Load() != nil
}

func (d *device) NewPool(cfg driver.PoolConfig) (driver.Pool, error) {
	const op = "Device.NewPool"
	if err := d.alive(op); err != nil {
		return nil, err
	}
	if cfg.Limit < 0 || cfg.ReleaseThreshold < 0 {
		return nil, d.argument(op, "limit %d and release threshold %d; expected 0 or more", cfg.Limit, cfg.ReleaseThreshold)
	}
	p := &pool{dev: d, cfg: cfg, live: map[driver.Ptr]int64{}}
	d.mu.Lock()
	d.pools = append(d.pools, p)
	d.mu.Unlock()
	return p, nil
}

func (p *pool) Alloc(st driver.Stream, bytes int64) (driver.Ptr, error) {
	const op = "Pool.Alloc"
	if err := p.dev.alive(op); err != nil {
		return 0, err
	}
	size, err := p.dev.rounded(op, bytes)
	if err != nil {
		return 0, err
	}
	s, err := p.dev.ours(op, st)
	if err == nil {
		err = s.usable(op)
	}
	if err != nil {
		return 0, err
	}
	if b, ok, err := p.reuse(s, size); err != nil || ok {
		return b, err
	}
	if err := p.makeRoom(op, size); err != nil {
		return 0, err
	}
	ptr, err := p.dev.take(op, size)
	if err != nil {
		if p.shrink(0) > 0 {
			ptr, err = p.dev.take(op, size)
		}
		if err != nil {
			p.mu.Lock()
			p.stats.Held -= size
			p.mu.Unlock()
			return 0, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[ptr] = size
	p.stats.Used += size
	p.stats.HighUsed = max(p.stats.HighUsed, p.stats.Used)
	p.stats.HighHeld = max(p.stats.HighHeld, p.stats.Held)
	return ptr, nil
}

// reuse finds the tightest free block that s may use now and that is at most a
// quarter larger than asked.
func (p *pool) reuse(s *stream, size int64) (driver.Ptr, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open("Pool.Alloc"); err != nil {
		return 0, false, err
	}
	best := -1
	for i := range p.free {
		b := &p.free[i]
		if b.bytes < size || b.bytes-size > size/4 || best >= 0 && b.bytes >= p.free[best].bytes {
			continue
		}
		if b.stream == s || b.done() {
			best = i
		}
	}
	if best < 0 {
		return 0, false, nil
	}
	b := p.free[best]
	p.free = slices.Delete(p.free, best, best+1)
	p.live[b.ptr] = b.bytes
	p.stats.Used += b.bytes
	p.stats.HighUsed = max(p.stats.HighUsed, p.stats.Used)
	return b.ptr, true, nil
}

// makeRoom reserves size bytes against the limit, giving finished free blocks
// back if that is what it takes.
func (p *pool) makeRoom(op string, size int64) error {
	for range 2 {
		p.mu.Lock()
		if p.cfg.Limit == 0 || size <= p.cfg.Limit-p.stats.Held {
			p.stats.Held += size
			p.mu.Unlock()
			return nil
		}
		used := p.stats.Used
		p.mu.Unlock()
		if size > p.cfg.Limit-used {
			break
		}
		p.shrink(max(0, p.cfg.Limit-used-size))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dev.outOfMemory(op, size, p.stats.Held, p.cfg.Limit)
}

func (p *pool) Free(st driver.Stream, ptr driver.Ptr) error {
	const op = "Pool.Free"
	s, err := p.dev.ours(op, st)
	if err != nil {
		return err
	}
	s.mu.Lock()
	after, err := s.submitted.Load(), s.open(op)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	size, ok := p.live[ptr]
	if !ok {
		return p.dev.argument(op, "%#x is not a live allocation of this pool", ptr)
	}
	delete(p.live, ptr)
	p.stats.Used -= size
	p.free = append(p.free, freeBlock{ptr, size, s, after})
	return p.dev.alive(op)
}

// shrink gives finished free blocks back, oldest first, until at most keep
// bytes of them remain; it answers how many bytes went.
func (p *pool) shrink(keep int64) (gone int64) {
	p.mu.Lock()
	unused := p.stats.Held - p.stats.Used
	var drop []freeBlock
	p.free = slices.DeleteFunc(p.free, func(b freeBlock) bool {
		if unused <= keep || !b.done() {
			return false
		}
		unused -= b.bytes
		gone += b.bytes
		drop = append(drop, b)
		return true
	})
	p.stats.Held -= gone
	p.mu.Unlock()
	for _, b := range drop {
		_ = p.dev.giveBack(b.ptr, b.bytes) // fails only for memory that was never mapped
	}
	return gone
}

// open is nil, or says that the pool was destroyed; under mu.
func (p *pool) open(op string) error {
	if !p.destroyed {
		return nil
	}
	return &weir.Error{Op: op, Device: p.dev.name, Kind: weir.KindLogic, Message: "the pool was destroyed", Err: weir.ErrClosed}
}

func (p *pool) Trim(keep int64) error {
	if keep < 0 {
		return p.dev.argument("Pool.Trim", "%d bytes to keep; expected 0 or more", keep)
	}
	if _, err := p.look("Pool.Trim"); err != nil {
		return err
	}
	p.shrink(keep)
	return nil
}

func (p *pool) Stats() (driver.PoolStats, error) { return p.look("Pool.Stats") }

func (p *pool) look(op string) (driver.PoolStats, error) {
	if err := p.dev.alive(op); err != nil {
		return driver.PoolStats{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats, p.open(op)
}

func (p *pool) Destroy() error {
	p.mu.Lock()
	if p.destroyed {
		p.mu.Unlock()
		return nil
	}
	p.destroyed = true
	var waits []*stream
	for _, b := range p.free {
		if !slices.Contains(waits, b.stream) {
			waits = append(waits, b.stream)
		}
	}
	live := len(p.live)
	p.mu.Unlock()
	p.dev.mu.Lock()
	if i := slices.Index(p.dev.pools, p); i >= 0 {
		p.dev.pools = slices.Delete(p.dev.pools, i, i+1)
	}
	p.dev.mu.Unlock()
	for _, s := range waits {
		s.settle()
	}
	p.shrink(0)
	if err := p.dev.alive("Pool.Destroy"); err != nil {
		return err
	}
	if live > 0 {
		return p.dev.argument("Pool.Destroy", "%d allocations are still live; expected none", live)
	}
	return nil
}
