//go:build cuda

package cuda

import "github.com/weirgo/weir/internal/driver"

func (d *device) NewMark() (driver.Mark, error) {
	return nil, d.unsupported("Device.NewMark", "not built yet")
}

func (s *stream) Mark(driver.Mark) error { return s.device.unsupported("Stream.Mark", "not built yet") }
