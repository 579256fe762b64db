package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

func TestTheWatchdogEndsCircles(t *testing.T) {
	for n := 1; n <= 3; n++ {
		synctest.Test(t, func(t *testing.T) {
			reports := make(chan *scheduler.Deadlock, 10)
			p := newPool(t, scheduler.Options{Lanes: 1, Watchdog: time.Second, OnDeadlock: func(d *scheduler.Deadlock) { reports <- d }})
			after := &event{name: "what comes after"}
			ring := make([]*scheduler.Task, n)
			var circle []string
			for i := range ring {
				circle = append(circle, fmt.Sprint("ring ", i))
				ring[i] = scheduler.New(t.Context(), scheduler.Spec{Name: circle[i], Run: func(ctx context.Context) error {
					err := ring[(i+1)%n].Wait(ctx)
					if later := after.wait(ctx); later != nil { // its other waits are not ended
						return fmt.Errorf("a later wait: %v", later)
					}
					return err
				}})
			}
			for _, task := range ring {
				p.Start(task)
			}
			// Who waits for the circle and whom the circle does not wait for goes on.
			behind := begin(t.Context(), p, "behind", ring[0].Wait)
			beside := begin(t.Context(), p, "beside", after.wait)
			d := <-reports
			if len(d.Tasks) != n || len(d.Circle) != n {
				t.Fatalf("%d in a circle: %v", n, d)
			}
			if last := "\tcircle: " + strings.Join(append(circle, circle[0]), " → "); !strings.HasSuffix(d.Error(), last) {
				t.Errorf("it reads %v; expected it to end with %q", d, last)
			}
			synctest.Wait()
			after.fire()
			for _, task := range ring {
				var answered *scheduler.Deadlock
				if err := task.Wait(t.Context()); !errors.As(err, &answered) || answered != d || !errors.Is(err, weir.ErrDeadlock) {
					t.Errorf("%v ended with %v", task, err)
				}
			}
			if err := behind.Wait(t.Context()); !errors.Is(err, weir.ErrDeadlock) {
				t.Errorf("who waited for the circle got %v; expected its failure", err)
			}
			if err := beside.Wait(t.Context()); err != nil {
				t.Errorf("who waited beside it got %v", err)
			}
			if len(reports) != 0 {
				t.Errorf("another circle is reported: %v", <-reports)
			}
			closes(t, p)
		})
	}
}

func TestTheWatchdogBarksOnlyAtCircles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, scheduler.Options{Lanes: 2, Watchdog: time.Second, OnDeadlock: func(d *scheduler.Deadlock) { t.Errorf("a false alarm: %v", d) }})
		hold := make(chan struct{})
		long := begin(t.Context(), p, "long", func(context.Context) error { <-hold; return nil })
		all := []*scheduler.Task{long, begin(t.Context(), p, "waits", long.Wait)}
		free := &event{name: "what comes"}
		ring := func(name string, ends scheduler.Ending, more ...*scheduler.Task) {
			e := &event{name: name, ends: ends}
			back := scheduler.New(t.Context(), scheduler.Spec{Name: name + ", back", Run: func(ctx context.Context) error { return nil }})
			forth := scheduler.New(t.Context(), scheduler.Spec{Name: name + ", forth", Run: e.wait})
			e.holders = append(more, back)
			back = scheduler.New(t.Context(), scheduler.Spec{Name: name + ", back", Run: func(ctx context.Context) error {
				return (&event{name: name, holders: []*scheduler.Task{forth}}).wait(ctx)
			}})
			e.holders[len(e.holders)-1] = back
			p.Start(forth)
			p.Start(back)
			time.AfterFunc(time.Minute, e.fire)
			all = append(all, forth)
		}
		ring("a device", scheduler.ByDevice)
		ring("a queue", scheduler.ByQueue)
		ring("one of two, of which one runs", scheduler.ByHolder, long)
		ring("one of two, of which one is no task's", scheduler.ByHolder, nil)
		ended := begin(t.Context(), p, "has ended", nothing)
		all = append(all, ended)
		time.AfterFunc(time.Minute, free.fire)
		all = append(all, begin(t.Context(), p, "nobody's", free.wait))
		// One whose context ends the wait meanwhile is no part of a circle.
		time.AfterFunc(time.Hour, func() { close(hold) })
		for _, task := range all {
			if err := task.Wait(t.Context()); err != nil {
				t.Errorf("%v: %v", task, err)
			}
		}
		if err := p.Close(); err == nil {
			t.Error("Close names nothing of what is left")
		}
	})
}

func TestAnyHolderEndsAWaitForOneOfSeveral(t *testing.T) {
	for ends, alarms := range map[scheduler.Ending]bool{scheduler.ByTask: true, scheduler.ByHolder: false} {
		synctest.Test(t, func(t *testing.T) {
			barked := false
			p := newPool(t, scheduler.Options{Lanes: 3, Watchdog: time.Second, OnDeadlock: func(*scheduler.Deadlock) { barked = true }})
			e, hold := &event{name: "two readers", ends: ends}, make(chan struct{})
			first := scheduler.New(t.Context(), scheduler.Spec{Name: "first", Run: e.wait})
			second := scheduler.New(t.Context(), scheduler.Spec{Name: "second", Run: first.Wait})
			third := scheduler.New(t.Context(), scheduler.Spec{Name: "third", Run: func(context.Context) error { <-hold; e.fire(); return nil }})
			e.holders = []*scheduler.Task{third, second}
			p.Start(first)
			p.Start(second)
			p.Start(third)
			time.AfterFunc(time.Minute, func() { close(hold) })
			err := second.Wait(t.Context())
			third.Wait(t.Context())
			if alarms != barked || alarms != errors.Is(err, weir.ErrDeadlock) {
				t.Errorf("wait of kind %d: the watchdog barked: %v, and second ended with %v; expected %v", ends, barked, err, alarms)
			}
			closes(t, p)
		})
	}
}

func TestAContextEndsAWaitInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, scheduler.Options{Watchdog: time.Hour, OnDeadlock: func(d *scheduler.Deadlock) { t.Errorf("a false alarm: %v", d) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var a, b *scheduler.Task
		a = scheduler.New(ctx, scheduler.Spec{Name: "a", Run: func(ctx context.Context) error { return b.Wait(ctx) }})
		b = scheduler.New(t.Context(), scheduler.Spec{Name: "b", Run: a.Wait})
		p.Start(a)
		p.Start(b)
		if err := b.Wait(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		closes(t, p)
	})
}

// mutex is a lock whose holder is known, and that hands itself on.
type mutex struct {
	name string

	mu     sync.Mutex
	holder *scheduler.Task
	line   scheduler.Queue[struct{}]
	tasks  []*scheduler.Task
}

func (m *mutex) String() string         { return m.name }
func (m *mutex) Ends() scheduler.Ending { return scheduler.ByHolder }
func (m *mutex) Holders() []*scheduler.Task {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []*scheduler.Task{m.holder}
}

func (m *mutex) lock(ctx context.Context) error {
	m.mu.Lock()
	if m.holder == nil {
		m.holder = scheduler.TaskOf(ctx)
		m.mu.Unlock()
		return nil
	}
	w := m.line.Push(ctx)
	m.tasks = append(m.tasks, scheduler.TaskOf(ctx))
	m.mu.Unlock()
	_, _, err := w.Wait(ctx, m)
	return err
}

func (m *mutex) unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holder = nil
	if w := m.line.Pop(); w != nil {
		m.holder, m.tasks = m.tasks[0], m.tasks[1:]
		w.Deliver(struct{}{}, nil)
	}
}

// TestTheWatchdogIsNotFooledByWhatMovesWhileItLooks: tasks hold one of several
// locks at a time, so that whom each waits for changes all the time, and never is
// there a circle; but a look at one after the other sees one.
func TestTheWatchdogIsNotFooledByWhatMovesWhileItLooks(t *testing.T) {
	var alarms atomic.Int64
	p := newPool(t, scheduler.Options{Lanes: 4, Watchdog: 50 * time.Microsecond, OnDeadlock: func(d *scheduler.Deadlock) {
		alarms.Add(1)
	}})
	locks := []*mutex{{name: "a"}, {name: "b"}, {name: "c"}}
	turns := 3000
	if testing.Short() {
		turns = 300
	}
	var all []*scheduler.Task
	for i := range 6 {
		all = append(all, begin(t.Context(), p, fmt.Sprint(i), func(ctx context.Context) error {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range turns {
				m := locks[random.IntN(len(locks))]
				if err := m.lock(ctx); err != nil {
					return err
				}
				goruntime.Gosched()
				m.unlock()
			}
			return nil
		}))
	}
	for _, task := range all {
		if err := task.Wait(t.Context()); err != nil {
			t.Errorf("%v: %v", task, err)
		}
	}
	if alarms.Load() != 0 {
		t.Errorf("%d false alarms", alarms.Load())
	}
	closes(t, p)
}

// TestWhoIsWokenIsInNoCircleAndNotStuck: between its waking and its next turn.
func TestWhoIsWokenIsInNoCircleAndNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, scheduler.Options{Lanes: 1, Watchdog: time.Second, OnDeadlock: func(d *scheduler.Deadlock) { t.Errorf("a false alarm: %v", d) }})
		e, hold := &event{name: "an event"}, make(chan struct{})
		var line scheduler.Queue[struct{}]
		var other *scheduler.Task
		woken := scheduler.New(t.Context(), scheduler.Spec{Name: "woken", Run: func(ctx context.Context) error {
			line.Push(ctx)
			lane := scheduler.LaneOf(ctx)
			lane.Yield(e)
			<-hold // its goroutine is not there yet
			lane.Resume()
			return nil
		}})
		other = scheduler.New(t.Context(), scheduler.Spec{Name: "other", Run: woken.Wait})
		e.holders = []*scheduler.Task{other}
		p.Start(woken)
		p.Start(other)
		synctest.Wait()
		line.Pop().Deliver(struct{}{}, nil)
		time.AfterFunc(10*time.Second, func() { close(hold) })
		closes(t, p)
		if c := p.Counts(); c.Failed != 0 {
			t.Errorf("%d failed", c.Failed)
		}
	})
}

// moving is a wait whose end moves just when the watchdog looks at it.
type moving struct {
	event
	looks int
	look  func(look int) []*scheduler.Task
}

func (m *moving) Holders() []*scheduler.Task {
	m.looks++
	return m.look(m.looks)
}

func (m *moving) wait(ctx context.Context) error {
	m.mu.Lock()
	w := m.waiters.Push(ctx)
	m.mu.Unlock()
	_, _, err := w.Wait(ctx, m)
	return err
}

// TestACircleThatWasNeverThereAtOnceIsNone: at a look of the watchdog at a, b
// hands what a waits for on to c before it waits for a; or what a waits for comes.
func TestACircleThatWasNeverThereAtOnceIsNone(t *testing.T) {
	for look := 1; look <= 2; look++ {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, scheduler.Options{Lanes: 3, Watchdog: time.Second, OnDeadlock: func(d *scheduler.Deadlock) { t.Errorf("at look %d: a false alarm: %v", look, d) }})
			parks, hold := make(chan struct{}), make(chan struct{})
			m := &moving{event: event{name: "what moves", ends: scheduler.ByHolder}}
			a := scheduler.New(t.Context(), scheduler.Spec{Name: "a", Run: m.wait})
			b := scheduler.New(t.Context(), scheduler.Spec{Name: "b", Run: func(ctx context.Context) error {
				if look == 1 {
					<-parks
				}
				return a.Wait(ctx)
			}})
			c := scheduler.New(t.Context(), scheduler.Spec{Name: "c", Run: func(context.Context) error { <-hold; m.fire(); return nil }})
			m.look = func(n int) []*scheduler.Task {
				switch {
				case n == look && n == 1:
					close(parks)
					for p.Counts().Running != 1 {
						goruntime.Gosched()
					}
				case n == look:
					m.fire()
				case n > look:
					return []*scheduler.Task{c}
				}
				return []*scheduler.Task{b}
			}
			for _, task := range []*scheduler.Task{a, b, c} {
				p.Start(task)
			}
			time.AfterFunc(time.Minute, func() { close(hold) })
			if err := b.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			if err := c.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			if m.looks < look {
				t.Errorf("the watchdog looked %d times", m.looks)
			}
			closes(t, p)
		})
	}
}
