//go:build cuda

package cudatest

// #include "weir_lazy.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"time"
	"unsafe"
)

// Simulator is the file of the simulated driver; "" of a real one, and where
// there is none.
func Simulator() string {
	os.Getenv("WEIR_CUDA_LIBRARY_PATH") // C reads it; go test is to know that the result depends on it
	if !Simulated() {
		return ""
	}
	name := C.CString("cuda")
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.weir_lazy_path(name))
}

// patience is for what ends on its own: the last reference to a context may be
// a notification's, which its reader gives up.
const patience = time.Minute

// Left waits until nothing of the driver's lives, and answers what still does
// after a minute, and what was misused, a line each; "" is as it should be.
// With names it looks at those kinds alone. What a device had when it died may
// stay until Revive; handles of cuBLAS and cuSOLVER, which are not the driver's,
// stay for ever.
func Left(kinds ...string) string {
	if len(kinds) == 0 {
		kinds = []string{"context", "stream", "event", "pool", "module", "allocation", "host-allocation", "byte"}
	}
	for deadline := time.After(patience); ; {
		var left strings.Builder
		for _, kind := range kinds {
			if n := Live(kind); n != 0 {
				fmt.Fprintf(&left, "%d of kind %s live\n", n, kind)
			}
		}
		if left.Len() == 0 {
			return Misuse()
		}
		select {
		case <-deadline:
			return left.String() + Misuse()
		default:
			goruntime.Gosched()
		}
	}
}
