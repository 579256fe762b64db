//go:build cuda

package native_test

import "os"

func init() {
	if os.Getenv("WEIR_TEST_CUDA") == "1" {
		deviceName = "cuda:0"
	}
}
