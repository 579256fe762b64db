package provider_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/provider"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "300"); err != nil { // the command line still has the last word
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var errCause = errors.New("the cause that the test gave")

// tool is a library's handle, as these tests have it.
type tool struct {
	shop *shop
	id   int
	used sync.Mutex // held by who uses it; never waited for
}

func (*tool) WorkspaceBytes() int64 { return 0 }

func (t *tool) Destroy() error {
	t.shop.mu.Lock()
	defer t.shop.mu.Unlock()
	t.shop.destroyed = append(t.shop.destroyed, t.id)
	return t.shop.destroyErr
}

// shop makes tools, numbered from 0.
type shop struct {
	mu         sync.Mutex // guards all below
	made       int
	failAt     int // the tool that can't be made, from 1; 0 is none
	destroyed  []int
	destroyErr error
}

func (s *shop) make() (*tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failAt > 0 && s.made+1 >= s.failAt {
		return nil, errCause
	}
	s.made++
	return &tool{shop: s, id: s.made - 1}, nil
}

type (
	executor  = provider.Executor[*tool]
	execution = provider.Execution[*tool]
)

// rig is a runtime of one host device, whose calls are counted and can fail and
// whose work runs on goroutines of its own, with an executor over a shop.
type rig struct {
	*shop
	t    *testing.T
	plan *fault.Plan
	rt   *runtime.Runtime
	r    *runtime.Resources
	dev  driver.Device
	e    *executor
}

func newRig(t *testing.T, streams, tools int) *rig {
	t.Helper()
	r := &rig{shop: &shop{}, t: t, plan: &fault.Plan{}}
	family := fault.New(host.New(host.Options{HandOver: true}), r.plan)
	var err error
	r.rt, err = runtime.StartFamilies([]driver.Family{family}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: streams}})
	if err != nil {
		t.Fatal(err)
	}
	r.r, err = runtime.Here(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.dev = r.r.Device().Driver()
	r.e, err = runtime.Use(r.r, runtime.StageProvider, func(res *runtime.Resources) (*executor, error) {
		return provider.NewExecutor(res, "tool", tools, r.make)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// close closes a healthy runtime and checks that every tool was destroyed once.
func (r *rig) close() {
	r.t.Helper()
	if err := r.rt.Close(); err != nil {
		r.t.Errorf("Close answers %v", err)
	}
	r.expectAllDestroyed()
}

func (r *rig) expectAllDestroyed() {
	r.t.Helper()
	seen := map[int]int{}
	for _, id := range r.destroyed {
		seen[id]++
	}
	for id := range r.made {
		if seen[id] != 1 {
			r.t.Errorf("tool %d was destroyed %d times; expected once", id, seen[id])
		}
	}
}

func (r *rig) kill() { r.dev.(interface{ Kill(error) }).Kill(errCause) }

// take leases a tool and a stream, which must both be free.
func (r *rig) take() *execution {
	r.t.Helper()
	x, ok, err := r.e.TryAcquire()
	if !ok || err != nil {
		r.t.Fatalf("a tool and a stream should be free; got %v, %v", ok, err)
	}
	return &x
}

type result struct {
	x   *execution
	err error
}

// acquire starts an Acquire and lets it come to rest.
func (r *rig) acquire(ctx context.Context) <-chan result {
	answer := make(chan result, 1)
	go func() {
		x, err := r.e.Acquire(ctx)
		answer <- result{&x, err}
	}()
	synctest.Wait()
	return answer
}

func (r *rig) release(x *execution) {
	r.t.Helper()
	if err := x.Release(); err != nil {
		r.t.Errorf("Release answers %v", err)
	}
}

// stall gives the stream work that lasts until the answer is called.
func (r *rig) stall(s stream.Stream) (end func()) {
	r.t.Helper()
	gate := make(chan struct{})
	if err := s.Call(func() { <-gate }); err != nil {
		r.t.Fatal(err)
	}
	return func() { close(gate) }
}

// id is the number of the leased tool.
func id(x *execution) int {
	h, err := x.Value()
	if err != nil {
		panic(err)
	}
	return h.id
}

// counts renders the states of a pool.
func counts(p interface {
	Counts() (idle, leased, pending, waiting int)
}) string {
	idle, leased, pending, waiting := p.Counts()
	return fmt.Sprintf("%d idle, %d leased, %d pending, %d waiting", idle, leased, pending, waiting)
}

func (r *rig) expect(tools, streams string) {
	r.t.Helper()
	if a, b := counts(r.e), counts(r.r.Streams()); a != tools || b != streams {
		r.t.Errorf("tools: %s; streams: %s; expected %s and %s", a, b, tools, streams)
	}
}
