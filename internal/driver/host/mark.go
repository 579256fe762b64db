package host

import (
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

func (d *device) NewMark() (driver.Mark, error) {
	return nil, &weir.Error{Op: "Device.NewMark", Device: d.name, Err: weir.ErrNotSupported}
}

func (s *stream) Mark(driver.Mark) error {
	return &weir.Error{Op: "Stream.Mark", Device: s.dev.name, Err: weir.ErrNotSupported}
}
