package raft

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAHostDeviceHasNoRAFT(t *testing.T) {
	rt, err := runtime.StartFamilies([]driver.Family{host.New(host.Options{})}, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "raft.Acquire on host:0: RAFT computes on CUDA devices; expected one"
	for range 2 {
		if _, err := Acquire(context.Background()); !errors.Is(err, weir.ErrNotSupported) || err.Error() != want {
			t.Errorf("got %v; expected %s", err, want)
		}
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutARuntimeThereIsNoLease(t *testing.T) {
	if _, err := Acquire(context.Background()); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("got %v; expected ErrNotStarted", err)
	}
	for name, err := range map[string]error{
		"Gemm": Gemm(&Lease{}, &Product{}), "Reduce": Reduce(&Lease{}, &Reducing{}),
		"SelectK": SelectK(&Lease{}, &Selection{}), "RandomizedSVD": RandomizedSVD(&Lease{}, &Decomposition{}),
	} {
		if !errors.Is(err, weir.ErrStale) {
			t.Errorf("%s of the zero lease answers %v; expected ErrStale", name, err)
		}
	}
}

// TestAViewIsLaidOutAsInTheHeader array.h, whose own assertions are these numbers.
func TestAViewIsLaidOutAsInTheHeader(t *testing.T) {
	var v view
	for what, c := range map[string][2]uintptr{
		"size": {unsafe.Sizeof(v), 152}, "data": {unsafe.Offsetof(v.data), 0}, "dtype": {unsafe.Offsetof(v.dtype), 8},
		"memory": {unsafe.Offsetof(v.memory), 12}, "device": {unsafe.Offsetof(v.device), 16}, "rank": {unsafe.Offsetof(v.rank), 20},
		"shape": {unsafe.Offsetof(v.shape), 24}, "strides": {unsafe.Offsetof(v.strides), 88},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d; expected %d", what, c[0], c[1])
		}
	}
}
