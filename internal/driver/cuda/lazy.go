//go:build cuda

package cuda

// #include <stdlib.h>
// #include "weir_lazy.h"
import "C"

import "unsafe"

// Library is one of the libraries that the family calls: the file that was
// loaded, or the reason why none was.
type Library struct{ Name, Path, Reason string }

// Libraries loads the libraries, if they are not yet, and answers them. It
// creates nothing on a device.
func Libraries() []Library {
	names := [...][2]string{{"driver", "cuda"}, {"cuBLAS", "cublas"}, {"cuSOLVER", "cusolver"}}
	var all []Library
	for _, name := range names {
		all = append(all, Library{name[0], libraryPath(name[1]), libraryReason(name[1])})
	}
	return all
}

// libraryPath is the file that the loader opened for "cuda", "cublas" or
// "cusolver"; "" if none.
func libraryPath(library string) string {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.weir_lazy_path(name))
}

// libraryMissed is the function that was called last though the loaded library
// lacks it, and forgets it; "" if there is none.
func libraryMissed(library string) string {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.weir_lazy_missed(name))
}

// libraryReason says why a library is of no use; "" if it is.
func libraryReason(library string) string {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.weir_lazy_reason(name))
}
