package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weirgo/weir/bench"
	"github.com/weirgo/weir/runtime"
)

// benchFlags are the flags of weir bench.
type benchFlags struct {
	device, save      string
	quick, json, list bool
}

func newBenchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [SCENARIO...]",
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

--json prints one object a line: scenario, case, device, unit, value, floor,
ratio (value over floor), spread (between the quartiles ratio_low and
ratio_high), rounds and, where there are any, allocs (heap allocations of an
operation), limit and ok, figures, error, skipped. What describes the run (date,
device, processor, BLAS, versions, settings, command) then goes to standard error.
--save writes the same lines to a file, whatever is printed.

  $ weir bench --list
  $ weir bench gemm-small lease
  $ weir bench --quick --json >results.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := bench.Find(args...)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			scenarios, err := bench.Find(args...)
			if err != nil {
				return err
			}
			if f.list {
				return listScenarios(cmd.OutOrStdout(), scenarios)
			}
			if f.save == "" {
				return runBench(cmd, scenarios, &f, io.Discard)
			}
			if err := checkPlace(f.save); err != nil {
				return err
			}
			file, err := os.Create(f.save)
			if err != nil {
				return err
			}
			return errors.Join(runBench(cmd, scenarios, &f, file), file.Close())
		},
	}
	addDeviceFlag(cmd, &f.device)
	cmd.Flags().BoolVar(&f.quick, "quick", false, "few short rounds and small counts: seconds, and a wider spread")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&f.save, "save", "", "also write one JSON object a line to this file")
	cmd.Flags().BoolVar(&f.list, "list", false, "describe the scenarios and what they require, and run none")
	return cmd
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
// device. Results go to save too, as JSON.
func runBench(cmd *cobra.Command, scenarios []bench.Scenario, f *benchFlags, save io.Writer) (err error) {
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
	out, header := cmd.OutOrStdout(), cmd.OutOrStdout()
	if f.json {
		header = cmd.ErrOrStderr()
	}
	if err := bench.NewHeader(d, version(), os.Args).Write(header); err != nil {
		return err
	}
	progress := newBenchProgress(cmd.ErrOrStderr())
	table := bench.NewTable(out)
	err = bench.Run(cmd.Context(), bench.Options{
		Device: d, Scenarios: scenarios, Quick: f.quick, Progress: progress.show,
		Report: func(r bench.Result) error {
			progress.clear()
			if err := bench.WriteJSON(save, r); err != nil {
				return err
			}
			if f.json {
				return bench.WriteJSON(out, r)
			}
			return table.Add(r)
		},
	})
	progress.clear()
	return errors.Join(err, table.Flush())
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
