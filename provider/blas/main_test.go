package blas_test

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
	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
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
	family := host.New(host.Options{HandOver: true, Devices: devices, BLAS: hostblas.Open("gonum")})
	r.start(fault.New(family, r.plan), streams)
	return r
}

func (r *rig) start(family driver.Family, streams int) {
	r.t.Helper()
	var err error
	r.rt, err = runtime.StartFamilies([]driver.Family{family}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: streams}})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.r, err = runtime.Here(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.rt.Close(); err != nil {
		r.t.Errorf("Close answers %v", err)
	}
	if n := r.plan.Counts(); n[fault.DeviceNewBLAS] != n[fault.BLASDestroy] {
		r.t.Errorf("%d handles were made and %d destroyed", n[fault.DeviceNewBLAS], n[fault.BLASDestroy])
	}
}

func (r *rig) acquire() *blas.Lease {
	r.t.Helper()
	l, err := blas.AcquireOn(context.Background(), r.r)
	if err != nil {
		r.t.Fatal(err)
	}
	return &l
}

func (r *rig) release(l *blas.Lease) {
	r.t.Helper()
	if err := l.Release(); err != nil {
		r.t.Errorf("Release answers %v", err)
	}
}

func (r *rig) count(call fault.Call) int { return r.plan.Counts()[call] }

// matrices is device memory of n×n float64 matrices.
type matrices struct {
	r    *rig
	n    int64
	base driver.Ptr
}

// matrices makes as many as there are contents, in column-major order.
func (r *rig) matrices(n int64, contents ...[]float64) *matrices {
	r.t.Helper()
	m := &matrices{r: r, n: n}
	var err error
	if m.base, err = r.r.Device().Driver().Alloc(8 * n * n * int64(len(contents))); err != nil {
		r.t.Fatal(err)
	}
	l := r.stream()
	for i, c := range contents {
		bytes, err := binary.Append(nil, binary.NativeEndian, c)
		d, err2 := l.Submit()
		if err := errors.Join(err, err2, d.CopyIn(m.at(i), bytes)); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := errors.Join(l.Synchronize(context.Background()), l.Release()); err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) stream() stream.Stream {
	r.t.Helper()
	s, err := r.r.Streams().Acquire(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (m *matrices) at(i int) driver.Ptr { return m.base + driver.Ptr(8*m.n*m.n*int64(i)) }

// all answers the addresses of matrices.
func (m *matrices) all(numbers ...int) (at []driver.Ptr) {
	for _, i := range numbers {
		at = append(at, m.at(i))
	}
	return at
}

// product is matrix c = a·b + beta·c.
func (m *matrices) product(a, b, c int, beta float64) *blas.Product {
	return &blas.Product{DType: dtype.Float64, M: m.n, N: m.n, K: m.n, Alpha: 1, Beta: complex(beta, 0),
		A: m.at(a), B: m.at(b), C: m.at(c), LDA: m.n, LDB: m.n, LDC: m.n, Batch: 1}
}

// read answers matrix i once all streams are done.
func (m *matrices) read(i int) []float64 {
	m.r.t.Helper()
	s := m.r.stream()
	d, err := s.Submit()
	if err != nil {
		m.r.t.Fatal(err)
	}
	bytes := make([]byte, 8*m.n*m.n)
	values := make([]float64, m.n*m.n)
	if err := d.CopyOut(bytes, m.at(i)); err != nil {
		m.r.t.Fatal(err)
	}
	if _, err := binary.Decode(bytes, binary.NativeEndian, values); err != nil {
		m.r.t.Fatal(err)
	}
	if err := s.Release(); err != nil {
		m.r.t.Fatal(err)
	}
	return values
}

func (m *matrices) free() {
	m.r.t.Helper()
	if err := m.r.r.Device().Driver().Free(m.base); err != nil {
		m.r.t.Error(err)
	}
}

// multiply is the plain a·b + beta·c, column-major.
func multiply(n int64, a, b, c []float64, beta float64) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				out[i+j*n] += a[i+k*n] * b[k+j*n]
			}
			if beta != 0 {
				out[i+j*n] += beta * c[i+j*n]
			}
		}
	}
	return out
}
