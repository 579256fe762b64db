//go:build cuda

package cuda_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// decompositions makes two streams and a solver, decomposes a long and then a
// larger wide matrix, one on each stream, and answers the errors of all calls.
func decompositions(d driver.Device) (all []error) {
	note := func(err error) bool {
		if err != nil {
			all = append(all, err)
		}
		return err == nil
	}
	p, err := d.Alloc(1 << 12)
	if !note(err) {
		return all
	}
	defer func() { note(d.Free(p)) }()
	h, err := d.NewSolver()
	if !note(err) {
		return all
	}
	defer func() { note(h.Destroy()) }()
	for i := range int64(2) {
		s, err := d.NewStream(0)
		if !note(err) {
			return all
		}
		defer func() { note(s.Destroy()) }()
		note(s.Zero(p, 1<<12))
		m, n := 3+3*i, 2+6*i
		note(h.SVD(s, &driver.SVD{DType: dtype.Float64, Factors: driver.FactorsThin, M: m, N: n,
			A: p, S: p + 1024, U: p + 2048, VH: p + 3072, LDA: m, LDU: m, LDVH: min(m, n)}))
	}
	return all
}

// TestEveryCallOfADecompositionThatFailsIsToldAndLeavesNothing has each call of
// the driver and of cuSOLVER fail once, at each place.
func TestEveryCallOfADecompositionThatFailsIsToldAndLeavesNothing(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	if errs := decompositions(d); errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	awaitNone(t, "context")
	for function, want := range map[string]struct {
		code int
		name string
	}{
		"cuEventCreate": {1, "CUDA_ERROR_INVALID_VALUE"}, "cuMemAlloc_v2": {1, "CUDA_ERROR_INVALID_VALUE"},
		"cuStreamWaitEvent": {1, "CUDA_ERROR_INVALID_VALUE"}, "cuEventRecord": {1, "CUDA_ERROR_INVALID_VALUE"},
		"cuEventSynchronize": {1, "CUDA_ERROR_INVALID_VALUE"}, "cuMemcpyDtoHAsync_v2": {1, "CUDA_ERROR_INVALID_VALUE"},
		"cuStreamSynchronize": {1, "CUDA_ERROR_INVALID_VALUE"}, "cuLaunchKernel": {1, "CUDA_ERROR_INVALID_VALUE"},
		"cusolverDnCreate": {3, "CUSOLVER_STATUS_INVALID_VALUE"}, "cusolverDnCreateParams": {3, "CUSOLVER_STATUS_INVALID_VALUE"},
		"cusolverDnSetStream": {7, "CUSOLVER_STATUS_INTERNAL_ERROR"}, "cusolverDnXgesvd_bufferSize": {3, "CUSOLVER_STATUS_INVALID_VALUE"},
		"cusolverDnXgesvd": {6, "CUSOLVER_STATUS_EXECUTION_FAILED"},
	} {
		t.Run(function, func(t *testing.T) {
			before := cudatest.Count(function)
			decompositions(d)
			awaitNone(t, "context")
			calls := cudatest.Count(function) - before
			if calls == 0 {
				t.Fatal("it is never called")
			}
			for nth := 1; nth <= calls; nth++ {
				cudatest.Fail(function, nth, want.code)
				told := decompositions(d)
				if len(told) == 0 {
					t.Errorf("call %d of %d failed and nobody was told", nth, calls)
				}
				for _, err := range told {
					var e *weir.Error
					if !errors.As(err, &e) || e.Code != want.code || e.Name != want.name || e.Device != "cuda:0" || e.Op == "" {
						t.Errorf("call %d of %d: %#v", nth, calls, err)
					}
				}
				if err := d.Err(); err != nil {
					t.Fatalf("call %d killed the device: %v", nth, err)
				}
				awaitNone(t, "context")
				for _, kind := range []string{"stream", "event", "module", "allocation", "cusolver"} {
					if n := live(kind); n != 0 {
						t.Fatalf("call %d of %d left %d of kind %s", nth, calls, n, kind)
					}
				}
			}
		})
	}
}

// TestADecompositionThatDoesNotConvergeIsAllNaN has cuSOLVER say so.
func TestADecompositionThatDoesNotConvergeIsAllNaN(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	s, h := must(d.NewStream(0)), must(d.NewSolver())
	p := must(d.Alloc(4096))
	for _, shape := range [][2]int64{{8, 5}, {5, 8}} {
		m, n := shape[0], shape[1]
		for _, factors := range []driver.Factors{driver.FactorsNone, driver.FactorsThin} {
			ok(t, s.Zero(p, 4096))
			cudatest.Fail("info of cusolverDnXgesvd", 1, 3)
			ok(t, h.SVD(s, &driver.SVD{DType: dtype.Float64, Factors: factors, M: m, N: n,
				A: p, S: p + 1024, U: p + 2048, VH: p + 3072, LDA: m, LDU: m, LDVH: 5}))
			for what, at := range map[string]driver.Ptr{"S": p + 1024, "U": p + 2048, "VH": p + 3072} {
				got := make([]float64, map[string]int64{"S": 5, "U": 5 * m, "VH": 5 * n}[what])
				ok(t, s.CopyOut(bytesOf(got), at))
				asked := what == "S" || factors != driver.FactorsNone
				if slices.ContainsFunc(got, func(x float64) bool { return (x != x) != asked }) {
					t.Errorf("%d×%d, factors %d: %s is %v; all of it NaN should be %t", m, n, factors, what, got, asked)
				}
			}
		}
	}
	ok(t, errors.Join(d.Free(p), h.Destroy(), s.Destroy()))
}

// TestASolverSaysThatItsWorkspaceDoesNotFit asks for one larger than the device.
func TestASolverSaysThatItsWorkspaceDoesNotFit(t *testing.T) {
	d := must(gpus(t).Open(0))
	s, h := must(d.NewStream(0)), must(d.NewSolver())
	p := must(d.Alloc(4096))
	n := int64(math.Sqrt(float64(d.Capabilities().MemoryBytes) / 8))
	err := h.SVD(s, &driver.SVD{DType: dtype.Float64, Factors: driver.FactorsFull, M: n, N: n + 1, A: p, S: p, U: p, VH: p, LDA: n, LDU: n, LDVH: n + 1})
	var e *weir.Error
	if !errors.Is(err, weir.ErrOutOfMemory) || !errors.As(err, &e) || e.Op != "Solver.SVD" || e.Device != d.Name() {
		t.Errorf("it answers %v; expected ErrOutOfMemory of Solver.SVD", err)
	}
	if held := h.WorkspaceBytes(); held != 0 {
		t.Errorf("it holds %d bytes; expected none", held)
	}
	ok(t, errors.Join(d.Free(p), h.Destroy(), s.Destroy()))
}

func bytesOf(values []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 8*len(values))
}
