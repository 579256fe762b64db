package native_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func exitWait(d time.Duration) func(*runtime.Options) {
	return func(o *runtime.Options) { o.ExitWait = d }
}

func TestCloseWaitsForTheJobThatRunsAndRefusesTheNext(t *testing.T) {
	for name, wait := range map[string]time.Duration{"as long as by default": 0, "without end": -1} {
		t.Run(name, func(t *testing.T) {
			ctx := start(t, exitWait(wait))
			lib, s := openTest(t, ctx), must(native.NewSession(ctx))
			g := newGate(t, lib)
			ran, next, closed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			go func() { _, err := g.run(ctx, s); ran <- err }()
			g.begun()
			go func() { _, err := g.run(ctx, s); next <- err }()
			for native.Waiting(s) == 0 {
				continue
			}
			go func() { closed <- s.Close() }()
			says(t, <-next, weir.KindLogic, "wait: the device resources on device 0 were released")
			select {
			case err := <-closed:
				t.Errorf("closed while a job runs: %v", err)
			default:
			}
			g.open()
			if err := errors.Join(<-ran, <-closed, s.Close()); err != nil {
				t.Error(err)
			}
			if !native.Freed(s) {
				t.Error("the handle was not freed")
			}
		})
	}
}

func TestClosePastExitWaitReportsTheJobAndFreesNothingUntilItReturns(t *testing.T) {
	ctx := start(t, exitWait(time.Millisecond))
	lib, s := openTest(t, ctx), must(native.NewSession(ctx))
	g := newGate(t, lib)
	ran := make(chan error)
	go func() { _, err := g.run(ctx, s); ran <- err }()
	g.begun()
	err := s.Close()
	says(t, err, weir.KindLogic, "Session.Close on "+deviceName+": the job wait still runs after 1ms (Options.ExitWait); what it holds is freed when it returns")
	if !errors.Is(err, weir.ErrLeak) || native.Freed(s) {
		t.Errorf("%v, freed: %t; expected ErrLeak and nothing freed", err, native.Freed(s))
	}
	g.open()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if !native.Freed(s) {
		t.Error("what the job held was not freed when it returned")
	}
}

func TestTheRuntimesClosePastExitWaitReportsTheJobAndWhatItHolds(t *testing.T) {
	ctx, rt := begin(t, exitWait(time.Millisecond))
	lib, s := openTest(t, ctx), must(native.NewSession(ctx))
	g := newGate(t, lib)
	wait := must(lib.Job("rt", "rt_wait_job", native.Handle, native.Int32, native.Int32, native.OutInt32))
	ran := make(chan error)
	go func() { ran <- wait.Run(ctx, s, "wait", int(g.started[1].Fd()), int(g.proceed[0].Fd()), new(int32)) }()
	g.begun()
	err := rt.Close()
	want := "runtime.Close on " + deviceName + ": the job wait still runs after 1ms (Options.ExitWait); what it holds is freed when it returns"
	if !errors.Is(err, weir.ErrLeak) || !strings.Contains(err.Error(), want) {
		t.Errorf("\ngot      %v\nexpected %s", err, want)
	}
	if native.Freed(s) {
		t.Error("freed while its job runs")
	}
	g.open()
	if err := errors.Join(<-ran, s.Close()); err != nil {
		t.Error(err)
	}
	if !native.Freed(s) {
		t.Error("not freed when the job returned")
	}
}

func TestTheRuntimesCloseWaitsForAJob(t *testing.T) {
	ctx, rt := begin(t)
	lib, s := openTest(t, ctx), must(native.NewSession(ctx))
	g := newGate(t, lib)
	ran := make(chan error)
	go func() {
		_, err := g.run(ctx, s)
		ran <- errors.Join(err, s.Close())
	}()
	g.begun()
	closed := make(chan error)
	go func() { closed <- rt.Close() }()
	g.open()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	// The session may have been looked at just before it was closed.
	if err := <-closed; err != nil && !strings.Contains(err.Error(), "native session on "+deviceName+" is still held") {
		t.Error(err)
	}
}

func TestAScopeThatIsOpenHoldsCloseUp(t *testing.T) {
	ctx := start(t, exitWait(time.Millisecond))
	s := must(native.NewSession(ctx))
	err := s.Do(ctx, func(*native.Scope) error { return s.Close() }) // which it must not, and is told
	says(t, err, weir.KindLogic, "Session.Close on "+deviceName+": a scope of the session still runs after 1ms (Options.ExitWait); what it holds is freed when it returns")
	if !native.Freed(s) {
		t.Error("the handle was not freed when the scope ended")
	}
}

func TestASessionThatNobodyUsesIsClosedByTheCollector(t *testing.T) {
	ctx, rt := begin(t)
	func() {
		s := must(native.NewSession(ctx))
		must(s.NewDeposit())
		if err := s.Do(ctx, func(*native.Scope) error { return nil }, native.Out(must(tensor.Zeros(ctx, tensor.Int32, 4)))); err != nil {
			t.Error(err)
		}
	}()
	if err := rt.Close(); err != nil {
		t.Errorf("%s", weir.Report(err))
	}
}

func TestAStackSaysWhereASessionThatIsHeldWasMade(t *testing.T) {
	ctx, rt := begin(t, func(o *runtime.Options) { o.Debug = true })
	s := must(native.NewSession(ctx))
	if report := weir.Report(rt.Close()); !strings.Contains(report, "native session on "+deviceName) || !strings.Contains(report, "session_test.go") {
		t.Errorf("the report is\n%s", report)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestAJobThatCannotBeSubmittedClosesItsDeposit: of a runtime library that starts no
// thread, and of one without memory.
func TestAJobThatCannotBeSubmittedClosesItsDeposit(t *testing.T) {
	if !onHost() {
		t.Skip("the stubs are for host devices")
	}
	for _, c := range []struct {
		name, from, to, want string
		kind                 weir.Kind
	}{
		{"thread", "", "", "deposit: the worker thread cannot be started: Resource temporarily unavailable", weir.KindGeneric},
		{"memory", `Resource temporarily unavailable", 0)`, `Cannot allocate memory", 1)`, "deposit: the worker thread cannot be started: Cannot allocate memory", weir.KindOutOfMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := start(t)
			stub(t, strings.Replace(entryPoints("1"), c.from, c.to, 1))
			s := newSession(t, ctx)
			lib := must(native.Open(ctx, "own", compile(t, "libown.so", `
const char *own_error(void) { return ""; }
int own_kind(void) { return 0; }
int own_check(const void *tag) { return 0; }
void own_job(void *args, unsigned long n, void *outcome) {}`), native.Exports{CheckABI: "own_check", LastError: "own_error", LastErrorKind: "own_kind"}))
			d := must(s.NewDeposit())
			err := must(lib.Job("own", "own_job", native.IntoDeposit)).Run(ctx, s, "deposit", d)
			says(t, err, c.kind, c.want)
			if errors.Is(err, weir.ErrOutOfMemory) != (c.kind == weir.KindOutOfMemory) {
				t.Errorf("%v: ErrOutOfMemory is %t", err, c.kind != weir.KindOutOfMemory)
			}
			if arrays, err := d.Arrays(ctx); len(arrays) != 0 || err != nil {
				t.Errorf("the deposit has %v, %v; expected it closed and empty", arrays, err)
			}
		})
	}
}
