//go:build cuda

package cuda

// #include "driver.h"
// #cgo nocallback weir_copy_peer
import "C"

import (
	"maps"
	"slices"

	"github.com/weirgo/weir/internal/driver"
)

// CopyPeer is the one copy that the driver makes between pools of two devices
// whatever access they have. With access it goes over their own link, without it
// through the host's memory: 395 and 38 GB/s between two H200. So the first copy
// between two devices gives each access to the other's pools.
func (s *stream) CopyPeer(dst driver.Ptr, to int, src driver.Ptr, from int, bytes int64) error {
	const op = "Stream.CopyPeer"
	d := s.device
	if n := d.family.Count(); to < 0 || to >= n || from < 0 || from >= n || d.ordinal != to && d.ordinal != from {
		return d.argument(op, "from device %d to device %d; there are %d, numbered from 0, and the stream's is one of the two", from, to, n)
	}
	if to == from {
		return s.copy(op, dst, src, bytes)
	}
	if err := s.copyable(op, dst, src, bytes); err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if bytes == 0 {
		return nil
	}
	opened, err := d.family.Open(to + from - d.ordinal)
	if err != nil {
		return err
	}
	peer := opened.(*device)
	c, err := peer.retain(op)
	if err != nil {
		return s.foreign(op, "memory", peer, err)
	}
	defer peer.release()
	if err := d.admit(op, peer); err != nil {
		return err
	}
	if err := peer.admit(op, d); err != nil {
		return s.foreign(op, "memory", peer, err)
	}
	target, source := s.context.handle, c.handle
	if d.ordinal == from {
		target, source = source, target
	}
	return d.check(op, C.weir_copy_peer(s.context.handle, s.handle, C.uint64_t(dst), target, C.uint64_t(src), source, C.size_t(bytes)))
}

// admit gives peer access to d's pools, unless it has it: those that are there, and
// those that NewPool makes from now on. Without it copies are slower; only the death
// of d is an error.
func (d *device) admit(op string, peer *device) error {
	d.mu.Lock()
	if slices.Contains(d.peers, peer) {
		d.mu.Unlock()
		return nil
	}
	d.peers = append(d.peers, peer)
	pools := slices.Collect(maps.Keys(d.pools))
	d.mu.Unlock()
	for _, p := range pools {
		if err := p.admit(op, peer); err != nil {
			return err
		}
	}
	return nil
}

func (p *pool) admit(op string, peer *device) error {
	if !p.guard.enter() {
		return nil // it was destroyed meanwhile
	}
	defer p.leave()
	_ = p.device.check(op, C.weir_pool_admit(p.context.handle, p.handle, C.int(p.device.handle), C.int(peer.handle))) // see admit of device
	return p.device.alive(op)
}
