package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weirgo/weir/bench"
	"github.com/weirgo/weir/runtime"
)

// benchFlags are the flags of weir bench.
type benchFlags struct {
	device, save, from      string
	plots, markdown, python string
	quick, json, list       bool
	compare, noPeers        bool
}

func newBenchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [SCENARIO...]\n  weir bench --compare OLD NEW\n  weir bench --from FILE",
		Short: "Measure Weir beside its floors",
		Long: `Measure Weir beside its floors: what the same work costs without Weir.

Each case is measured together with its floor, in short alternating rounds on
the same data, after both have been checked to compute the same. Printed are
the medians of the rounds, in time per operation; their ratio (1 is as fast as
the floor); the quartiles of the rounds' ratios; and, where Weir promises a
figure, whether it is reached. A figure that is not reached does not make the
command fail, since a busy machine misses any time; a failed check does.

Without arguments all scenarios run. --list describes them. Some are about GPUs
alone, or about the host device alone; on another device they say so.

Where python3 has torch, cupy (on a GPU), numpy (on the host device) or jax, the
cases that these can compute are measured with them too, right after Weir, on the
same data, until the device is done and with what the outputs' memory costs. Such
peers have lines of their own, which begin with +, over the same floor. One that
fails, hangs or computes something else is named and fails nothing. --python names
another Python, as WEIR_PYTHON does; --no-peers looks for none.

--json prints one object a line. The first is {"run": ...}, which describes the run
as the lines above a table do: date, device, processor, BLAS, versions, peers,
settings, command. The others are results: scenario, case, device, unit, value,
floor, ratio (value over floor), spread (between the quartiles ratio_low and
ratio_high), rounds and, where there are any, allocs (heap allocations of an
operation), limit and ok, figures, at (where plots have the case), peers, error,
skipped, and the rounds' own values and floors. The description also goes to
standard error.

--save writes the same lines to a file, whatever is printed. They go to FILE.partial
as they are measured; at the end, also with failed cases, that replaces FILE. A run
that is interrupted leaves FILE as it was, and what it has measured in FILE.partial.

--plots draws, into a folder, the time of an operation against the size of its
operands and against the number of operations, as PNG. --markdown writes a document
with the tables. With --from both, and the tables, are of a file that --save wrote,
and nothing is measured.

--compare prints what changed between two such files: the medians of each case, and
by how many percent they differ, or ~ where the rounds do not show a difference
(the Mann-Whitney U test at 0.05, as benchstat has it). If the floor differs as
well, then perhaps the machine has changed, not Weir.

  $ weir bench --list
  $ weir bench gemm-small lease
  $ weir bench --quick --json >results.jsonl
  $ weir bench --save old.jsonl --plots plots --markdown results.md
  $ weir bench --compare old.jsonl new.jsonl
  $ weir bench --from old.jsonl --plots plots`,
		Args: f.checkArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.compare {
				return compareBench(cmd.OutOrStdout(), args[0], args[1])
			}
			if f.from != "" {
				return showBench(cmd, &f)
			}
			scenarios, err := bench.Find(args...)
			if err != nil {
				return err
			}
			if f.list {
				return listScenarios(cmd.OutOrStdout(), scenarios)
			}
			return runBench(cmd, scenarios, &f)
		},
	}
	addDeviceFlag(cmd, &f.device)
	cmd.Flags().BoolVar(&f.quick, "quick", false, "few short rounds and small counts: seconds, and a wider spread")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&f.save, "save", "", "also write one JSON object a line to this `FILE`")
	cmd.Flags().StringVar(&f.plots, "plots", "", "also draw plots into this `FOLDER`, which is made if need be")
	cmd.Flags().StringVar(&f.markdown, "markdown", "", "also write the tables to this `FILE`, as Markdown")
	cmd.Flags().StringVar(&f.from, "from", "", "measure nothing; show the results in this `FILE`")
	cmd.Flags().BoolVar(&f.compare, "compare", false, "measure nothing; compare the results in two files")
	cmd.Flags().StringVar(&f.python, "python", "", "`PATH` of the Python that may have peers (default: WEIR_PYTHON, or python3)")
	cmd.Flags().BoolVar(&f.noPeers, "no-peers", false, "look for no peers")
	cmd.Flags().BoolVar(&f.list, "list", false, "describe the scenarios and what they require, and run none")
	return cmd
}

// checkArguments checks that the arguments are what the flags make them.
func (f *benchFlags) checkArguments(cmd *cobra.Command, args []string) error {
	without := func(flag string, others ...string) error {
		for _, other := range others {
			if cmd.Flags().Changed(other) {
				return fmt.Errorf("--%s with --%s; expected one of them", flag, other)
			}
		}
		return nil
	}
	measuring := []string{"device", "quick", "save", "python", "no-peers", "list"}
	for _, flag := range []string{"save", "from", "plots", "markdown"} {
		if cmd.Flags().Changed(flag) && cmd.Flag(flag).Value.String() == "" { // as of a variable that is not set
			return fmt.Errorf("--%s with an empty name; expected a path", flag)
		}
	}
	for _, flag := range []string{"save", "from"} {
		if file := cmd.Flag(flag).Value.String(); file != "" && f.markdown != "" && sameFile(file, f.markdown) {
			return fmt.Errorf("--%s and --markdown with the same file, %s; expected two", flag, file)
		}
	}
	switch {
	case f.compare && len(args) != 2:
		return fmt.Errorf("--compare with %d arguments; expected two files, OLD and NEW", len(args))
	case f.compare:
		return without("compare", append(measuring, "from", "plots", "markdown", "json")...)
	case f.from != "":
		return errors.Join(noArguments(cmd, args), without("from", measuring...))
	}
	_, err := bench.Find(args...)
	return err
}

func readBench(path string) (*bench.Saved, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	saved, err := bench.ReadSaved(file, path)
	return saved, errors.Join(err, file.Close())
}

func compareBench(w io.Writer, old, now string) error {
	was, err := readBench(old)
	is, err2 := readBench(now)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return bench.Compare(w, was, is)
}

// showBench shows what a file has.
func showBench(cmd *cobra.Command, f *benchFlags) error {
	saved, err := readBench(f.from)
	if err != nil {
		return err
	}
	out, err := newBenchOutput(cmd, f, saved.Header)
	if err != nil {
		return err
	}
	for _, r := range saved.Results {
		if err := out.add(r); err != nil {
			return errors.Join(err, out.abandon())
		}
	}
	return out.finish()
}

func listScenarios(w io.Writer, scenarios []bench.Scenario) error {
	for _, s := range scenarios {
		need := s.Need
		if need == "" {
			need = "nothing"
		}
		if _, err := fmt.Fprintf(w, "%s\n  measures: %s\n  requires: %s\n", s.Name, s.About, need); err != nil {
			return err
		}
	}
	return nil
}

// runBench measures with a runtime as programs have it: all streams, on one
// device.
func runBench(cmd *cobra.Command, scenarios []bench.Scenario, f *benchFlags) (err error) {
	var options runtime.Options
	if f.device != "" {
		options.Devices = []string{f.device}
	}
	rt, err := runtime.Start(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	d, err := runtime.Default()
	if err != nil {
		return err
	}
	var peers *bench.Peers
	if !f.noPeers {
		if peers, err = bench.OpenPeers(cmd.Context(), d, cmp.Or(f.python, os.Getenv("WEIR_PYTHON"))); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, peers.Close()) }()
	}
	out, err := newBenchOutput(cmd, f, bench.NewHeader(d, version(), peers, os.Args))
	if err != nil {
		return err
	}
	progress := newBenchProgress(cmd.ErrOrStderr())
	err = bench.Run(cmd.Context(), bench.Options{
		Device: d, Scenarios: scenarios, Quick: f.quick, Peers: peers, Progress: progress.show,
		Report: func(r bench.Result) error {
			progress.clear()
			return out.add(r)
		},
	})
	progress.clear()
	if context.Cause(cmd.Context()) != nil {
		return errors.Join(err, out.abandon())
	}
	return errors.Join(err, out.finish())
}

// benchOutput is where results go: to standard output, to a file as JSON, and at
// the end into plots and a document.
type benchOutput struct {
	f       *benchFlags
	header  bench.Header
	save    *replacement // nil without --save
	lines   io.Writer    // of JSON
	notes   io.Writer    // for whoever waits
	table   *bench.Table
	results []bench.Result
	err     error // the first of add
}

// newBenchOutput writes the header, and finds out whether the others can be
// written.
func newBenchOutput(cmd *cobra.Command, f *benchFlags, h bench.Header) (*benchOutput, error) {
	if f.markdown != "" {
		if err := checkPlace(f.markdown); err != nil {
			return nil, err
		}
	}
	if f.plots != "" {
		if err := os.MkdirAll(f.plots, 0o777); err != nil {
			return nil, err
		}
		if err := checkPlace(filepath.Join(f.plots, "plot.png")); err != nil {
			return nil, err
		}
	}
	o := &benchOutput{f: f, header: h, lines: io.Discard, notes: cmd.ErrOrStderr(), table: bench.NewTable(cmd.OutOrStdout())}
	if f.save != "" {
		var err error
		if o.save, err = newReplacement(f.save); err != nil {
			return nil, err
		}
		o.lines = o.save
	}
	text := cmd.OutOrStdout()
	if f.json {
		text = cmd.ErrOrStderr()
		o.lines, o.table = io.MultiWriter(o.lines, cmd.OutOrStdout()), bench.NewTable(io.Discard)
	}
	if err := errors.Join(h.Write(text), bench.WriteRun(o.lines, h)); err != nil {
		return nil, errors.Join(err, o.abandon())
	}
	return o, nil
}

func (o *benchOutput) add(r bench.Result) error {
	o.results = append(o.results, r)
	if err := errors.Join(bench.WriteJSON(o.lines, r), o.table.Add(r)); o.err == nil {
		o.err = err
	}
	return o.err
}

// abandon ends a run that is not complete: what it has saved stays beside the
// file that it was to replace.
func (o *benchOutput) abandon() error {
	err := o.table.Flush()
	if o.save != nil {
		err = errors.Join(err, o.save.Close())
	}
	return err
}

// finish ends a run whose cases were all reported.
func (o *benchOutput) finish() error {
	if o.err != nil {
		return o.abandon()
	}
	errs := []error{o.table.Flush()}
	if o.save != nil {
		errs = append(errs, o.save.place())
	}
	if o.f.markdown != "" {
		errs = append(errs, replace(o.f.markdown, func(w io.Writer) error { return bench.WriteMarkdown(w, o.header, o.results) }))
	}
	if o.f.plots != "" {
		plots := bench.Plots(o.header, o.results)
		if len(plots) == 0 {
			fmt.Fprintf(o.notes, "weir: nothing is drawn in %s: no scenario of this run has cases of several sizes or counts\n", o.f.plots)
		}
		for _, p := range plots {
			errs = append(errs, replace(filepath.Join(o.f.plots, p.Name+".png"), p.Write))
		}
	}
	return errors.Join(errs...)
}

// benchTicks is how finely the bar moves.
const benchTicks = 1000

// benchProgress is a bar on a terminal, and nothing elsewhere.
type benchProgress struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func newBenchProgress(w io.Writer) *benchProgress {
	p := &benchProgress{}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = w
	}
	return p
}

// show says which case runs and what part of the run is done.
func (p *benchProgress) show(label string, part float64) {
	if p.w == nil {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(benchTicks, progressbar.OptionSetWriter(p.w), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionSetWidth(30),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false))
	}
	p.bar.Describe(label)
	_ = p.bar.Set(int(part * benchTicks)) // a bar that cannot be drawn is no failure
}

// clear takes the bar off the screen, until it is shown again.
func (p *benchProgress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
