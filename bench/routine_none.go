//go:build !(((linux && !android) || darwin) && (amd64 || arm64))

package bench

import "github.com/weirgo/weir"

// routine stands for a shared library's xgemm; none is loaded here.
type routine struct{}

func (routine) setThreads(int) {}

func openRoutine(path, letter string) (routine, error) {
	return routine{}, &weir.Error{Op: "bench.openRoutine", Message: "shared libraries are not loaded on this system", Err: weir.ErrNotSupported}
}

func newSquareCall[T element](routine, int, uintptr, uintptr, uintptr) func() error { return nil }
