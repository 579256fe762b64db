package buffer_test

import (
	"context"
	"fmt"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
)

// A kernel of one's own, in Go, on the host device. The access orders it after
// whatever wrote x and before whatever reads y next; nothing waits until the
// host reads the result.
func Example() {
	ctx := context.Background()
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	r, err := runtime.Here(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := buffer.Of(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := m.New(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Free()
	y, err := m.New(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer y.Free()
	err = x.HostWrite(ctx, func(b []byte) error { copy(b, []byte{1, 2, 3, 4}); return nil })
	if err != nil {
		fmt.Println(err)
		return
	}

	s, err := r.Streams().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Release()
	acc := buffer.Begin(s)
	from, to := acc.Read(x), acc.Write(y)
	if acc.Err() == nil {
		err = s.Call(func() {
			in, out := buffer.Elements[byte](from, 4), buffer.Elements[byte](to, 4)
			for i := range out {
				out[i] = in[i] * in[i]
			}
		})
	}
	fmt.Println(err, acc.End())

	err = y.HostRead(ctx, func(b []byte) error { fmt.Println(b); return nil })
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// [1 4 9 16]
	// <nil>
}

// A partition gives several buffers one allocation. They are accessed
// independently.
func ExampleBuffer_Partition() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	r, _ := runtime.Here(context.Background())
	m, _ := buffer.Of(r)
	whole, err := m.New(100)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := whole.Partition(buffer.Range{Bytes: 60}, buffer.Range{Offset: 60, Bytes: 40})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(whole.Live(), parts[0].Bytes(), parts[1].Bytes())
	fmt.Println(parts[0].Free(), parts[1].Free())
	// Output:
	// false 60 40
	// <nil> <nil>
}
