//go:build cuda

package profile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/profile"
	"github.com/weirgo/weir/stream"
)

func TestATimerOnAGPUHasItsTimeAndLeavesNothing(t *testing.T) {
	if cudatest.Simulator() == "" {
		t.Skip("the driver is no simulator")
	}
	d, err := cuda.New().Open(0)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := stream.NewPool(d, stream.Options{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	timer, err := profile.Begin(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(context.Background()); err != nil { // past Begin
		t.Fatal(err)
	}
	st, err := s.Submit()
	if err != nil {
		t.Fatal(err)
	}
	release, err := cudatest.Stall(st)
	if err != nil {
		t.Fatal(err)
	}
	if err := timer.End(); err != nil {
		t.Error(err)
	}
	stalled := time.Now()
	atLeast(2 * time.Millisecond)
	held := time.Since(stalled)
	release()
	took, err := timer.Elapsed(t.Context())
	// A float32 of milliseconds has about seven digits.
	if most := time.Since(begun); err != nil || took < held-time.Microsecond || took > most+time.Microsecond {
		t.Errorf("%v, %v; expected from %v to %v", took, err, held, most)
	}
	abandoned, err := profile.Begin(s)
	if err := errors.Join(err, abandoned.Release(), s.Release(), pool.Close()); err != nil {
		t.Error(err)
	}
	if left := cudatest.Left(); left != "" {
		t.Error(left)
	}
}
