package async_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/scheduler"
)

// TestScenarios replays testdata/*.txt under both schedulers. A line is a call of
// the program, and they are made in order:
//
//	value x [n]          a value that was never written, or is n
//	read r x, write w x  a reader and a writer of x
//	clone c r            another reader
//	task t g... : i; i   a task that holds the gates g
//	set w n, fail w, release g, cancel t
//	try r outcome        what TryAwait answers: nothing yet, or an outcome
//	expect x outcome     what Get answers, or, of a task, Wait, or, of a reader, Await
//	take x outcome       what Take answers
//
// Instructions of tasks are "await r", "hold w" (a writer's Await), "set w term+term"
// (of numbers and what was awaited), "release g", "get x" (a nested wait, called
// x), "fail" and "panic". A task returns the error of an instruction, unless
// "handle" is before it. Outcomes are "n", "well", "never written", "stale",
// "deadlock", "failed by t", "cancelled by t", "panicked by t", "deadlocked by t"
// and "failed by the write of x".
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			for seed := range uint64(20) {
				replay(t, file, fmt.Sprintf("seed %d", seed), scheduler.NewDebug(scheduler.DebugOptions{Seed: seed}))
			}
			for _, lanes := range []int{1, 2, 4} {
				replay(t, file, fmt.Sprintf("%d lanes", lanes), pool(t, scheduler.Options{Lanes: lanes}))
			}
		})
	}
}

// pool makes a Pool.
func pool(t testing.TB, o scheduler.Options) *scheduler.Pool {
	t.Helper()
	p, err := scheduler.NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scenario is a file that is replayed.
type scenario struct {
	ctx     context.Context
	values  map[string]*async.Value[int]
	readers map[string]*async.Reader[int]
	writers map[string]*async.Writer[int]
	tasks   map[string]*scheduler.Task
	cancels map[string]context.CancelCauseFunc
}

func replay(t *testing.T, file, under string, s scheduler.Scheduler) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &scenario{scheduler.With(context.Background(), s), map[string]*async.Value[int]{}, map[string]*async.Reader[int]{},
		map[string]*async.Writer[int]{}, map[string]*scheduler.Task{}, map[string]context.CancelCauseFunc{}}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := p.call(line); err != nil {
			t.Errorf("%s:%d under %s: %s: %v", file, n, under, line, err)
			break
		}
	}
	for _, cancel := range p.cancels {
		cancel(nil)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s under %s: %v", file, under, err)
	}
}

func (p *scenario) gate(name string) async.Gate {
	if r := p.readers[name]; r != nil {
		return r
	}
	return p.writers[name]
}

func (p *scenario) release(name string) {
	if r := p.readers[name]; r != nil {
		r.Release()
	} else {
		p.writers[name].Release()
	}
}

func (p *scenario) call(line string) error {
	head, body, _ := strings.Cut(line, ":")
	w := strings.Fields(head)
	rest := func(n int) string { return strings.Join(w[n:], " ") }
	switch w[0] {
	case "value":
		v := async.New[int](w[1])
		if len(w) > 2 {
			n, err := strconv.Atoi(w[2])
			if err != nil {
				return err
			}
			v = async.Named(w[1], n)
		}
		p.values[w[1]] = v
	case "read":
		p.readers[w[1]] = p.values[w[2]].Read()
	case "write":
		p.writers[w[1]] = p.values[w[2]].Write()
	case "clone":
		p.readers[w[1]] = p.readers[w[2]].Clone()
	case "set":
		n, err := strconv.Atoi(w[2])
		if err != nil {
			return err
		}
		return p.writers[w[1]].Set(n)
	case "fail":
		return p.writers[w[1]].Fail(errFails)
	case "release":
		p.release(w[1])
	case "cancel":
		p.cancels[w[1]](errGone)
	case "task":
		var gates []async.Gate
		for _, g := range w[2:] {
			gates = append(gates, p.gate(g))
		}
		ctx, cancel := context.WithCancelCause(p.ctx)
		p.cancels[w[1]] = cancel
		q := &scenario{values: maps.Clone(p.values), readers: maps.Clone(p.readers), writers: maps.Clone(p.writers)}
		p.tasks[w[1]] = async.Go(ctx, w[1], func(ctx context.Context) error { return q.run(ctx, strings.Split(body, ";")) }, gates...)
	case "try":
		n, ok, err := p.readers[w[1]].TryAwait()
		if !ok && err == nil {
			if rest(2) != "nothing yet" {
				return errors.New("it is not written yet")
			}
			return nil
		}
		return is(rest(2), n, err)
	case "expect":
		if t := p.tasks[w[1]]; t != nil {
			err := t.Wait(p.ctx)
			if rest(2) == "well" || err == nil {
				if rest(2) != "well" {
					return errors.New("it ended well")
				}
				return err
			}
			return is(rest(2), 0, err)
		}
		if r := p.readers[w[1]]; r != nil {
			n, err := r.Await(p.ctx)
			return is(rest(2), n, err)
		}
		n, err := p.values[w[1]].Get(p.ctx)
		return is(rest(2), n, err)
	case "take":
		n, err := p.values[w[1]].Take(p.ctx)
		return is(rest(2), n, err)
	default:
		return errors.New("there is no such call")
	}
	return nil
}

// run is a task's function.
func (p *scenario) run(ctx context.Context, instructions []string) error {
	known := map[string]int{}
	for _, in := range instructions {
		w := strings.Fields(in)
		if len(w) == 0 {
			continue
		}
		handled := w[0] == "handle"
		if handled {
			w = w[1:]
		}
		var err error
		switch w[0] {
		case "await":
			known[w[1]], err = p.readers[w[1]].Await(ctx)
		case "hold":
			known[w[1]], err = p.writers[w[1]].Await(ctx)
		case "get":
			known[w[1]], err = p.values[w[1]].Get(ctx)
		case "set":
			sum := 0
			for _, term := range strings.Split(w[2], "+") {
				n, bad := strconv.Atoi(term)
				if bad != nil {
					n = known[term]
				}
				sum += n
			}
			err = p.writers[w[1]].Set(sum)
		case "release":
			p.release(w[1])
		case "fail":
			err = errFails
		case "panic":
			panic("as the scenario says")
		default:
			panic("there is no such instruction: " + in)
		}
		if err != nil && !handled {
			return err
		}
	}
	return nil
}

// is compares what was answered with an outcome.
func is(outcome string, n int, err error) error {
	wrong := fmt.Errorf("got %d, %v", n, err)
	var poison *async.Poison
	poisoned := errors.As(err, &poison)
	how, by, _ := strings.Cut(outcome, " by ")
	op := fmt.Sprintf("task %q", by)
	if of, ok := strings.CutPrefix(by, "the write of "); ok {
		op = fmt.Sprintf("the write of value %q", of)
	}
	matches := func(targets ...error) error {
		for _, sentinel := range []error{weir.ErrUninitialized, weir.ErrStale, weir.ErrDeadlock, weir.ErrCancelled, weir.ErrPanic, weir.ErrPoisoned, errGone, errFails} {
			expected := false
			for _, target := range targets {
				expected = expected || target == sentinel
			}
			if errors.Is(err, sentinel) != expected {
				return wrong
			}
		}
		if poisoned && !strings.HasPrefix(poison.Op, op) {
			return wrong
		}
		return nil
	}
	with := func(targets ...error) error { // a task's Wait answers its failure, which is no poison if it is the first
		if poisoned {
			targets = append(targets, weir.ErrPoisoned)
		}
		return matches(targets...)
	}
	switch how {
	case "never written":
		return matches(weir.ErrUninitialized)
	case "stale":
		return matches(weir.ErrStale)
	case "deadlock":
		return matches(weir.ErrDeadlock)
	case "failed":
		return with(errFails)
	case "cancelled":
		if poisoned {
			return with(weir.ErrCancelled, errGone)
		}
		if errors.Is(err, errGone) { // the error of a task that never ran is the cause
			return nil
		}
		return wrong
	case "panicked":
		return with(weir.ErrPanic)
	case "deadlocked":
		return with(weir.ErrDeadlock)
	}
	if expected, bad := strconv.Atoi(outcome); bad != nil || err != nil || n != expected {
		return wrong
	}
	return nil
}
