//go:build cuda

package cuda

// #include "driver.h"
// #cgo noescape weir_pool_new
// #cgo noescape weir_pool_alloc
// #cgo noescape weir_pool_held
// #cgo nocallback weir_pool_alloc
// #cgo nocallback weir_pool_free
import "C"

import (
	"maps"
	"slices"
	"sync"

	"github.com/weirgo/weir/internal/driver"
)

// pool is a CUmemoryPool. The driver says what it holds; what is used is counted
// here, so that it drops when memory is freed, not when the free is reached. mu
// guards live, freed, used and highUsed, and is not held across a driver call.
type pool struct {
	device  *device
	context *context
	handle  C.uintptr_t
	config  driver.PoolConfig
	guard   guard

	mu             sync.Mutex
	live           map[driver.Ptr]int64
	freed          map[*stream]bool // on which memory was given back since they were last settled
	used, highUsed int64
}

func (d *device) NewPool(config driver.PoolConfig) (driver.Pool, error) {
	const op = "Device.NewPool"
	if err := d.alive(op); err != nil {
		return nil, err
	}
	if !d.caps.StreamOrderedPools {
		return nil, d.unsupported(op, "the device has no stream-ordered pools")
	}
	if config.Limit < 0 || config.ReleaseThreshold < 0 {
		return nil, d.argument(op, "limit %d and release threshold %d; expected 0 or more", config.Limit, config.ReleaseThreshold)
	}
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	p := &pool{device: d, context: c, config: config, live: map[driver.Ptr]int64{}, freed: map[*stream]bool{}}
	if err := d.check(op, C.weir_pool_new(c.handle, C.int(d.handle), C.uint64_t(config.ReleaseThreshold), C.size_t(config.Limit), &p.handle)); err != nil {
		d.release()
		return nil, err
	}
	d.mu.Lock()
	d.pools[p] = true
	peers := slices.Clone(d.peers)
	d.mu.Unlock()
	for _, peer := range peers {
		if err := p.admit(op, peer); err != nil {
			_ = p.Destroy() // of a dead device
			return nil, err
		}
	}
	return p, nil
}

// enter counts a call in, or says why it cannot be made.
func (p *pool) enter(op string) error {
	if err := p.device.alive(op); err != nil {
		return err
	}
	if !p.guard.enter() {
		return p.device.closed(op, "pool")
	}
	return nil
}

func (p *pool) leave() {
	if p.guard.leave() {
		_ = p.destroy("Pool.Destroy") // it was destroyed during a call; that one answers for it
	}
}

func (p *pool) Alloc(st driver.Stream, bytes int64) (driver.Ptr, error) {
	const op = "Pool.Alloc"
	if err := p.enter(op); err != nil {
		return 0, err
	}
	defer p.leave()
	if bytes <= 0 {
		return 0, p.device.argument(op, "%d bytes; expected a positive size", bytes)
	}
	s, err := p.device.ours(op, st)
	if err != nil {
		return 0, err
	}
	if err := s.enter(op); err != nil {
		return 0, err
	}
	defer s.leave()
	if !p.reserve(bytes) {
		held, _, err := p.held(op)
		if err != nil {
			return 0, err
		}
		return 0, p.exhausted(op, bytes, held)
	}
	var at, held C.uint64_t
	result := C.weir_pool_alloc(p.context.handle, p.handle, s.handle, C.size_t(bytes), C.uint64_t(p.config.Limit), &at, &held)
	p.mu.Lock()
	if result == 0 {
		p.live[driver.Ptr(at)] = bytes
		p.highUsed = max(p.highUsed, p.used)
	} else {
		p.used -= bytes
	}
	p.mu.Unlock()
	if result == codeOutOfMemory {
		return 0, p.exhausted(op, bytes, int64(held))
	}
	return driver.Ptr(at), p.device.check(op, result)
}

// reserve counts bytes as used if they can be had at all.
func (p *pool) reserve(bytes int64) bool {
	most := p.device.caps.MemoryBytes
	if p.config.Limit > 0 {
		most = min(most, p.config.Limit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes > most-p.used {
		return false
	}
	p.used += bytes
	return true
}

func (p *pool) exhausted(op string, bytes, held int64) error {
	if p.config.Limit > 0 {
		return p.device.outOfMemory(op, "asked for %d bytes with %d of %d held", bytes, held, p.config.Limit)
	}
	return p.device.outOfMemory(op, "asked for %d bytes with %d held%s", bytes, held, p.device.freeNow())
}

func (p *pool) held(op string) (held, high int64, err error) {
	var now, most C.uint64_t
	err = p.device.check(op, C.weir_pool_held(p.context.handle, p.handle, &now, &most))
	return int64(now), int64(most), err
}

func (p *pool) Free(st driver.Stream, at driver.Ptr) error {
	const op = "Pool.Free"
	s, err := p.device.ours(op, st)
	if err != nil {
		return err
	}
	if err := p.enter(op); err != nil {
		return err
	}
	defer p.leave()
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	p.mu.Lock()
	bytes, ok := p.live[at]
	if ok {
		delete(p.live, at) // before the driver may hand it out again
		p.used -= bytes
	}
	p.mu.Unlock()
	if !ok {
		return p.device.argument(op, "%#x is not a live allocation of this pool", at)
	}
	err = p.device.check(op, C.weir_pool_free(p.context.handle, s.handle, C.uint64_t(at)))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.live[at] = bytes
		p.used += bytes
	} else {
		p.freed[s] = true
	}
	return err
}

func (p *pool) Trim(keep int64) error {
	const op = "Pool.Trim"
	if keep < 0 {
		return p.device.argument(op, "%d bytes to keep; expected 0 or more", keep)
	}
	if err := p.enter(op); err != nil {
		return err
	}
	defer p.leave()
	if err := p.settle(op); err != nil {
		return err
	}
	return p.device.check(op, C.weir_pool_trim(p.context.handle, p.handle, C.uint64_t(keep)))
}

// settle has the driver notice that frees are done: it holds on to their memory
// until somebody waits for the stream, though asking had shown that it is idle.
func (p *pool) settle(op string) error {
	p.mu.Lock()
	streams := slices.Collect(maps.Keys(p.freed))
	p.mu.Unlock()
	for _, s := range streams {
		idle := true // a destroyed stream's frees are the driver's business
		if s.guard.enter() {
			result := C.weir_stream_settle(p.context.handle, s.handle)
			s.leave()
			var err error
			if idle, err = p.device.done(op, result); err != nil {
				return err
			}
		}
		if idle {
			p.mu.Lock()
			delete(p.freed, s)
			p.mu.Unlock()
		}
	}
	return nil
}

func (p *pool) Stats() (driver.PoolStats, error) {
	const op = "Pool.Stats"
	if err := p.enter(op); err != nil {
		return driver.PoolStats{}, err
	}
	defer p.leave()
	p.mu.Lock()
	used, highUsed := p.used, p.highUsed
	p.mu.Unlock()
	held, highHeld, err := p.held(op)
	if err != nil {
		return driver.PoolStats{}, err
	}
	held = max(held, used) // what was used a moment ago may be given back by now
	return driver.PoolStats{Used: used, Held: held, HighUsed: highUsed, HighHeld: max(highHeld, held)}, nil
}

func (p *pool) Destroy() error {
	const op = "Pool.Destroy"
	if p.guard.close() {
		return p.destroy(op)
	}
	return p.device.alive(op)
}

func (p *pool) destroy(op string) error {
	defer p.device.release()
	p.device.mu.Lock()
	delete(p.device.pools, p)
	p.device.mu.Unlock()
	if err := p.device.alive(op); err != nil {
		return err
	}
	if err := p.device.check(op, C.weir_pool_destroy(p.context.handle, p.handle)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.live); n > 0 {
		return p.device.argument(op, "%d allocations are still live; expected none", n)
	}
	return nil
}
