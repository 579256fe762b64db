package solver_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/provider/solver"
	"github.com/weirgo/weir/runtime"
)

// The singular values of one matrix: memory first, then a handle and an idle
// stream together, then the accesses.
func Example() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()

	a := buffers(ctx, 0, -3, 4, 0) // column-major: the columns are (0, -3) and (4, 0)
	defer a.Free()
	s := buffers(ctx, 0, 0)
	defer s.Free()

	l, err := solver.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	acc := buffer.Begin(l.Stream())
	p := solver.Decomposition{DType: dtype.Float64, Factors: solver.None, M: 2, N: 2,
		A: acc.Write(a), S: acc.Write(s), LDA: 2} // A is destroyed
	if acc.Err() == nil {
		err = solver.SVD(&l, &p)
	}
	if err != nil {
		log.Print(err)
	}
	if err := acc.End(); err != nil {
		log.Print(err)
	}
	if err := l.Release(); err != nil {
		log.Print(err)
	}

	values := make([]float64, 2)
	err = s.HostRead(ctx, func(bytes []byte) error { // waits for the decomposition
		_, err := binary.Decode(bytes, binary.NativeEndian, values)
		return err
	})
	fmt.Printf("%.3f %v\n", values, err)
	// Output: [4.000 3.000] <nil>
}

// buffers makes a buffer with these contents on ctx's device.
func buffers(ctx context.Context, values ...float64) *buffer.Buffer {
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
