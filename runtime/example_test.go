package runtime_test

import (
	"context"
	"fmt"

	"github.com/weirgo/weir/runtime"
)

// A program starts Weir once, in main, and closes it at the end.
func Example() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := runtime.Default()
	fmt.Println(d, err)
	fmt.Println(rt.Close())
	// Output:
	// host:0 <nil>
	// <nil>
}

// The context names the device on which constructors make arrays.
func ExampleOn() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly, HostDevices: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	second, err := runtime.Get("host:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	here, _ := runtime.At(ctx)
	there, _ := runtime.At(runtime.On(ctx, second))
	fmt.Println(here, there)
	// Output: host:0 host:1
}

// Without a GPU, a program that must not fall back learns why there is none.
func ExampleDefault() {
	rt, err := runtime.Start(runtime.Options{Devices: []string{"host:0"}, Host: runtime.HostNever})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	_, err = runtime.Default()
	fmt.Println(err != nil)
	// Output: true
}
