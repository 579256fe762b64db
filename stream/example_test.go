package stream_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weirgo/weir/runtime"
)

// Two streams work at the same time; the second one's last piece waits for the
// first one's. The host waits only where it asks to.
func Example() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	r, err := runtime.Here(ctx)
	if err != nil {
		log.Fatal(err)
	}

	a, err := r.Streams().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Release()
	b, err := r.Streams().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Release()

	var x, y int
	must(a.Call(func() { x = 6 }))
	done, err := a.Record() // of all that a was given so far
	must(err)
	must(b.Call(func() { y = 7 }))
	must(b.Wait(done)) // b's later work waits; this goroutine does not
	must(b.Call(func() { y *= x }))

	must(b.Synchronize(ctx))
	fmt.Println(a, b, y)
	// Output: host:0/0 host:0/1 42
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// TryAcquire answers at once, so that a caller can do something else while all
// streams are at work.
func ExamplePool_TryAcquire() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly, ResourceOptions: runtime.ResourceOptions{Streams: 1}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	r, err := runtime.Here(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	streams := r.Streams()

	s, ok, err := streams.TryAcquire()
	must(err)
	fmt.Println("first:", ok)
	gate := make(chan struct{})
	must(s.Call(func() { <-gate }))
	must(s.Release()) // the work goes on, and keeps the stream

	_, ok, err = streams.TryAcquire()
	must(err)
	fmt.Println("while it works:", ok)

	close(gate)
	s, err = streams.Acquire(context.Background()) // waits for it
	must(err)
	fmt.Println("afterwards:", s)
	must(s.Release())
	// Output:
	// first: true
	// while it works: false
	// afterwards: host:0/0
}
