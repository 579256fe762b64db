package fault

import "github.com/weirgo/weir/internal/driver"

type pool struct {
	dev   *device
	inner driver.Pool
}

func (p *pool) Unwrap() driver.Pool { return p.inner }

func (p *pool) Alloc(s driver.Stream, bytes int64) (driver.Ptr, error) {
	return answer(p.dev, PoolAlloc, func() (driver.Ptr, error) { return p.inner.Alloc(Unwrap(s), bytes) })
}

func (p *pool) Free(s driver.Stream, at driver.Ptr) error {
	return p.dev.do(PoolFree, func() error { return p.inner.Free(Unwrap(s), at) })
}

func (p *pool) Trim(keep int64) error {
	return p.dev.do(PoolTrim, func() error { return p.inner.Trim(keep) })
}

func (p *pool) Stats() (driver.PoolStats, error) { return answer(p.dev, PoolStats, p.inner.Stats) }
func (p *pool) Destroy() error                   { return p.dev.do(PoolDestroy, p.inner.Destroy) }
