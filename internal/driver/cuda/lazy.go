//go:build cuda

package cuda

// #include <stdlib.h>
// #include "weir_lazy.h"
import "C"

import "unsafe"

// libraryPath is the file that the loader opened for "cuda", "cublas" or
// "cusolver"; "" if none.
func libraryPath(library string) string {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.weir_lazy_path(name))
}

// libraryReason says why a library is of no use; "" if it is.
func libraryReason(library string) string {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.weir_lazy_reason(name))
}
