package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/hostblas"
)

// The exit statuses. After a signal it is signalled plus the signal's number,
// as shells have it: 130 for an interrupt.
const (
	succeeded = 0
	failed    = 1
	misused   = 2
	signalled = 128
)

// app is one run of the command.
type app struct {
	stdout, stderr io.Writer
	terminal       bool          // stderr is one
	patience       time.Duration // how long work lasts before its progress is shown

	// submitted, if not nil, is called after each step of a contraction. Tests
	// send signals from it.
	submitted func(ctx context.Context, done, total int)
}

// run runs the command and answers its exit status. No panic leaves it: a panic
// is a bug of Weir, but no user's to read.
func (a *app) run(args []string) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(a.stderr, "weir: internal error: %v; please report it, with what WEIR_DEBUG=stack prints\n", p)
			if debugging("stack") {
				a.stderr.Write(debug.Stack())
			}
			status = failed
		}
	}()
	out := &output{Writer: a.stdout}
	a.stdout = out
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	running := false
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		running = true
		a.warn(cmd)
	}
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case out.err != nil && (err == nil || !running):
		a.report(out.err)
		return failed
	case err == nil && len(args) > 0:
		return succeeded
	case err == nil:
		return misused // cobra has printed the help
	case !running: // flags and arguments are checked before a command runs
		oneLine := strings.Join(strings.Fields(err.Error()), " ")
		fmt.Fprintf(a.stderr, "weir: %s; see '%s --help'\n", oneLine, cmd.CommandPath())
		return misused
	}
	if sig, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		fmt.Fprintf(a.stderr, "weir: %v\n", sig)
		return signalled + int(sig.number)
	}
	a.report(err)
	return failed
}

// output is standard output that remembers the first failure to write: cobra
// passes over those of help, and takes those of --version for wrong usage.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// warn says, before work that multiplies, that a library which was asked for by
// name is not the one that will be used.
func (a *app) warn(cmd *cobra.Command) {
	setting := os.Getenv("WEIR_BLAS")
	if !slices.Contains([]string{"einsum", "ising", "bench"}, cmd.Name()) || slices.Contains([]string{"", "auto", "gonum"}, setting) {
		return
	}
	if blas := hostblas.Default(); blas.Name() == "gonum" {
		fmt.Fprintf(a.stderr, "weir: warning: WEIR_BLAS=%s: %s\n", setting, blas.Reason())
	}
}

func (a *app) report(err error) {
	if debugging("report") {
		fmt.Fprint(a.stderr, weir.Report(err))
		return
	}
	for line := range strings.Lines(err.Error()) { // joined errors have one each
		fmt.Fprintf(a.stderr, "weir: %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// debugging says whether WEIR_DEBUG has the word.
func debugging(word string) bool {
	return slices.Contains(strings.Split(os.Getenv("WEIR_DEBUG"), ","), word)
}
