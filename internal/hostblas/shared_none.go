//go:build !(((linux && !android) || darwin) && (amd64 || arm64))

package hostblas

import (
	"fmt"
	"runtime"
)

// shared stands for a loaded library, of which there is none here.
type shared struct{}

func openShared(string) (shared, error) {
	return shared{}, fmt.Errorf("shared libraries are not loaded on %s/%s", runtime.GOOS, runtime.GOARCH)
}

func (shared) symbol(string) uintptr { return 0 }

func (shared) close() {}

// invoke is never called, since nothing was loaded.
func invoke(uintptr, []uintptr) uintptr { return 0 }

func fileOf(uintptr) string { return "" }

func textAt(uintptr) string { return "" }
