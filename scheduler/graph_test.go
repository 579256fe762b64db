package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir/scheduler"
)

var update = flag.Bool("update", false, "rewrite testdata")

// golden compares text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expected, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(expected) {
		t.Errorf("%s is\n%s\nexpected\n%s", name, got, expected)
	}
}

// scene is one task of each state, with gates.
func scene(t *testing.T, level scheduler.Level) ([]scheduler.Info, func()) {
	p := newPool(t, scheduler.Options{Lanes: 1, Level: level})
	theta := func(epoch int, r scheduler.Role, ph scheduler.Phase) *gate {
		return &gate{info: scheduler.GateInfo{Value: "theta", Epoch: epoch, Role: r, Phase: ph}}
	}
	woken, value := &event{name: "an event"}, &event{name: `value "x" (write 2)`, ends: scheduler.ByHolder}
	hold := make(chan struct{})
	start := func(name string, run func(context.Context) error, gates ...scheduler.Gate) *scheduler.Task {
		task := scheduler.New(t.Context(), scheduler.Spec{Name: name, Run: run}, gates...)
		p.Start(task)
		synctest.Wait()
		return task
	}
	start("resuming", woken.wait, theta(1, scheduler.Reads, scheduler.Open), theta(2, scheduler.Writes, scheduler.Closed))
	waits := start("parked\nat \"x\" \\", value.wait, theta(2, scheduler.Reads, scheduler.Closed), &gate{info: scheduler.GateInfo{Value: "an \"odd\"\nname", Role: scheduler.Writes, Phase: scheduler.Released}})
	joins := start("joins", waits.Wait)
	runs := start("running", func(context.Context) error { <-hold; return nil })
	start("queued", nothing, theta(1, scheduler.Reads, scheduler.Open))
	value.holders = []*scheduler.Task{runs, nil, joins}
	woken.fire()
	synctest.Wait()
	all := p.Tasks()
	return all, func() {
		close(hold)
		value.fire()
		closes(t, p)
		if left := p.Tasks(); len(left) != 0 {
			t.Errorf("%v are listed after Close", left)
		}
	}
}

func TestTasksAreListedWithStatesGatesAndWhatTheyWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, end := scene(t, scheduler.Basic)
		var text, dot bytes.Buffer
		if err := errors.Join(scheduler.Text(&text, all), scheduler.DOT(&dot, all)); err != nil {
			t.Error(err)
		}
		golden(t, "tasks.txt", text.String())
		golden(t, "tasks.dot", dot.String())
		end()
	})
}

func TestALevelSaysHowMuchIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, end := scene(t, scheduler.Off)
		if all != nil {
			t.Errorf("at level Off %v are listed", all)
		}
		end()
		all, end = scene(t, scheduler.Full)
		for _, i := range all {
			if !strings.Contains(i.Stack, "scheduler_test.scene") {
				t.Errorf("at level Full the stack of %v is %q", i, i.Stack)
			}
		}
		for k := range all {
			all[k].Stack = "main.f\n\tf.go:12\nmain.main\n\tmain.go:3\n"
			all[k].Site = "f.go:12"
		}
		var text bytes.Buffer
		if err := scheduler.Text(&text, all[:2]); err != nil {
			t.Error(err)
		}
		golden(t, "stacks.txt", text.String())
		end()
		all, end = scene(t, scheduler.Basic)
		for _, i := range all {
			if i.Stack != "" {
				t.Errorf("at level Basic %v has a stack", i)
			}
		}
		end()
	})
}

func TestNoTasksAreAnEmptyGraph(t *testing.T) {
	var text, dot bytes.Buffer
	if err := errors.Join(scheduler.Text(&text, nil), scheduler.DOT(&dot, nil)); err != nil || text.Len() != 0 {
		t.Errorf("got %q and %v", text.String(), err)
	}
	golden(t, "none.dot", dot.String())
}

type fails struct{}

func (fails) Write([]byte) (int, error) { return 0, errCause }

func TestAWriterThatFailsIsReported(t *testing.T) {
	if err := scheduler.Text(fails{}, []scheduler.Info{{}}); err != errCause {
		t.Errorf("Text answers %v", err)
	}
	if err := scheduler.DOT(fails{}, nil); err != errCause {
		t.Errorf("DOT answers %v", err)
	}
}

func TestADeadlockOfManyIsFoundInLinearTime(t *testing.T) {
	n := 50_000
	if raceDetector {
		n /= 5
	}
	d := scheduler.NewDebug(scheduler.DebugOptions{})
	ring := make([]*scheduler.Task, n)
	for i := range ring {
		ring[i] = scheduler.New(context.Background(), scheduler.Spec{Name: "ring", Run: func(ctx context.Context) error { return ring[(i+1)%n].Wait(ctx) }})
		d.Start(ring[i])
	}
	var stuck *scheduler.Deadlock
	if err := d.Run(); !errors.As(err, &stuck) || len(stuck.Tasks) != n || len(stuck.Circle) != n {
		t.Errorf("the deadlock of %d is not found", n)
	}
	if err := d.Close(); err == nil || d.Counts().Live != 0 {
		t.Errorf("%d live after Close", d.Counts().Live)
	}
}
