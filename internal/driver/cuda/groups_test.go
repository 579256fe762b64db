//go:build cuda

package cuda_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// ones are groups of products of 1×1, 1×2 … matrices of ones, two of each.
type ones struct {
	d      driver.Device
	s      driver.Stream
	b      driver.BLAS
	memory driver.Ptr
	groups []driver.GemmGroup
	count  int
}

func newOnes(t *testing.T, dt dtype.DType, groups int) *ones {
	d := must(gpus(t).Open(0))
	x := &ones{d: d, s: must(d.NewStream(0)), b: must(d.NewBLAS()), count: 2 * groups}
	x.memory = must(d.Alloc(int64(16 * (x.count + 16))))
	ok(t, x.s.Launch(&driver.Kernel{Op: driver.KernelFill, Alpha: 1, Out: driver.View{Ptr: x.memory, DType: dt, Shape: []int64{16}, Strides: []int64{1}}}))
	results := x.memory + driver.Ptr(16*dt.Size())
	for k := range groups {
		g := driver.GemmGroup{Gemm: driver.Gemm{DType: dt, M: 1, N: 1, K: int64(k + 1), Alpha: 1, LDA: 1, LDB: int64(k + 1), LDC: 1}}
		for range 2 {
			g.As, g.Bs, g.Cs = append(g.As, x.memory), append(g.Bs, x.memory), append(g.Cs, results)
			results += driver.Ptr(dt.Size())
		}
		x.groups = append(x.groups, g)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.b.Destroy(), d.Free(x.memory), x.s.Destroy()); err != nil && d.Err() == nil {
			t.Error(err)
		}
	})
	return x
}

// calls counts the library's functions that submit makes.
func calls(t *testing.T, submit func() error) map[string]int {
	t.Helper()
	functions := []string{"cublasGemmGroupedBatchedEx_64", "cublasGemmBatchedEx_64", "cublasGemmEx_64", "cublasSgemm_v2_64", "cublasSgemmBatched_64",
		"cublasDgemmBatched_64", "cublasCgemmBatched_64", "cublasZgemmBatched_64", "cuMemcpyAsync", "cuLaunchKernel"}
	before := map[string]int{}
	for _, f := range functions {
		before[f] = cudatest.Count(f)
	}
	ok(t, submit())
	made := map[string]int{}
	for _, f := range functions {
		if n := cudatest.Count(f) - before[f]; n > 0 {
			made[f] = n
		}
	}
	return made
}

func TestGroupsAreAsFewLaunchesAsTheLibraryCan(t *testing.T) {
	simulated(t)
	for _, c := range []struct {
		name    string
		dt      dtype.DType
		compute driver.Compute
		groups  int
		want    map[string]int
	}{
		{"one group", dtype.Float64, driver.ComputeExact, 1, map[string]int{"cublasDgemmBatched_64": 1, "cuMemcpyAsync": 1}},
		{"one group in TF32", dtype.Float32, driver.ComputeTF32, 1, map[string]int{"cublasGemmBatchedEx_64": 1, "cuMemcpyAsync": 1}},
		{"several groups", dtype.Float32, driver.ComputeExact, 5, map[string]int{"cublasGemmGroupedBatchedEx_64": 1, "cuMemcpyAsync": 1}},
		{"several groups in TF32", dtype.Float32, driver.ComputeTF32, 3, map[string]int{"cublasGemmGroupedBatchedEx_64": 1, "cuMemcpyAsync": 1}},
		{"several groups in bf16", dtype.Float32, driver.ComputeBF16, 3, map[string]int{"cublasGemmBatchedEx_64": 3, "cuMemcpyAsync": 1}},
		{"several groups of complex elements", dtype.Complex128, driver.ComputeExact, 4, map[string]int{"cublasZgemmBatched_64": 4, "cuMemcpyAsync": 1}},
		{"several groups of narrow elements", dtype.BFloat16, driver.ComputeExact, 2, map[string]int{"cublasGemmGroupedBatchedEx_64": 1, "cuMemcpyAsync": 1}},
		{"groups of integers", dtype.Int64, driver.ComputeExact, 2, map[string]int{"cuLaunchKernel": 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newOnes(t, c.dt, c.groups)
			for i := range x.groups {
				x.groups[i].Compute = c.compute
			}
			ok(t, x.b.GemmGroups(x.s, x.groups)) // the kernels are loaded
			if got := calls(t, func() error { return x.b.GemmGroups(x.s, x.groups) }); !maps.Equal(got, c.want) {
				t.Errorf("the calls are %v; expected %v", got, c.want)
			}
		})
	}
}

func TestASingleProductOfGroupsIsAPlainOne(t *testing.T) {
	simulated(t)
	x := newOnes(t, dtype.Float32, 1)
	g := x.groups[0]
	g.As, g.Bs, g.Cs = g.As[:1], g.Bs[:1], g.Cs[:1]
	got := calls(t, func() error { return x.b.GemmGroups(x.s, []driver.GemmGroup{g}) })
	if !maps.Equal(got, map[string]int{"cublasSgemm_v2_64": 1}) {
		t.Errorf("the calls are %v; expected one of cublasSgemm_v2_64", got)
	}
}

// TestALibraryWithoutGroupedProductsHasABatchForEachGroup fails the grouped
// function as the lazy loader does where there is none.
func TestALibraryWithoutGroupedProductsHasABatchForEachGroup(t *testing.T) {
	simulated(t)
	const notSupported = 15
	x := newOnes(t, dtype.Float64, 3)
	cudatest.Fail("cublasGemmGroupedBatchedEx_64", 1, notSupported)
	got := calls(t, func() error { return x.b.GemmGroups(x.s, x.groups) })
	if got["cublasDgemmBatched_64"] != 3 {
		t.Errorf("the calls are %v; expected three of cublasDgemmBatched_64", got)
	}
	results := make([]float64, x.count)
	ok(t, x.s.CopyOut(unsafe.Slice((*byte)(unsafe.Pointer(&results[0])), 8*len(results)), x.groups[0].Cs[0]))
	if want := []float64{1, 1, 2, 2, 3, 3}; !slices.Equal(results, want) {
		t.Errorf("the products of ones are %v; expected %v", results, want)
	}
}

func TestProductsOnOneStreamRecordNoEvents(t *testing.T) {
	simulated(t)
	x := newOnes(t, dtype.Float64, 1)
	g := x.groups[0].Gemm
	g.A, g.B, g.C, g.Batch = x.memory, x.memory, x.groups[0].Cs[0], 1
	other := must(x.d.NewStream(0))
	defer other.Destroy()
	before := cudatest.Count("cuEventRecord")
	for range 10 {
		ok(t, x.b.Gemm(x.s, &g))
	}
	if n := cudatest.Count("cuEventRecord") - before; n != 0 {
		t.Errorf("%d events were recorded for products of one stream; expected none", n)
	}
	for range 5 {
		ok(t, errors.Join(x.b.Gemm(other, &g), x.b.Gemm(x.s, &g)))
	}
	if n := cudatest.Count("cuEventRecord") - before; n != 10 {
		t.Errorf("%d events were recorded for 10 moves; expected one for each", n)
	}
}

// TestAHandleMovesFromAStreamThatWasDestroyed: the handle's first stream is
// destroyed before its product is done; the next one must still wait for it.
func TestAHandleMovesFromAStreamThatWasDestroyed(t *testing.T) {
	x := newOnes(t, dtype.Float64, 1)
	g := x.groups[0].Gemm
	g.A, g.B, g.C, g.Batch = x.memory, x.memory, x.groups[0].Cs[0], 1
	gone := must(x.d.NewStream(0))
	ok(t, x.b.Gemm(gone, &g)) // the library has what it needs
	ok(t, gone.Synchronize())
	release, err := cudatest.Stall(gone)
	if errors.Is(err, weir.ErrNotSupported) {
		t.Skip(err)
	}
	ok(t, err)
	ok(t, x.b.Gemm(gone, &g))
	ok(t, gone.Destroy())
	if err := x.b.Gemm(gone, &g); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("on the destroyed stream: %v; expected ErrClosed", err)
	}
	ok(t, x.b.Gemm(x.s, &g))
	if done, err := x.s.Query(); done || err != nil {
		t.Errorf("the product on the next stream is done %v, %v; expected it to wait", done, err)
	}
	release()
	ok(t, x.s.Synchronize())
}

// TestAMoveThatFailedIsMadeAgain: a handle whose library took half of a move
// computes on the right stream afterwards.
func TestAMoveThatFailedIsMadeAgain(t *testing.T) {
	simulated(t)
	for _, function := range []string{"cuEventRecord", "cuStreamWaitEvent", "cublasSetStream_v2", "cublasSetWorkspace_v2"} {
		t.Run(function, func(t *testing.T) {
			x := newOnes(t, dtype.Float64, 1)
			g := x.groups[0].Gemm
			g.A, g.B, g.C, g.Batch = x.memory, x.memory, x.groups[0].Cs[0], 1
			ok(t, x.b.Gemm(x.s, &g))
			other := must(x.d.NewStream(0))
			cudatest.Fail(function, 1, 1)
			if err := x.b.Gemm(other, &g); err == nil {
				t.Errorf("%s failed and nobody was told", function)
			}
			release := must(cudatest.Stall(other))
			ok(t, x.b.Gemm(x.s, &g))
			ok(t, x.s.Synchronize()) // would not end if the product were on the other stream
			ok(t, x.b.Gemm(other, &g))
			if done, err := other.Query(); done || err != nil {
				t.Errorf("after %s failed, the product is not on its stream: done %v, %v", function, done, err)
			}
			release()
			ok(t, x.b.Gemm(x.s, &g))
			ok(t, x.s.Synchronize())
			ok(t, other.Destroy())
		})
	}
}
