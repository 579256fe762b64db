//go:build !cuda

// The examples run on the host device; a build with the tag cuda is for a GPU machine,
// which has not the library for that.

package native_test

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// beginExample starts a runtime, a session and the canary's library, which make native
// builds, and answers how to end them.
func beginExample() (context.Context, *native.Session, *native.Library, func()) {
	rt := must(runtime.Start(runtime.Options{Host: runtime.HostOnly}))
	ctx, free := tensor.Scope(context.Background())
	s := must(native.NewSession(ctx))
	lib := must(native.Open(ctx, "kmeans-canary", "libcanary.so", native.Exports{
		CheckABI: "kc_check_abi", LastError: "kc_last_error", LastErrorKind: "kc_last_error_kind",
	}))
	return ctx, s, lib, func() {
		if err := errors.Join(free(), s.Close(), rt.Close()); err != nil {
			panic(err)
		}
	}
}

// A short call: arrays are lent for a function, and what the call answers is checked.
func ExampleSession_Do() {
	ctx, s, lib, end := beginExample()
	defer end()
	var blobs func(handle unsafe.Pointer, x, labels *native.View, clusters int32, deviation float64, shuffle int32, lowest, highest float64, seed uint64) int32
	if err := lib.Func("blobs", "kc_make_blobs", &blobs); err != nil {
		panic(err)
	}
	x := must(tensor.Empty(ctx, tensor.Float32, 6, 2))
	labels := must(tensor.Empty(ctx, tensor.Int32, 6))
	err := s.Do(ctx, func(sc *native.Scope) error {
		return lib.Check("blobs", func() int32 { return blobs(sc.Handle(), sc.View(0), sc.View(1), 2, 0.1, 0, -1, 1, 3) })
	}, native.Out(x), native.Out(labels))
	fmt.Println(err, must(tensor.Data[int32](ctx, labels)))
	// Output: <nil> [0 1 0 1 0 1]
}

// A failure has the library's message and kind.
func ExampleChecker_Check() {
	ctx, s, lib, end := beginExample()
	defer end()
	var fit func(handle unsafe.Pointer, x, weights, centroids *native.View, init, most int32, tol float64, runs int32, oversampling float64, seed uint64, inertia *float64, rounds *int32) int32
	if err := lib.Func("kmeans-fit", "kc_fit", &fit); err != nil {
		panic(err)
	}
	integers := must(tensor.From(ctx, []int32{1, 2, 3, 4, 5, 6}, 3, 2))
	centers := must(tensor.Empty(ctx, tensor.Float32, 2, 2))
	var inertia float64
	var rounds int32
	err := s.Do(ctx, func(sc *native.Scope) error {
		return lib.Check("kmeans-fit", func() int32 {
			return fit(sc.Handle(), sc.View(0), nil, sc.View(1), 0, 300, 0.0001, 1, 0, 42, &inertia, &rounds)
		})
	}, native.In(integers), native.InOut(centers))
	var e *weir.Error
	fmt.Println(err)
	fmt.Println(errors.As(err, &e), e.Kind)
	// Output:
	// kmeans-fit: X: expected float32 or float64, got int32
	// true logic
}

// A call that can take long is a job, which is declared once.
func ExampleJob_Run() {
	ctx, s, lib, end := beginExample()
	defer end()
	fit, err := lib.Job("kmeans-fit", "kc_fit_job",
		native.Handle,
		native.ViewIn,    // X
		native.ViewIn,    // weights, or none
		native.ViewInOut, // centroids
		native.Int32, native.Int32, native.Float64, native.Int32, native.Float64, native.Uint64,
		native.OutFloat64, // inertia
		native.OutInt32,   // rounds
	)
	if err != nil {
		panic(err)
	}
	x := must(tensor.From(ctx, []float32{0, 0, 0, 2, 8, 0, 8, 2}, 4, 2))
	centroids := must(tensor.Empty(ctx, tensor.Float32, 2, 2))
	var inertia float64
	var rounds int32
	err = fit.Run(ctx, s, "kmeans-fit", x, nil, centroids, 0, 300, 1e-4, 4, 0.0, 42, &inertia, &rounds)
	fmt.Println(err, inertia, rounds > 0)
	fmt.Println(fit.Run(ctx, s, "kmeans-fit", "not an array", nil, centroids, 0, 300, 1e-4, 4, 0.0, 42, &inertia, &rounds))
	fmt.Println(fit.Run(ctx, s, "kmeans-fit", x, nil, centroids, 0, 300, 1e-4, 1<<40, 0.0, 42, &inertia, &rounds))
	// Output:
	// <nil> 4 true
	// kmeans-fit: expected a device array or nil for a view, given "not an array"
	// kmeans-fit: argument 6: expected a number that int32 holds, given 1099511627776
}

// A session that was closed refuses every use.
func ExampleSession_Handle() {
	ctx, s, _, end := beginExample()
	defer end()
	finished := must(native.NewSession(ctx))
	mine, theirs := must(s.Handle()), must(finished.Handle())
	fmt.Println(mine == theirs, finished.Close())
	_, err := finished.Handle()
	fmt.Println(err)
	// Output:
	// false <nil>
	// Session.Handle: the device resources on device 0 were released
}

// A view says what C sees of an array.
func ExampleScope_View() {
	ctx, s, _, end := beginExample()
	defer end()
	columns := must(tensor.Empty(ctx, tensor.Float32, 2, 300)).T() // its first axis is the fastest
	var kept *native.View
	err := s.Do(ctx, func(sc *native.Scope) error {
		kept = sc.View(0)
		fmt.Println(kept)
		return nil
	}, native.In(columns))
	fmt.Println(kept, err)
	// Output:
	// float32[300×2] strides (1, 300)
	// float32[300×2] strides (1, 300), cleared <nil>
}

// What only the call knows the size of goes into a deposit, once.
func ExampleDeposit() {
	ctx, s, lib, end := beginExample()
	defer end()
	members, err := lib.Job("cluster-members", "kc_cluster_members_job", native.Handle, native.ViewIn, native.ViewIn, native.Int32, native.IntoDeposit)
	if err != nil {
		panic(err)
	}
	x := must(tensor.From(ctx, []float32{0, 0, 9, 9, 1, 1}, 3, 2))
	labels := must(tensor.From(ctx, []int32{0, 1, 0}))
	found := must(s.NewDeposit())
	if err := members.Run(ctx, s, "cluster-members", x, labels, 0, found); err != nil {
		panic(err)
	}
	for _, a := range must(found.Arrays(ctx)) {
		fmt.Println(a)
	}
	fmt.Println(members.Run(ctx, s, "cluster-members", x, labels, 0, found))
	// Output:
	// int64 2 on host:0
	// [0 2]
	// float32 2×2 on host:0
	// [[0 0]
	//  [1 1]]
	// cluster-members: the deposit is closed
}
