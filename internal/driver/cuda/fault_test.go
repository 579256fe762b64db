//go:build cuda

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// everything makes, uses and destroys one thing of each kind, and answers the
// errors of all calls. What could not be made is not used.
func everything(d driver.Device) (all []error) {
	note := func(err error) bool {
		if err != nil {
			all = append(all, err)
		}
		return err == nil
	}
	// finish waits, once more if the first time failed, as what follows needs it.
	finish := func(x interface{ Synchronize() error }) {
		if !note(x.Synchronize()) {
			note(x.Synchronize())
		}
	}
	s, err := d.NewStream(0)
	if !note(err) {
		return all
	}
	defer func() { note(s.Destroy()) }()
	other, err := d.NewStream(0)
	if note(err) {
		defer func() { note(other.Destroy()) }()
	}
	e, err := d.NewEvent()
	if note(err) {
		defer func() { note(e.Destroy()) }()
		note(s.Record(e))
		note(s.Wait(e))
		finish(e)
		if other != nil {
			note(other.Record(e))
		}
		_, err = e.Query()
		note(err)
	}
	p, err := d.Alloc(1 << 12)
	if !note(err) {
		return all
	}
	defer func() { note(d.Free(p)) }()
	if h, err := d.AllocHost(64); note(err) {
		note(s.Copy(h, p, 64))
		finish(s)
		note(d.FreeHost(h))
	}
	note(s.Zero(p, 1<<12))
	note(s.CopyIn(p, bytes.Repeat([]byte{1}, 64)))
	note(s.CopyOut(make([]byte, 64), p))
	view := driver.View{Ptr: p, DType: dtype.Float32, Shape: []int64{8}, Strides: []int64{1}}
	note(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: view}))
	if b, err := d.NewBLAS(); note(err) {
		g := &driver.Gemm{DType: dtype.Float32, M: 2, N: 2, K: 2, Alpha: 1, A: p, B: p + 64, C: p + 128, LDA: 2, LDB: 2, LDC: 2, Batch: 1}
		note(b.Gemm(s, g))
		g.Batch, g.StrideA, g.StrideB, g.StrideC = 2, 4, 4, 4
		note(b.Gemm(s, g))
		g.Compute = driver.ComputeTF32
		note(b.Gemm(s, g))
		g.DType, g.Batch = dtype.Int32, 1
		note(b.Gemm(s, g))
		group := driver.GemmGroup{Gemm: *g, As: []driver.Ptr{p, p + 16}, Bs: []driver.Ptr{p + 64, p + 80}, Cs: []driver.Ptr{p + 128, p + 144}}
		group.DType, group.Compute = dtype.Float32, driver.ComputeExact
		note(b.GemmGroups(s, []driver.GemmGroup{group}))
		note(b.GemmGroups(s, []driver.GemmGroup{group, group}))
		note(b.Destroy())
	}
	if x, err := d.NewSolver(); note(err) {
		note(x.Destroy())
	}
	if q, err := d.NewPool(driver.PoolConfig{Limit: 64 << 20}); note(err) {
		if at, err := q.Alloc(s, 1<<10); note(err) {
			note(q.Free(s, at))
		}
		note(q.Trim(0))
		_, err = q.Stats()
		note(err)
		note(q.Destroy())
	}
	woken := make(waker, 1)
	if note(s.Notify(woken)) {
		note(<-woken)
	}
	note(s.Synchronize())
	_, err = s.Query()
	note(err)
	_, _, err = d.Memory()
	note(err)
	return all
}

// TestEveryCallThatFailsIsToldAndLeavesNothing has each call of the driver fail
// once, at each place where the family makes it.
func TestEveryCallThatFailsIsToldAndLeavesNothing(t *testing.T) {
	simulated(t)
	const invalid, status = 1, 7 // CUDA_ERROR_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE
	d := must(gpus(t).Open(0))
	if errs := everything(d); errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	awaitNone(t, "context")
	// How often is asked whether something is done, and whether a wait has to record
	// an event, depends on the time; these calls are made in any case.
	certain := map[string]int{"cuEventQuery": 1, "cuStreamQuery": 1, "cuEventRecord": 6}
	for _, function := range []string{
		"cuDevicePrimaryCtxRetain", "cuStreamCreateWithPriority", "cuEventCreate", "cuEventRecord", "cuEventQuery",
		"cuStreamQuery", "cuStreamWaitEvent", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemcpyAsync", "cuMemsetD8Async",
		"cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuLaunchHostFunc", "cuMemGetInfo_v2",
		"cuMemPoolCreate", "cuMemAllocFromPoolAsync", "cuMemPoolGetAttribute", "cuMemPoolSetAttribute", "cuMemPoolTrimTo",
		"cublasCreate_v2", "cublasSetMathMode", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSgemm_v2_64",
		"cublasSgemmStridedBatched_64", "cublasGemmStridedBatchedEx_64", "cublasSgemmBatched_64", "cublasGemmGroupedBatchedEx_64",
		"cusolverDnCreate",
	} {
		t.Run(function, func(t *testing.T) {
			library := !slices.Contains([]string{"cuD", "cuS", "cuE", "cuM", "cuL"}, function[:3])
			before := cudatest.Count(function)
			everything(d)
			awaitNone(t, "context")
			calls := cudatest.Count(function) - before
			if calls == 0 {
				t.Fatal("it is never called")
			}
			if n, ok := certain[function]; ok {
				calls = min(calls, n)
			}
			for nth := 1; nth <= calls; nth++ {
				code, name := invalid, "CUDA_ERROR_INVALID_VALUE"
				if library {
					code, name = status, "CUBLAS_STATUS_INVALID_VALUE"
					if function == "cusolverDnCreate" {
						code, name = 3, "CUSOLVER_STATUS_INVALID_VALUE"
					}
				}
				cudatest.Fail(function, nth, code)
				told := everything(d)
				for _, err := range told {
					var e *weir.Error
					if !errors.As(err, &e) || e.Code != code || e.Name != name || e.Device != "cuda:0" || e.Op == "" {
						t.Errorf("call %d of %d: %#v", nth, calls, err)
					}
				}
				// A pool with a limit is made once more without the driver's help, and a
				// full trim is only an attempt.
				if len(told) == 0 && !slices.Contains([]string{"cuMemPoolCreate", "cuMemPoolTrimTo"}, function) {
					t.Errorf("call %d of %d failed and nobody was told", nth, calls)
				}
				if err := d.Err(); err != nil {
					t.Fatalf("call %d killed the device: %v", nth, err)
				}
				awaitNone(t, "context")
				for _, kind := range []string{"stream", "event", "pool", "module", "allocation", "host-allocation", "cublas", "cusolver"} {
					if n := live(kind); n != 0 {
						t.Fatalf("call %d of %d left %d of kind %s", nth, calls, n, kind)
					}
				}
			}
		})
	}
}

func TestOutOfMemoryNamesTheSizesAndASmallerBlockIsThere(t *testing.T) {
	d := must(gpus(t).Open(0))
	most := d.Capabilities().MemoryBytes / 3 * 2
	p := must(d.Alloc(most))
	_, err := d.Alloc(most)
	var e *weir.Error
	if !errors.Is(err, weir.ErrOutOfMemory) || !errors.As(err, &e) || e.Kind != weir.KindOutOfMemory || e.Code != 2 ||
		e.Name != "CUDA_ERROR_OUT_OF_MEMORY" || !strings.Contains(e.Message, fmt.Sprintf("asked for %d bytes; ", most)) {
		t.Errorf("two thirds of the memory twice: %#v", err)
	}
	q, err := d.Alloc(1 << 20)
	if err != nil {
		t.Errorf("a small block afterwards: %v", err)
	} else {
		ok(t, d.Free(q))
	}
	ok(t, d.Free(p))
}
