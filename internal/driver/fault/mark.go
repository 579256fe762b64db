package fault

import (
	"time"

	"github.com/weirgo/weir/internal/driver"
)

type mark struct {
	dev   *device
	inner driver.Mark
}

func (m *mark) Unwrap() driver.Mark { return m.inner }
func (m *mark) Destroy() error      { return m.dev.do(MarkDestroy, m.inner.Destroy) }

func (m *mark) Since(earlier driver.Mark) (time.Duration, error) {
	return answer(m.dev, MarkSince, func() (time.Duration, error) { return m.inner.Since(Unwrap(earlier)) })
}

func (d *device) NewMark() (driver.Mark, error) {
	return answer(d, DeviceNewMark, func() (driver.Mark, error) {
		m, err := d.inner.NewMark()
		return &mark{d, m}, err
	})
}

func (s *stream) Mark(m driver.Mark) error {
	return s.dev.do(StreamMark, func() error { return s.inner.Mark(Unwrap(m)) })
}
