//go:build cuda

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"github.com/weirgo/weir"
)

// Codes of the driver that are treated apart.
const (
	codeInvalidValue = 1
	codeOutOfMemory  = 2
	codeNotFound     = 500
	codeNotReady     = 600

	firstCapture = 900 // from CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
	lastCapture  = 908 // to CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: what cannot be captured
)

// fatal says whether the driver documents an error as ending the context or all
// of the process's, or it says that somebody else has ended it: each call here
// selects its own.
func fatal(code int) bool {
	switch code {
	case 4, // CUDA_ERROR_DEINITIALIZED
		46,  // CUDA_ERROR_DEVICE_UNAVAILABLE
		201, // CUDA_ERROR_INVALID_CONTEXT
		214, // CUDA_ERROR_ECC_UNCORRECTABLE
		220, // CUDA_ERROR_NVLINK_UNCORRECTABLE
		226, // CUDA_ERROR_CONTAINED
		700, // CUDA_ERROR_ILLEGAL_ADDRESS
		702, // CUDA_ERROR_LAUNCH_TIMEOUT
		709, // CUDA_ERROR_CONTEXT_IS_DESTROYED
		710, // CUDA_ERROR_ASSERT
		714, // CUDA_ERROR_HARDWARE_STACK_ERROR
		715, // CUDA_ERROR_ILLEGAL_INSTRUCTION
		716, // CUDA_ERROR_MISALIGNED_ADDRESS
		717, // CUDA_ERROR_INVALID_ADDRESS_SPACE
		718, // CUDA_ERROR_INVALID_PC
		719, // CUDA_ERROR_LAUNCH_FAILED
		721, // CUDA_ERROR_TENSOR_MEMORY_LEAK
		810, // CUDA_ERROR_MPS_CLIENT_TERMINATED
		911, // CUDA_ERROR_EXTERNAL_DEVICE
		999: // CUDA_ERROR_UNKNOWN
		return true
	}
	return false
}

// statuses are the names of cuBLAS's and cuSOLVER's statuses.
var statuses = map[string]map[int]string{
	"cublas": {1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
		8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
		14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR"},
	"cusolver": {1: "CUSOLVER_STATUS_NOT_INITIALIZED", 2: "CUSOLVER_STATUS_ALLOC_FAILED", 3: "CUSOLVER_STATUS_INVALID_VALUE",
		4: "CUSOLVER_STATUS_ARCH_MISMATCH", 5: "CUSOLVER_STATUS_MAPPING_ERROR", 6: "CUSOLVER_STATUS_EXECUTION_FAILED",
		7: "CUSOLVER_STATUS_INTERNAL_ERROR", 9: "CUSOLVER_STATUS_NOT_SUPPORTED"},
}

// alive is nil, or the error that call op answers on a dead device.
func (d *device) alive(op string) error {
	if e := d.dead.Load(); e != nil {
		return &weir.Error{Op: op, Device: d.name, Code: e.Code, Name: e.Name, Kind: weir.KindCUDA, Err: e}
	}
	return nil
}

// check turns what a driver call answered into call op's error.
func (d *device) check(op string, result C.int) error {
	if result == 0 {
		return nil
	}
	return d.failed(op, int(result))
}

func (d *device) failed(op string, code int) error {
	if fatal(code) {
		d.die(op, code)
	}
	if err := d.alive(op); err != nil {
		return err
	}
	e := &weir.Error{Op: op, Device: d.name, Code: code, Name: nameOf(code), Kind: weir.KindCUDA, Message: textOf(code)}
	switch {
	case code == codeOutOfMemory:
		e.Kind, e.Err = weir.KindOutOfMemory, weir.ErrOutOfMemory
	case code == codeNotFound, // what the lazy loader answers for a function that is not there
		firstCapture <= code && code <= lastCapture:
		e.Err = weir.ErrNotSupported
	}
	return e
}

// checkLibrary is check for calls that answer the negative of a library's
// status. A status that can mean a dead context has the context asked.
func (d *device) checkLibrary(op, library string, c *context, result C.int) error {
	if result >= 0 {
		return d.check(op, result)
	}
	code := -int(result)
	name := statuses[library][code]
	if libraryPath(library) == "" {
		return &weir.Error{Op: op, Device: d.name, Code: code, Name: name, Kind: weir.KindCUDA,
			Message: libraryReason(library), Err: weir.ErrNotSupported}
	}
	if err := d.check(op, C.weir_stream_query(c.handle, c.probe)); err != nil {
		return err
	}
	e := &weir.Error{Op: op, Device: d.name, Code: code, Name: name, Kind: weir.KindCUDA}
	switch name {
	case "CUBLAS_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED":
		e.Kind, e.Err = weir.KindOutOfMemory, weir.ErrOutOfMemory
	case "CUBLAS_STATUS_NOT_SUPPORTED", "CUSOLVER_STATUS_NOT_SUPPORTED":
		e.Err = weir.ErrNotSupported
		if missed := libraryMissed(library); missed != "" {
			e.Message = fmt.Sprintf("%s was loaded and has no %s", libraryPath(library), missed)
		}
	case "CUBLAS_STATUS_NOT_INITIALIZED", "CUSOLVER_STATUS_NOT_INITIALIZED": // mostly of a library that is newer than the driver
		e.Message = fmt.Sprintf("%s was loaded; it must suit the driver, which is of CUDA %s", libraryPath(library), release(cu.Version()))
	}
	return e
}

func nameOf(code int) string {
	if name := C.GoString(C.weir_error_name(C.int(code))); name != "" {
		return name
	}
	return fmt.Sprintf("CUDA_ERROR_%d", code)
}

func textOf(code int) string { return C.GoString(C.weir_error_text(C.int(code))) }

func (d *device) argument(op, format string, args ...any) error {
	e := weir.Argf(op, format, args...)
	e.Device = d.name
	return e
}

func (d *device) closed(op, what string) error {
	return &weir.Error{Op: op, Device: d.name, Kind: weir.KindLogic, Message: "the " + what + " was destroyed", Err: weir.ErrClosed}
}

func (d *device) unsupported(op, message string) error {
	return &weir.Error{Op: op, Device: d.name, Kind: weir.KindLogic, Message: message, Err: weir.ErrNotSupported}
}

func (d *device) outOfMemory(op, format string, args ...any) error {
	return &weir.Error{Op: op, Device: d.name, Kind: weir.KindOutOfMemory, Code: codeOutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY",
		Message: fmt.Sprintf(format, args...), Err: weir.ErrOutOfMemory}
}
