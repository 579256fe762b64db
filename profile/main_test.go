package profile_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a pool of streams of a host device whose calls are counted and can fail.
type rig struct {
	t    *testing.T
	plan *fault.Plan
	pool *stream.Pool
	lost int // marks that could not be made
	kill func(error)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, plan: &fault.Plan{}}
	d, err := fault.New(host.New(host.Options{HandOver: true}), r.plan).Open(0)
	r.ok(err)
	r.pool, err = stream.NewPool(d, stream.Options{Count: 2})
	r.ok(err)
	r.kill = d.(interface{ Kill(error) }).Kill
	t.Cleanup(func() {
		if err := r.pool.Close(); err != nil && d.Err() == nil {
			t.Error(err)
		}
		if n := r.marks(); n != 0 {
			t.Errorf("%d marks are left", n)
		}
	})
	return r
}

// marks is how many marks there are.
func (r *rig) marks() int {
	n := r.plan.Counts()
	return n[fault.DeviceNewMark] - r.lost - n[fault.MarkDestroy]
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(weir.Report(err))
	}
}

// lease answers a stream that the test may release itself.
func (r *rig) lease() stream.Stream {
	r.t.Helper()
	s, ok, err := r.pool.TryAcquire()
	r.ok(err)
	if !ok {
		r.t.Fatal("no stream is idle")
	}
	r.t.Cleanup(func() { _ = s.Release() }) // of a lost device it answers the loss
	return s
}

// stall holds s back until the answer is called, which says for how long it was
// held at least.
func (r *rig) stall(s stream.Stream) (release func() time.Duration) {
	r.t.Helper()
	held, gate := make(chan struct{}), make(chan struct{})
	r.ok(s.Call(func() {
		close(held)
		<-gate
	}))
	<-held
	begun := time.Now()
	return func() time.Duration {
		d := time.Since(begun)
		close(gate)
		return d
	}
}
