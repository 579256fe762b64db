package solver_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/provider/solver"
	"github.com/weirgo/weir/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errCause = errors.New("the cause that the test gave")

// rig is a runtime of host devices, whose calls are counted and can fail and
// whose work runs on goroutines of its own.
type rig struct {
	t    testing.TB
	plan *fault.Plan
	rt   *runtime.Runtime
	r    *runtime.Resources // of the first device
}

func newRig(t testing.TB, devices, streams int) *rig {
	t.Helper()
	r := &rig{t: t, plan: &fault.Plan{}}
	family := fault.New(host.New(host.Options{HandOver: true, Devices: devices}), r.plan)
	var err error
	r.rt, err = runtime.StartFamilies([]driver.Family{family}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: streams}})
	if err != nil {
		t.Fatal(err)
	}
	if r.r, err = runtime.Here(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.rt.Close(); err != nil {
		r.t.Errorf("Close answers %v", err)
	}
	if n := r.plan.Counts(); n[fault.DeviceNewSolver] != n[fault.SolverDestroy] {
		r.t.Errorf("%d handles were made and %d destroyed", n[fault.DeviceNewSolver], n[fault.SolverDestroy])
	}
}

func (r *rig) acquire() *solver.Lease {
	r.t.Helper()
	l, err := solver.AcquireOn(context.Background(), r.r)
	if err != nil {
		r.t.Fatal(err)
	}
	return &l
}

func (r *rig) release(l *solver.Lease) {
	r.t.Helper()
	if err := l.Release(); err != nil {
		r.t.Errorf("Release answers %v", err)
	}
}

func (r *rig) count(call fault.Call) int { return r.plan.Counts()[call] }

// matrix is device memory of a 2×2 float64 matrix and its singular values.
type matrix struct {
	r  *rig
	at driver.Ptr
}

// matrix makes one with columns (a, c) and (b, d).
func (r *rig) matrix(a, b, c, d float64) *matrix {
	r.t.Helper()
	p, err := r.r.Device().Driver().Alloc(6 * 8)
	if err != nil {
		r.t.Fatal(err)
	}
	r.onStream(func(s driver.Stream) error {
		bytes, err := binary.Append(nil, binary.NativeEndian, []float64{a, c, b, d, -1, -1})
		return errors.Join(err, s.CopyIn(p, bytes))
	})
	return &matrix{r, p}
}

func (m *matrix) decomposition() *solver.Decomposition {
	return &solver.Decomposition{DType: dtype.Float64, Factors: solver.None, M: 2, N: 2, A: m.at, S: m.at + 32, LDA: 2}
}

// values are the singular values, once they are there.
func (m *matrix) values() []float64 {
	m.r.t.Helper()
	bytes, values := make([]byte, 16), make([]float64, 2)
	m.r.onStream(func(s driver.Stream) error { return s.CopyOut(bytes, m.at+32) })
	if _, err := binary.Decode(bytes, binary.NativeEndian, values); err != nil {
		m.r.t.Fatal(err)
	}
	return values
}

func (m *matrix) free() {
	m.r.t.Helper()
	if err := m.r.r.Device().Driver().Free(m.at); err != nil {
		m.r.t.Error(err)
	}
}

// onStream gives work to a stream and waits for it.
func (r *rig) onStream(do func(s driver.Stream) error) {
	r.t.Helper()
	s, err := r.r.Streams().Acquire(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	d, err := s.Submit()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(do(d), s.Synchronize(context.Background()), s.Release()); err != nil {
		r.t.Fatal(err)
	}
}
