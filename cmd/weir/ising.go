package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/ising"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// isingFlags are the flags of weir ising.
type isingFlags struct {
	size        int
	temperature float64
	device      string
	async       bool
	json        bool
}

// isingResult is what weir ising --json prints. Its names are kept.
type isingResult struct {
	Size        int     `json:"size"`
	Temperature float64 `json:"temperature"` // of the coupling over Boltzmann's constant
	Device      string  `json:"device"`
	Steps       int     `json:"steps"`
	FLOPs       float64 `json:"flops"`
	PeakBytes   int64   `json:"peak_bytes"`
	Seconds     float64 `json:"seconds"`

	LogZ               float64 `json:"log_z"`
	LogZKaufman        float64 `json:"log_z_kaufman"`
	FreeEnergy         float64 `json:"free_energy_per_site"`
	FreeEnergyKaufman  float64 `json:"free_energy_per_site_kaufman"`
	Difference         float64 `json:"difference"`          // of log Z, absolute
	RelativeDifference float64 `json:"relative_difference"` // of log Z
}

// tolerable is the largest relative difference that rounding explains.
const tolerable = 1e-12

func newIsingCommand(a *app) *cobra.Command {
	f := isingFlags{size: 8, temperature: ising.CriticalTemperature}
	var m ising.Model
	cmd := &cobra.Command{
		Use:   "ising",
		Short: "Contract the Ising model exactly and compare it with Kaufman's formula",
		Long: `Contract the two-dimensional Ising model on the L x L torus exactly, as a tensor
network of L*L sites, and compare it with Kaufman's formula for the finite
lattice (B. Kaufman, Phys. Rev. 76, 1232 (1949)), which is computed
independently. The coupling and Boltzmann's constant are 1; there is no field.

  $ weir ising --size 8 --temperature 2.5

Printed are log Z, the logarithm of the partition function, and the free energy
per site, f = -T log Z / L^2, both ways, and their difference. A relative
difference above 1e-12 is a failure.

Memory grows as 4^L and is said before work begins: 6 MiB for 8, 1.5 GiB for 12.
A size that needs more than the device has free is refused.

With --async it is contracted row by row, as the trace of the L-th power of the
transfer matrix of a row, by operations on values that are written in the
future: all of them are asked for at once, and only the result is waited for.`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if m, err = ising.New(f.size, f.temperature); err != nil {
				return err
			}
			return noArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ising(cmd.Context(), &f, m)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.size, "size", f.size, fmt.Sprintf("`L`, the sites along each side, from 1 to %d", ising.MaxSize))
	flags.Float64Var(&f.temperature, "temperature", f.temperature, "`T`, in units of the coupling over Boltzmann's constant, above 0; by default the critical one, 2/log(1+sqrt 2)")
	addDeviceFlag(cmd, &f.device)
	flags.BoolVar(&f.async, "async", false, "contract row by row, by asynchronous operations")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) ising(ctx context.Context, f *isingFlags, m ising.Model) error {
	return onDevice(ctx, f.device, func(ctx context.Context, d runtime.Device) error {
		network, err := m.Network(ctx)
		if err != nil {
			return err
		}
		contract, err := a.isingContraction(d, f, m, network)
		if err != nil {
			return err
		}
		r := isingResult{Size: f.size, Temperature: f.temperature, Device: d.Name(),
			Steps: contract.steps, FLOPs: contract.flops, PeakBytes: contract.peakBytes}
		if !f.json {
			if err := r.printBefore(newTable(a.stdout), contract.cost); err != nil {
				return err
			}
		}
		start := time.Now()
		err = a.contracting(ctx, contract.steps, func(submitted func(done, total int)) error {
			r.LogZ, err = contract.do(ctx, submitted)
			return err
		})
		if err != nil {
			return err
		}
		r.Seconds = time.Since(start).Seconds()
		r.compare(m)
		if f.json {
			encoder := json.NewEncoder(a.stdout)
			encoder.SetIndent("", "  ")
			err = encoder.Encode(r)
		} else {
			err = r.print(newTable(a.stdout))
		}
		if err == nil && !(r.RelativeDifference <= tolerable) { // a NaN too
			err = fmt.Errorf("ising: relative difference %.2g; expected at most %.0e", r.RelativeDifference, tolerable)
		}
		return err
	})
}

// contraction is one way to contract the network, and what it costs.
type contraction struct {
	cost
	do func(ctx context.Context, submitted func(done, total int)) (logZ float64, err error)
}

func (a *app) isingContraction(d runtime.Device, f *isingFlags, m ising.Model, network *ising.Network) (contraction, error) {
	if f.async {
		rows := m.Rows()
		free, _, err := d.Memory()
		if err == nil && rows.PeakBytes > free {
			err = &weir.Error{Op: "ising", Device: d.Name(), Kind: weir.KindOutOfMemory, Err: weir.ErrOutOfMemory,
				Message: fmt.Sprintf("size %d: row by row it needs %s and %s are free; expected a size that fits", f.size, inBytes(rows.PeakBytes), inBytes(free))}
		}
		return contraction{cost{rows.Steps, rows.FLOPs, rows.PeakBytes}, func(ctx context.Context, submitted func(done, total int)) (float64, error) {
			return network.LogZRows(ctx, m, submitted)
		}}, err
	}
	var o tensor.EinsumOptions
	plan, err := fit(d, &o, network.Plan)
	if err != nil {
		return contraction{}, tooLarge(f.size, err)
	}
	return contraction{costOf(plan), func(ctx context.Context, submitted func(done, total int)) (float64, error) {
		o.Progress = submitted
		return network.LogZ(ctx, o)
	}}, nil
}

// tooLarge leaves out of an error about memory the step that needs it, whose
// indices mean nothing to who asked for a size.
func tooLarge(size int, err error) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || !errors.Is(err, weir.ErrOutOfMemory) {
		return err
	}
	return &weir.Error{Op: "ising", Device: e.Device, Kind: e.Kind, Err: weir.ErrOutOfMemory,
		Message: fmt.Sprintf("size %d: %s; expected a size that fits", size, e.Message)}
}

// compare fills in Kaufman's values and the differences.
func (r *isingResult) compare(m ising.Model) {
	r.LogZKaufman = m.Kaufman()
	r.FreeEnergy, r.FreeEnergyKaufman = m.FreeEnergy(r.LogZ), m.FreeEnergy(r.LogZKaufman)
	r.Difference = math.Abs(r.LogZ - r.LogZKaufman)
	r.RelativeDifference = r.Difference / math.Abs(r.LogZKaufman)
}

// printBefore prints what is known before work begins.
func (r *isingResult) printBefore(w *tabwriter.Writer, c cost) error {
	fmt.Fprintf(w, "lattice\t%d x %d torus on %s\n", r.Size, r.Size, r.Device)
	fmt.Fprintf(w, "temperature\t%v\n", r.Temperature)
	c.write(w)
	return w.Flush()
}

func (r *isingResult) print(w *tabwriter.Writer) error {
	fmt.Fprintf(w, "time\t%.3g s\n\n", r.Seconds)
	fmt.Fprint(w, "\tlog Z\tfree energy per site\n")
	fmt.Fprintf(w, "tensor network\t%.15g\t%.15g\n", r.LogZ, r.FreeEnergy)
	fmt.Fprintf(w, "Kaufman's formula\t%.15g\t%.15g\n", r.LogZKaufman, r.FreeEnergyKaufman)
	fmt.Fprintf(w, "difference\t%.2g\t%.2g\n", r.Difference, math.Abs(r.FreeEnergy-r.FreeEnergyKaufman))
	fmt.Fprintf(w, "relative difference\t%.2g\n", r.RelativeDifference)
	return w.Flush()
}
