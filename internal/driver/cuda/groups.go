//go:build cuda

package cuda

import "github.com/weirgo/weir/internal/driver"

func (b *blas) GemmGroups(driver.Stream, []driver.GemmGroup) error {
	return b.device.unsupported("BLAS.GemmGroups", "not built yet")
}
