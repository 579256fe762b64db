// The program finds three clusters among 300 points with a C++ library that is built
// against Weir's native interface. From the module's root, after make native:
//
//	WEIR_NATIVE_LIBRARY_PATH=build/native go run ./examples/native-canary
//
// docs/native.md explains how the library, and canary.go, are made.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func main() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	ctx, free := tensor.Scope(ctx)
	defer free()
	session, err := native.NewSession(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	c, err := Open(ctx, "libcanary.so")
	if err != nil {
		return err
	}
	points, err := tensor.Empty(ctx, tensor.Float32, 300, 2)
	if err != nil {
		return err
	}
	labels, err := tensor.Empty(ctx, tensor.Int32, 300)
	if err != nil {
		return err
	}
	if err := c.Blobs(ctx, session, points, labels, 3, 7); err != nil {
		return err
	}
	centroids, err := tensor.Empty(ctx, tensor.Float32, 3, 2)
	if err != nil {
		return err
	}
	if _, _, err := c.Fit(ctx, session, points, nil, centroids, 42); err != nil {
		return err
	}
	if _, err := c.Predict(ctx, session, centroids, points, labels); err != nil {
		return err
	}
	for cluster := range 3 {
		indices, rows, err := c.Members(ctx, session, points, labels, cluster)
		if err != nil {
			return err
		}
		fmt.Printf("cluster %d has %d points; their array is %v\n", cluster, indices.Size(), rows.Shape())
	}
	return nil
}
