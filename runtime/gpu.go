//go:build !cuda

package runtime

import "github.com/weirgo/weir/internal/driver"

// gpuFamilies are the GPU families of this build.
func gpuFamilies() []driver.Family { return nil }
