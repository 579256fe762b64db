package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// fit plans a contraction within o.MemoryLimit or, without one, within what the
// device has free; o then has that limit if it made a difference.
func fit(d runtime.Device, o *tensor.EinsumOptions, plan func(tensor.EinsumOptions) (*tensor.Plan, error)) (*tensor.Plan, error) {
	p, err := plan(*o)
	if err != nil || o.MemoryLimit > 0 {
		return p, err
	}
	free, _, err := d.Memory()
	if err != nil || p.PeakBytes() <= free {
		return p, err
	}
	o.MemoryLimit = free
	within, err := plan(*o)
	if errors.Is(err, weir.ErrOutOfMemory) {
		return nil, &weir.Error{Op: "plan", Device: d.Name(), Kind: weir.KindOutOfMemory, Err: err,
			Message: fmt.Sprintf("the cheapest order needs %s and %s are free", inBytes(p.PeakBytes()), inBytes(free))}
	}
	return within, err
}

// cost is what a contraction costs.
type cost struct {
	steps     int
	flops     float64
	peakBytes int64
}

func costOf(p *tensor.Plan) cost { return cost{p.Steps(), p.FLOPs(), p.PeakBytes()} }

// write writes it, one figure a line.
func (c cost) write(w *tabwriter.Writer) {
	fmt.Fprintf(w, "steps\t%d\n", c.steps)
	fmt.Fprintf(w, "path cost\t%s\n", humanize.SIWithDigits(c.flops, 3, "flop"))
	fmt.Fprintf(w, "peak memory\t%s\n", inBytes(c.peakBytes))
}

// newTable aligns columns, in the parts of one table alike.
func newTable(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 21, 0, 2, ' ', 0)
}

func inBytes(n int64) string { return humanize.IBytes(uint64(n)) }
