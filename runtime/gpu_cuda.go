//go:build cuda

package runtime

import (
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
)

// processGPUs is one family for the process: a GPU that is lost stays lost.
var processGPUs = cuda.New()

// gpuFamilies are the GPU families of this build.
func gpuFamilies() []driver.Family { return []driver.Family{processGPUs} }
