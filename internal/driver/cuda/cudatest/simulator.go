//go:build cuda

package cudatest

// #include <stdlib.h>
// #include "control.h"
import "C"

import "unsafe"

// What follows is for the simulator; a real driver is left alone, and nothing is
// counted.

// Simulated says whether the driver is the simulator.
func Simulated() bool { return C.weir_test_simulated() != 0 }

// KillUnseen makes a simulated device die of a CUresult, and all others with it,
// and tells nobody.
func KillUnseen(ordinal, code int) { C.weir_test_kill(C.int(ordinal), C.int(code)) }

// Revive gives simulated devices that died back their lives. All that they had is
// gone; use them through a family that is made afterwards.
func Revive() { C.weir_test_revive() }

// DropCallbacks loses the next n host functions.
func DropCallbacks(n int) { C.weir_test_drop_callbacks(C.longlong(n)) }

// Fail makes the nth call from now (1 is the next) of a library's function
// answer code.
func Fail(function string, nth, code int) {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	C.weir_test_fail(name, C.longlong(nth), C.int(code))
}

// Count is how often a function was called.
func Count(function string) int {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	return int(C.weir_test_count(name))
}

// Live is how many things of a kind live: context, stream, event, pool, module,
// allocation, host-allocation, byte, cublas, cusolver.
func Live(kind string) int {
	name := C.CString(kind)
	defer C.free(unsafe.Pointer(name))
	return int(C.weir_test_live(name))
}

// Misuse is what was done that a real driver leaves undefined, a line each.
func Misuse() string {
	const size = 1 << 16
	text := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(text))
	if C.weir_test_misuse(text, size) == 0 {
		return ""
	}
	return C.GoString(text)
}
