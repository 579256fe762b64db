//go:build cuda

// A program of somebody who uses Weir, and CUDA beside it. It prints what it
// finds; the test knows what that must be.
package main

/*
#cgo LDFLAGS: -lcuda -lcublas -lcusolver
#include <stdlib.h>
#include <cusolverDn.h>
#include <weir_lazy.h>
*/
import "C"

import (
	"context"
	"fmt"
	"log"
	"unsafe"

	"gorgonia.org/cu"
	cublas "gorgonia.org/cu/blas"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func main() {
	devices, err := cu.NumDevices()
	fmt.Println("devices:", devices, err)
	for _, library := range []string{"cuda", "cublas", "cusolver"} {
		name := C.CString(library)
		fmt.Printf("%s: path %q, reason %q\n", library, C.GoString(C.weir_lazy_path(name)), C.GoString(C.weir_lazy_reason(name)))
		C.free(unsafe.Pointer(name))
	}
	_, err = cu.GetDevice(0)
	fmt.Println("device 0:", err)
	fmt.Println("cuBLAS:", new(cublas.Standard).Init())
	var solver C.cusolverDnHandle_t
	fmt.Println("cuSOLVER:", C.cusolverDnCreate(&solver))

	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx, free := tensor.Scope(context.Background())
	defer free()
	a, err := tensor.From(ctx, []float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	c, err := tensor.MatMul(ctx, a, a)
	if err != nil {
		log.Fatal(err)
	}
	x, err := tensor.Data[float32](ctx, c)
	fmt.Println("product:", x, err)
}
