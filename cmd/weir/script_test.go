//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// TestMain makes this binary stand for the commands that the tests run.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){
		"weir":            main,
		"weir-interrupts": disturbed(sending(syscall.SIGINT)),
		"weir-terminates": disturbed(sending(syscall.SIGTERM)),
		"weir-hangs-up":   disturbed(sending(syscall.SIGHUP)),
		"weir-stalls":     disturbed(func(ctx context.Context) { <-ctx.Done() }),
		"weir-heeds-not": disturbed(func(ctx context.Context) {
			sending(syscall.SIGINT)(ctx)
			syscall.Kill(os.Getpid(), syscall.SIGINT)
			select {}
		}),
		"weir-panics": disturbed(func(context.Context) { panic("the sky fell") }),
		"limit-files": limitFiles,
	})
}

// leakless fails when tests leave goroutines behind.
type leakless struct{ *testing.M }

func (m leakless) Run() int {
	status := m.M.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// disturbed is the command, but disturb is called when the first step of a
// contraction has been submitted, and the bar is drawn at once.
func disturbed(disturb func(context.Context)) func() {
	return func() {
		a := fromProcess()
		a.patience = 0
		a.submitted = func(ctx context.Context, done, total int) {
			if done == 1 {
				disturb(ctx)
			}
		}
		os.Exit(a.run(os.Args[1:]))
	}
}

// sending sends the process a signal and waits until it has been noticed.
func sending(s syscall.Signal) func(context.Context) {
	return func(ctx context.Context) {
		syscall.Kill(os.Getpid(), s)
		<-ctx.Done()
	}
}

// limitFiles is the command limit-files BYTES COMMAND ARGUMENTS...: no file that
// the command writes can grow beyond that, as if the disk were full.
func limitFiles() {
	bytes, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: bytes})
	}
	path, lookErr := exec.LookPath(os.Args[2])
	if err = errors.Join(err, lookErr); err == nil {
		err = unix.Exec(path, os.Args[2:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(failed)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setup,
		Condition: func(name string) (bool, error) {
			switch name {
			case "race":
				return raceDetector, nil
			case "cuda": // the build has the CUDA devices
				return cudaBuild, nil
			case "nohup": // a hangup is ignored, as nohup has it
				return signal.Ignored(syscall.SIGHUP), nil
			case "simulated": // $SIMULATED is where their simulated driver is
				return simulated(), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(5 * time.Minute),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"message": message,
			"absent":  absent,
		},
	})
}

// setup puts the arrays of testdata/npy into a script's folder. Scripts see no
// GPU, unless they say otherwise.
func setup(e *testscript.Env) error {
	e.Setenv("CUDA_VISIBLE_DEVICES", "")
	e.Setenv("SIMULATED", os.Getenv("WEIR_CUDA_LIBRARY_PATH"))
	e.Setenv("GORACE", "atexit_sleep_ms=0") // else every process ends with a second of sleep
	files, err := filepath.Glob("testdata/npy/*.npy")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(e.WorkDir, filepath.Base(file)), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// exits is exits STATUS COMMAND ARGUMENTS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARGUMENTS...")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%q exits with %d; expected %s", args[1:], got, args[0])
	}
}

// message is message TEXT: the whole of the last command's standard error.
func message(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: message TEXT")
	}
	if got, want := ts.ReadFile("stderr"), "weir: "+args[0]+"\n"; got != want {
		ts.Fatalf("standard error is\n%sexpected\n%s", got, want)
	}
}

// absent is absent PATTERN: no file is called so.
func absent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: absent PATTERN")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) > 0 {
		ts.Fatalf("%q is there; expected nothing called %s", files, args[0])
	}
}
