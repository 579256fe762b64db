package drivertest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var notifyTests = []test{
	{"a waker is woken once, after the earlier work", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		release := f.stall(s)
		e := f.record(d, s)
		var early atomic.Bool
		w := newWaker()
		w.then = func(error) {
			if done, err := e.Query(); !done || err != nil {
				early.Store(true)
			}
		}
		f.ok(s.Notify(w))
		if w.count.Load() != 0 {
			f.t.Fatalf("woken while the stream was stalled")
		}
		release()
		w.once(f, nil)
		if early.Load() {
			f.t.Errorf("woken before the earlier work was done")
		}
		f.ok(s.Notify(newWaker()))
		f.sync("the stream", s)
		w.once(f, nil)
	}},
	{"a waker on an idle stream is woken", func(f *fixture) {
		s := f.stream(f.device(0))
		f.sync("the stream", s)
		w := newWaker()
		f.ok(s.Notify(w))
		w.once(f, nil)
	}},
	{"Notify does not wake on the caller's goroutine", func(f *fixture) {
		s := f.stream(f.device(0))
		var mu sync.Mutex
		var woken int
		for range 20 {
			w := newWaker()
			w.then = func(error) {
				mu.Lock()
				defer mu.Unlock()
				woken++
			}
			f.within("Notify under a lock that the waker takes", func() error {
				mu.Lock()
				defer mu.Unlock()
				return s.Notify(w)
			})
			w.once(f, nil)
		}
	}},
	{"a notification does not wait for later work", func(f *fixture) {
		s := f.stream(f.device(0))
		first := f.stall(s)
		w := newWaker()
		f.ok(s.Notify(w))
		second := f.stall(s)
		first()
		w.once(f, nil)
		f.pending("the stream", s)
		second()
	}},
	{"a waker may make driver calls", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s, other := f.stream(d), f.stream(d)
		e := f.event(d)
		result := make(chan error, 1)
		w := newWaker()
		w.then = func(error) {
			fresh, err := d.NewEvent()
			if err != nil {
				result <- err
				return
			}
			_, query := s.Query()
			result <- errors.Join(query, d.Err(),
				s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, dtype.Int64, 1), Alpha: 4}),
				s.Record(e), other.Wait(e), s.Record(fresh), fresh.Destroy(), s.Notify(newWaker()))
		}
		f.ok(s.Notify(w))
		f.ok(receive(f, "the waker's calls", result))
		if got := read[int64](f, other, p, 1); got[0] != 4 {
			f.t.Errorf("read %d; expected what the waker submitted, 4", got[0])
		}
		f.sync("the stream", s)
	}},
	{"a waker may ask for the next notification", func(f *fixture) {
		s := f.stream(f.device(0))
		const rounds = 100
		result := make(chan error, 1)
		f.ok(s.Notify(&renewing{stream: s, left: rounds, result: result}))
		f.ok(receive(f, fmt.Sprintf("the last of %d notifications", rounds), result))
	}},
	{"many notifications come once each", func(f *fixture) {
		d := f.device(0)
		streams := []driver.Stream{f.stream(d), f.stream(d)}
		var releases []func()
		for _, s := range streams {
			releases = append(releases, f.stall(s))
		}
		var wakers []*waker
		for i := range 200 {
			w := newWaker()
			f.ok(streams[i%2].Notify(w))
			wakers = append(wakers, w)
		}
		for _, w := range wakers {
			if w.count.Load() != 0 {
				f.t.Fatalf("woken while the stream was stalled")
			}
		}
		for _, release := range releases {
			release()
		}
		for _, w := range wakers {
			w.once(f, nil)
		}
	}},
}

// waker counts how often it is woken.
type waker struct {
	count atomic.Int32
	woken chan error
	then  func(err error) // runs in Wake; may be nil
}

func newWaker() *waker { return &waker{woken: make(chan error, 8)} }

func (w *waker) Wake(err error) {
	if w.count.Add(1) > 1 {
		return
	}
	if w.then != nil {
		w.then(err)
	}
	w.woken <- err
}

// once waits for the first wake, if it was not seen yet, and checks that it
// was the only one and that its error matches want.
func (w *waker) once(f *fixture, want error) {
	f.t.Helper()
	err := receive(f, "the waker", w.woken)
	w.woken <- err
	if n := w.count.Load(); n != 1 {
		f.t.Errorf("woken %d times; expected once", n)
	}
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		f.t.Errorf("woken with %v; expected %v", err, want)
	}
}

// renewing asks for one more notification each time it is woken.
type renewing struct {
	stream driver.Stream
	left   int
	result chan error
}

func (r *renewing) Wake(err error) {
	if r.left--; r.left == 0 || err != nil {
		r.result <- err
		return
	}
	if err := r.stream.Notify(r); err != nil {
		r.result <- err
	}
}
