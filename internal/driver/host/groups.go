package host

import (
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

func (b *blas) GemmGroups(driver.Stream, []driver.GemmGroup) error {
	return &weir.Error{Op: "BLAS.GemmGroups", Device: b.dev.name, Err: weir.ErrNotSupported}
}
