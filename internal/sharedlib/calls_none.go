//go:build !(((linux && !android) || darwin) && (amd64 || arm64))

package sharedlib

import (
	"fmt"
	goruntime "runtime"
)

func dlopen(string) (uintptr, error) {
	return 0, fmt.Errorf("shared libraries are not loaded on %s/%s", goruntime.GOOS, goruntime.GOARCH)
}

// Nothing is loaded, so neither of these is called.

func dlsym(uintptr, string) uintptr { return 0 }

// Call calls a C function.
func Call(uintptr, ...uintptr) uintptr { return 0 }
