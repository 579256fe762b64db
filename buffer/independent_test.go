package buffer_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// others is two streams and two buffers that nobody else has.
type others struct {
	w    *world
	s    []stream.Stream
	x, y *buffer.Buffer
}

func newOthers(w *world) *others { return &others{w, w.streams(2), w.new(64), w.new(64)} }

// use reads, writes and copies from one to the other, on both streams in turn,
// each of which waits for the other.
func (o *others) use(rounds int) error {
	for i := range rounds {
		acc := buffer.Begin(o.s[i&1])
		acc.Read(o.x)
		acc.Write(o.y)
		if _, err := o.s[i&1].Submit(); err != nil {
			return err
		}
		if err := acc.End(); err != nil {
			return err
		}
		o.x, o.y = o.y, o.x
	}
	return nil
}

// goOn checks that use ends without further help.
func (o *others) goOn(when string) {
	o.w.tb.Helper()
	var err error
	soon(o.w.tb, func() { err = o.use(200) })
	if err != nil {
		o.w.tb.Errorf("%s: %v", when, err)
	}
}

// TestAnAccessThatIsStuckInTheDriverHoldsUpNoOther on other buffers and streams
// of its device, whichever of its calls it is stuck in.
func TestAnAccessThatIsStuckInTheDriverHoldsUpNoOther(t *testing.T) {
	for _, call := range []fault.Call{fault.StreamWait, fault.DeviceNewEvent, fault.StreamRecord} {
		t.Run(string(call), func(t *testing.T) {
			w := newWorld(t, options{})
			o, s, b := newOthers(w), w.streams(2), w.new(64)
			defer func() { w.free(o.x, o.y, b) }()
			o.goOn("before anything is stuck")
			release := w.stall(s[0])
			w.write(s[0], b, nil) // s[1] will wait for it

			var once atomic.Bool
			stuck, gate := make(chan struct{}), make(chan struct{})
			free := sync.OnceFunc(func() { close(gate) })
			defer free()
			w.plan.Delay(call, func() {
				if once.CompareAndSwap(false, true) {
					close(stuck)
					<-gate
				}
			})
			ended := make(chan error, 1)
			go func() { ended <- writeOften(s[1], b) }()
			arrives(t, stuck)
			o.goOn("while one is stuck")
			free()
			w.ok(<-ended)
			release()
		})
	}
}

// writeOften opens accesses of b on s until it has made every call of the driver
// that an access can make.
func writeOften(s stream.Stream, b *buffer.Buffer) error {
	for range 5 {
		acc := buffer.Begin(s)
		acc.Write(b)
		_, err := s.Submit()
		if err := errors.Join(err, acc.End()); err != nil {
			return err
		}
	}
	return nil
}

// TestAnAccessNeedsNoLockOfAnotherBufferOrOfItsDevicesMemory.
func TestAnAccessNeedsNoLockOfAnotherBufferOrOfItsDevicesMemory(t *testing.T) {
	w := newWorld(t, options{})
	o, b := newOthers(w), w.new(64)
	defer func() { w.free(o.x, o.y, b) }()
	defer buffer.HoldLocks(b)()
	o.goOn("while the locks are held")
}

// TestAccessesOfIndependentBuffersNeverContend asks Go's own profile whether any
// lock was waited for under an access, whoever it belongs to.
func TestAccessesOfIndependentBuffersNeverContend(t *testing.T) {
	const goroutines, most = 4, 50
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(max(goroutines, goruntime.NumCPU())))
	defer goruntime.SetMutexProfileFraction(goruntime.SetMutexProfileFraction(1))
	w := newWorld(t, options{inline: true, bare: true, ResourceOptions: runtime.ResourceOptions{Streams: 3 * goroutines}})
	parallel := func(rounds int, use func(g, rounds int) error) (contended int64) {
		before := contentions(t)
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				if err := use(g, rounds); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return contentions(t) - before
	}

	// What must contend: one buffer, read by all.
	one := w.new(64)
	defer w.free(one)
	streams := w.streams(goroutines)
	tries := 0
	for parallel(rounds(50_000), func(g, rounds int) error {
		for range rounds {
			acc := buffer.Begin(streams[g])
			acc.Read(one)
			if err := acc.End(); err != nil {
				return err
			}
		}
		return nil
	}) == 0 {
		if tries++; tries == most {
			t.Skip("this machine runs one goroutine at a time: reads of one buffer never contend either")
		}
	}

	var independent []*others
	for range goroutines {
		o := newOthers(w)
		w.ok(o.use(4)) // fresh memory has one history, that of its slab, which all its first users ask about
		independent = append(independent, o)
	}
	for range 4 * (tries + 1) {
		if n := parallel(rounds(50_000), func(g, rounds int) error { return independent[g].use(rounds) }); n != 0 {
			t.Errorf("accesses of independent buffers waited %d times for a lock", n)
			break
		}
	}
	for _, o := range independent {
		w.ok(o.s[0].Synchronize(context.Background()))
		w.free(o.x, o.y)
	}
}

// contentions is how often a goroutine has waited for a lock that another let go
// of under an access. Those of Go's runtime itself do not count.
func contentions(t *testing.T) (n int64) {
	t.Helper()
	records := make([]goruntime.BlockProfileRecord, 10_000)
	k, ok := goruntime.MutexProfile(records)
	if !ok {
		t.Fatalf("the profile has %d records", k)
	}
	for _, r := range records[:k] {
		frames := goruntime.CallersFrames(r.Stack())
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "runtime.") {
			continue
		}
		for more && !strings.Contains(f.Function, "weir/buffer.(*Access)") {
			f, more = frames.Next()
		}
		if more {
			n += r.Count
		}
	}
	return n
}
