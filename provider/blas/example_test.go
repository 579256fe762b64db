package blas_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
)

// One product: memory first, then a handle and an idle stream together, then
// the accesses, which say what the stream has to wait for.
func Example() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()

	a := matrix(ctx, 1, 2, 3, 4) // column-major: the columns are (1, 2) and (3, 4)
	defer a.Free()
	b := matrix(ctx, 5, 6, 7, 8)
	defer b.Free()
	c := matrix(ctx, 0, 0, 0, 0)
	defer c.Free()

	l, err := blas.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	acc := buffer.Begin(l.Stream())
	p := blas.Product{DType: dtype.Float64, M: 2, N: 2, K: 2, Alpha: 1, Batch: 1,
		A: acc.Read(a), B: acc.Read(b), C: acc.Write(c), LDA: 2, LDB: 2, LDC: 2}
	if acc.Err() == nil {
		err = blas.Gemm(&l, &p) // only submits
	}
	if err != nil {
		log.Print(err)
	}
	if err := acc.End(); err != nil { // publishes the completion to a, b and c
		log.Print(err)
	}
	if err := l.Release(); err != nil { // others get both when the product is done
		log.Print(err)
	}

	values := make([]float64, 4)
	err = c.HostRead(ctx, func(bytes []byte) error { // waits for the product
		_, err := binary.Decode(bytes, binary.NativeEndian, values)
		return err
	})
	fmt.Println(values, err)
	// Output: [23 34 31 46] <nil>
}

// matrix makes a buffer with these contents on ctx's device.
func matrix(ctx context.Context, values ...float64) *buffer.Buffer {
	r, err := runtime.Here(ctx)
	if err != nil {
		log.Fatal(err)
	}
	m, err := buffer.Of(r)
	if err != nil {
		log.Fatal(err)
	}
	b, err := m.NewPinned(int64(8 * len(values)))
	if err != nil {
		log.Fatal(err)
	}
	err = b.HostWrite(ctx, func(bytes []byte) error {
		_, err := binary.Encode(bytes, binary.NativeEndian, values)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	return b
}

// A device has one handle for each of its streams, unless Configure says
// otherwise before the first use.
func ExampleConfigure() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly, ResourceOptions: runtime.ResourceOptions{Streams: 4}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	r, err := runtime.Here(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	e, err := blas.Configure(r, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Size())
	_, err = blas.Configure(r, 3)
	fmt.Println(err)
	// Output:
	// 2
	// provider.Configure: 3 of blas handle on host:0; its first use made 2, and a later count must agree
}
