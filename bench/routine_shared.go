//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package bench

import (
	"fmt"
	goruntime "runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/weirgo/weir"
)

// routine is a shared library's xgemm and its setting of threads.
type routine struct {
	gemm       uintptr
	setThreads func(n int)
}

// openRoutine finds the routine of the element type's letter in a library that
// the process has loaded from path. Names carry a prefix in the Python wheels
// and a suffix in builds with 64-bit integers.
func openRoutine(path, letter string) (routine, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return routine{}, err
	}
	for _, prefix := range []string{"", "scipy_"} {
		for _, suffix := range []string{"", "64_"} {
			gemm, err := purego.Dlsym(handle, prefix+letter+"gemm_"+suffix)
			if err != nil {
				continue
			}
			r := routine{gemm: gemm, setThreads: func(int) {}}
			if set, err := purego.Dlsym(handle, prefix+"openblas_set_num_threads"+suffix); err == nil {
				r.setThreads = func(n int) { purego.SyscallN(set, uintptr(n)) }
			}
			return r, nil
		}
	}
	return routine{}, &weir.Error{Op: "bench.openRoutine", Message: fmt.Sprintf("%s has no symbol %sgemm_", path, letter), Err: weir.ErrNotSupported}
}

// newSquareCall is one call for column-major n×n matrices, C = A·B. All
// arguments go by address, integers as 64-bit ones, which suit both kinds of
// library on a little-endian processor.
func newSquareCall[T element](r routine, n int, a, b, c uintptr) func() error {
	m := &struct {
		op        byte
		n         int64
		one, zero T
	}{op: 'N', n: int64(n), one: 1}
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	op, size := at(unsafe.Pointer(&m.op)), at(unsafe.Pointer(&m.n))
	args := []uintptr{op, op, size, size, size, at(unsafe.Pointer(&m.one)), a, size, b, size,
		at(unsafe.Pointer(&m.zero)), c, size, 1, 1}
	return func() error {
		purego.SyscallN(r.gemm, args...)
		goruntime.KeepAlive(m)
		return nil
	}
}
