package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Handle is what pools hold: a library's handle with its own workspace.
type Handle interface {
	WorkspaceBytes() int64
	Destroy() error
}

// Pool is a fixed set of handles of one device.
type Pool[T Handle] struct {
	name  string
	dev   driver.Device
	slots *lease.Pool[T, stream.Completion]

	mu     sync.Mutex // guards what follows; no handle is called under it
	errs   []error    // of giving up handles that broke; Close answers them
	closed bool
}

// NewPool makes count handles with make. name is what one is called in
// messages, as "blas handle".
func NewPool[T Handle](r *runtime.Resources, name string, count int, make func() (T, error)) (*Pool[T], error) {
	if most := r.Streams().Size(); count < 1 || count > most {
		return nil, weir.Argf("provider.NewPool", "%d of %s on %s; expected 1 to %d, the number of streams", count, name, r.Device().Name(), most)
	}
	p := &Pool[T]{name: name, dev: r.Device().Driver()}
	var handles []T
	for range count {
		h, err := make()
		if err != nil {
			errs := []error{err}
			for _, h := range handles {
				errs = append(errs, h.Destroy())
			}
			return nil, errors.Join(errs...)
		}
		handles = append(handles, h)
	}
	p.slots = lease.New[T, stream.Completion](lease.Config[T]{
		Name: name, Device: p.dev, Stacks: r.Options().Debug, Make: make, Discard: p.discard,
	}, handles)
	return p, nil
}

// discard destroys a handle that broke.
func (p *Pool[T]) discard(old T) {
	if err := old.Destroy(); err != nil {
		p.mu.Lock()
		p.errs = append(p.errs, err)
		p.mu.Unlock()
	}
}

// Size is the number of handles.
func (p *Pool[T]) Size() int { return p.slots.Size() }

// Counts answers how many handles are idle, leased and pending, as far as is
// known without asking the device, and how many callers wait.
func (p *Pool[T]) Counts() (idle, leased, pending, waiting int) { return p.slots.Counts() }

// WorkspaceBytes is what the handles' workspaces hold now, together.
func (p *Pool[T]) WorkspaceBytes() int64 {
	var n int64
	for _, h := range p.slots.Things() {
		n += h.WorkspaceBytes()
	}
	return n
}

// TryAcquire leases a handle if one is free and nobody waits.
func (p *Pool[T]) TryAcquire() (l Lease[T], ok bool, err error) {
	h, ok, err := p.slots.TryAcquire()
	return Lease[T]{h: h}, ok, err
}

// Acquire leases a handle, first come, first served; a task's lane is given
// back while it waits.
func (p *Pool[T]) Acquire(ctx context.Context) (Lease[T], error) {
	h, err := p.slots.Acquire(ctx)
	return Lease[T]{h: h}, err
}

// Drain refuses further leases and wakes every waiter with ErrClosed.
func (p *Pool[T]) Drain() error {
	p.slots.Close()
	return nil
}

// Close destroys the handles; their work is done. A second Close does nothing.
func (p *Pool[T]) Close() error {
	p.mu.Lock()
	errs, again := p.errs, p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return nil
	}
	for _, h := range p.slots.Close() {
		errs = append(errs, h.Destroy())
	}
	return errors.Join(errs...)
}

// Live lists the handles that are leased.
func (p *Pool[T]) Live() []runtime.Leak {
	var live []runtime.Leak
	for _, h := range p.slots.Leased() {
		live = append(live, runtime.Leak{Kind: p.name, Name: fmt.Sprint(h.Index), Device: p.dev.Name(), Stack: h.Stack})
	}
	return live
}

// Lease is the exclusive use of one handle. A copy is the same lease.
type Lease[T Handle] struct {
	h lease.Handle[T, stream.Completion]
}

// Value is the handle; ErrStale after the release.
func (l *Lease[T]) Value() (T, error) { return l.h.Value() }

// Index is the handle's number in its pool.
func (l *Lease[T]) Index() int { return l.h.Index() }

// Break says that the handle answered an error, so that it is remade.
func (l *Lease[T]) Break() { l.h.Break() }

// Release gives the handle back; others get it when tail is done.
func (l *Lease[T]) Release(tail stream.Completion) { l.h.Release(tail) }
