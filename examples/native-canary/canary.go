package main

// What a downstream author writes in Go for the library in cpp: k-means, written in C++
// against Weir's native interface. It would be a package of its own.

import (
	"context"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/tensor"
)

// Error is what the library's calls fail with.
type Error struct{ Cause *weir.Error }

func (e *Error) Error() string { return e.Cause.Error() }
func (e *Error) Unwrap() error { return e.Cause }

// Canary is the loaded library. It is safe for concurrent use.
type Canary struct {
	lib   *native.Library
	blobs func(handle unsafe.Pointer, x, labels *native.View, clusters int32, deviation float64, shuffle int32,
		lowest, highest float64, seed uint64) int32
	fit, predict, members *native.Job
}

// Open loads the library for ctx's device. path is its file, or its name, which is
// looked for in the folders of WEIR_NATIVE_LIBRARY_PATH.
func Open(ctx context.Context, path string) (*Canary, error) {
	const who = "canary.Open"
	lib, err := native.Open(ctx, who, path, native.Exports{
		CheckABI: "kc_check_abi", LastError: "kc_last_error", LastErrorKind: "kc_last_error_kind",
		Wrap: func(e *weir.Error) error { return &Error{e} },
	})
	if err != nil {
		return nil, err
	}
	c := &Canary{lib: lib}
	if err := lib.Func(who, "kc_make_blobs", &c.blobs); err != nil {
		return nil, err
	}
	for _, j := range []struct {
		job    **native.Job
		symbol string
		params []native.Param
	}{
		{&c.fit, "kc_fit_job", []native.Param{native.Handle,
			native.ViewIn,     // x
			native.ViewIn,     // weights, or none
			native.ViewInOut,  // centroids
			native.Int32,      // init
			native.Int32,      // max_iter
			native.Float64,    // tol
			native.Int32,      // n_init
			native.Float64,    // oversampling
			native.Uint64,     // seed
			native.OutFloat64, // inertia
			native.OutInt32,   // n_iter
		}},
		{&c.predict, "kc_predict_job", []native.Param{native.Handle, native.ViewIn, native.ViewIn, native.ViewIn,
			native.Int32, native.ViewOut, native.OutFloat64}},
		{&c.members, "kc_cluster_members_job", []native.Param{native.Handle, native.ViewIn, native.ViewIn,
			native.Int32, native.IntoDeposit}},
	} {
		if *j.job, err = lib.Job(who, j.symbol, j.params...); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Blobs fills x, n×d, with clusters of normally distributed rows, and labels, n of
// int32, with each row's cluster. It takes no time worth a job.
func (c *Canary) Blobs(ctx context.Context, s *native.Session, x, labels *tensor.Array, clusters int, seed uint64) error {
	return s.Do(ctx, func(sc *native.Scope) error {
		return c.lib.Check("canary.Blobs", func() int32 {
			return c.blobs(sc.Handle(), sc.View(0), sc.View(1), int32(clusters), 1, 1, -10, 10, seed)
		})
	}, native.Out(x), native.Out(labels))
}

// Fit finds k centroids, k×d, of the rows of x, and answers the sum of squared
// distances from them and the number of rounds. weights, one for each row, may be nil.
func (c *Canary) Fit(ctx context.Context, s *native.Session, x, weights, centroids *tensor.Array, seed uint64) (inertia float64, rounds int, err error) {
	const farApart, most, tolerance, runs, oversampling = 0, 300, 1e-4, 1, 0.0
	var n int32
	err = c.fit.Run(ctx, s, "canary.Fit", x, weights, centroids, farApart, most, tolerance, runs, oversampling, seed, &inertia, &n)
	return inertia, int(n), err
}

// Predict writes the nearest centroid of each row of x to labels, n of int32.
func (c *Canary) Predict(ctx context.Context, s *native.Session, centroids, x, labels *tensor.Array) (inertia float64, err error) {
	err = c.predict.Run(ctx, s, "canary.Predict", centroids, x, nil, 0, labels, &inertia)
	return inertia, err
}

// Members answers the indices of the rows of one cluster, int64, and these rows: how
// many there are only the call knows.
func (c *Canary) Members(ctx context.Context, s *native.Session, x, labels *tensor.Array, cluster int) (indices, rows *tensor.Array, err error) {
	found, err := s.NewDeposit()
	if err != nil {
		return nil, nil, err
	}
	if err := c.members.Run(ctx, s, "canary.Members", x, labels, cluster, found); err != nil {
		return nil, nil, err
	}
	all, err := found.Arrays(ctx)
	if err != nil {
		return nil, nil, err
	}
	return all[0], all[1], nil
}
