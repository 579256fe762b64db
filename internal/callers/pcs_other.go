//go:build !amd64 && !arm64

package callers

import goruntime "runtime"

// PCs answers where the function that calls it will return to, and where that
// one's caller will; 0 where there is none. The calling function must not be
// inlined.
func PCs() (inner, outer uintptr) {
	var pcs [2]uintptr
	goruntime.Callers(3, pcs[:])
	return pcs[0], pcs[1]
}
