package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
)

// direct builds resources that no runtime shares.
func direct(t testing.TB, o runtime.ResourceOptions) (*runtime.Resources, *fault.Plan) {
	t.Helper()
	plan := startHosts(t, runtime.Options{})
	r, err := runtime.NewResources(get("host:0"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the resources: %s", weir.Report(err))
		}
	})
	return r, plan
}

func TestDirectResourcesRefuseToCloseWhileThingsLive(t *testing.T) {
	r, plan := direct(t, runtime.ResourceOptions{Streams: 2})
	b := allocate(t, r, 64)
	s := acquire(t, r)
	l := must(blas.AcquireOn(context.Background(), r))
	before := plan.Counts()
	refuse := func(want int) {
		t.Helper()
		err := r.Close()
		if n := len(unjoin(err)); !errors.Is(err, weir.ErrLeak) || n != want {
			t.Errorf("Close answers %v; expected %d leaks", err, want)
		}
	}
	refuse(4) // a buffer, a stream, a handle and the stream beside it
	if after := plan.Counts(); after[fault.StreamDestroy] != before[fault.StreamDestroy] || after[fault.BLASDestroy] != before[fault.BLASDestroy] {
		t.Error("a refused Close destroyed something")
	}
	allocate(t, r, 32) // they still work; this one is for the collector
	release(t, &l)
	refuse(2)
	release(t, s)
	refuse(1)
	if err := b.Free(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("with nothing alive it answers %v", err)
		}
	}
}

func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return nil
}

func TestDirectResourcesAreApartFromTheInstalledOnes(t *testing.T) {
	r, _ := direct(t, runtime.ResourceOptions{Streams: 1})
	installed := resources("host:0")
	if r == installed || r.Device() != installed.Device() {
		t.Fatalf("they are %p and %p, of %v and %v", r, installed, r.Device(), installed.Device())
	}
	if must(buffer.Of(r)) == must(buffer.Of(installed)) {
		t.Error("they share a memory")
	}
	s := acquire(t, r)
	defer s.Release()
	if live := installed.Live(); len(live) != 0 {
		t.Errorf("the installed ones list %v; expected nothing", live)
	}
	other, ok, err := installed.Streams().TryAcquire()
	if !ok || err != nil {
		t.Errorf("the installed streams are exhausted too: %t, %v", ok, err)
	}
	release(t, other)
}

func TestLiveListsWhatIsHeldNow(t *testing.T) {
	r, _ := direct(t, runtime.ResourceOptions{})
	if live := r.Live(); len(live) != 0 {
		t.Errorf("at first it lists %v", live)
	}
	b, s := allocate(t, r, 77), acquire(t, r)
	want := []runtime.Leak{
		{Kind: "buffer", Bytes: 77, Device: "host:0"},
		{Kind: "stream", Name: "host:0/0", Device: "host:0"},
	}
	if live := r.Live(); !slices.Equal(live, want) {
		t.Errorf("it lists %v; expected %v", live, want)
	}
	if got := fmt.Sprint(want); got != "[buffer of 77 bytes on host:0 stream host:0/0 on host:0]" {
		t.Errorf("leaks print as %s", got)
	}
	release(t, s)
	if err := b.Free(); err != nil {
		t.Error(err)
	}
	if live := r.Live(); len(live) != 0 {
		t.Errorf("at last it lists %v", live)
	}
}

// log is what services of a test write down.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

type service struct {
	name string
	log  *log
}

func (s service) Drain() error         { return s.log.add("drain " + s.name) }
func (s service) Close() error         { return s.log.add("close " + s.name) }
func (s service) Live() []runtime.Leak { return nil }

// Services are known by their types.
type (
	memoryService struct{ service }
	oneProvider   struct{ service }
	twoProvider   struct{ service }
)

func TestServicesDrainThenProvidersCloseThenMemory(t *testing.T) {
	r, _ := direct(t, runtime.ResourceOptions{})
	l := &log{}
	// Made out of their stages' order.
	must(runtime.Use(r, runtime.StageProvider, func(*runtime.Resources) (oneProvider, error) { return oneProvider{service{"one", l}}, nil }))
	must(runtime.Use(r, runtime.StageMemory, func(*runtime.Resources) (memoryService, error) { return memoryService{service{"memory", l}}, nil }))
	must(runtime.Use(r, runtime.StageProvider, func(*runtime.Resources) (twoProvider, error) { return twoProvider{service{"two", l}}, nil }))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	want := []string{"drain two", "drain memory", "drain one", "close two", "close one", "close memory"}
	if !slices.Equal(l.lines, want) {
		t.Errorf("got %v; expected %v", l.lines, want)
	}
}

func TestAServiceIsMadeOnceHoweverManyAskAtOnce(t *testing.T) {
	r, _ := direct(t, runtime.ResourceOptions{})
	var makes atomic.Int32
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			<-gate
			s, err := runtime.Use(r, runtime.StageProvider, func(of *runtime.Resources) (oneProvider, error) {
				if of != r {
					t.Error("made for other resources")
				}
				makes.Add(1)
				return oneProvider{service{"one", &log{}}}, nil
			})
			if err != nil || s.name != "one" {
				t.Errorf("got %v, %v", s, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n := makes.Load(); n != 1 {
		t.Errorf("made %d times; expected once", n)
	}
}

func TestAServiceThatFailedToBeMadeIsTriedAgain(t *testing.T) {
	r, plan := direct(t, runtime.ResourceOptions{})
	plan.FailNth(fault.DeviceNewPool, 1, nil)
	if _, err := buffer.Of(r); !errors.Is(err, fault.ErrInjected) {
		t.Errorf("got %v; expected the failure", err)
	}
	if _, err := buffer.Of(r); err != nil {
		t.Errorf("the next use answers %v", err)
	}
}

func TestNothingIsMadeAfterClose(t *testing.T) {
	r, plan := direct(t, runtime.ResourceOptions{})
	m := must(buffer.Of(r))
	plan.FailNth(fault.DeviceNewBLAS, 1, nil)
	if _, err := blas.Of(r); !errors.Is(err, fault.ErrInjected) {
		t.Fatalf("got %v; expected the failure", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	before := plan.Counts()[fault.Any]
	_, err := blas.Of(r) // its type is known, it was never made
	refuses(t, err, weir.ErrClosed, "runtime.Use on host:0: the resources are closed")
	_, err = runtime.Use(r, runtime.StageProvider, func(*runtime.Resources) (oneProvider, error) {
		t.Error("made")
		return oneProvider{}, nil
	})
	refuses(t, err, weir.ErrClosed, "runtime.Use on host:0: the resources are closed")
	_, err = m.New(8)
	refuses(t, err, weir.ErrClosed, "buffer.New on host:0: the device's memory is closed")
	_, err = m.New(8 << 20)
	refuses(t, err, weir.ErrClosed, "buffer.New on host:0: the device's memory is closed")
	_, err = r.Streams().Acquire(context.Background())
	refuses(t, err, weir.ErrClosed, "stream.Acquire on host:0: the pool is closed")
	if n := plan.Counts()[fault.Any] - before; n != 0 {
		t.Errorf("%d driver calls were made after Close", n)
	}
}

// Whatever is made while Close begins is either refused or closed.
func TestAServiceMadeWhileClosingIsNotForgotten(t *testing.T) {
	startHosts(t, runtime.Options{})
	for range 50 {
		r := must(runtime.NewResources(get("host:0"), runtime.ResourceOptions{Streams: 1}))
		l := &log{}
		var err error
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err = runtime.Use(r, runtime.StageProvider, func(*runtime.Resources) (oneProvider, error) {
				for range 100 { // Close may come in between
					goruntime.Gosched()
				}
				return oneProvider{service{"one", l}}, l.add("make")
			})
		})
		wg.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		made, closed := slices.Contains(l.lines, "make"), slices.Contains(l.lines, "close one")
		if made != closed || made != (err == nil) || err != nil && !errors.Is(err, weir.ErrClosed) {
			t.Fatalf("Use answers %v; the log is %v", err, l.lines)
		}
	}
}

func TestResourcesThatFailToBeBuiltGiveEverythingBack(t *testing.T) {
	plan := startHosts(t, runtime.Options{})
	for n := 1; n <= 4; n++ { // three streams and the one for memory
		before := plan.Counts()
		plan.FailNth(fault.DeviceNewStream, n, nil)
		_, err := runtime.NewResources(get("host:0"), runtime.ResourceOptions{Streams: 3})
		if !errors.Is(err, fault.ErrInjected) {
			t.Errorf("stream %d: %v; expected the failure", n, err)
		}
		after := plan.Counts()
		if made, gone := after[fault.DeviceNewStream]-before[fault.DeviceNewStream]-1, after[fault.StreamDestroy]-before[fault.StreamDestroy]; made != gone {
			t.Errorf("stream %d failed: %d were made and %d destroyed", n, made, gone)
		}
	}
}
