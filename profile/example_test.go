package profile_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weirgo/weir/profile"
	"github.com/weirgo/weir/runtime"
)

// How long did the device take for one piece of work?
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
	s, err := r.Streams().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Release()

	t, err := profile.Begin(s)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Release()
	sum := 0
	if err := s.Call(func() {
		for i := range 10_000_000 {
			sum += i % 3
		}
	}); err != nil {
		log.Fatal(err)
	}
	if err := t.End(); err != nil {
		log.Fatal(err)
	}
	took, err := t.Elapsed(ctx) // waits for the work
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum, took > 100*time.Microsecond, took < time.Minute)
	// Output: 9999999 true true
}
