package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// einsumFlags are the flags of weir einsum.
type einsumFlags struct {
	output, device string
	limit          sizeFlag
	dtype          dtypeFlag
	explain        bool
}

func newEinsumCommand(a *app) *cobra.Command {
	var f einsumFlags
	cmd := &cobra.Command{
		Use:   "einsum SPEC A.npy B.npy ... [-o OUT.npy]",
		Short: "Contract arrays in .npy files",
		Long: `Contract arrays in .npy files, as numpy.einsum does.

SPEC names the axes of each operand by letters, separated by commas, and after
'->' those of the result: the same letter is the same index, and an index that
the result lacks is summed. '...' stands for any further axes; without '->' the
result has the indices that occur once, in alphabetical order. A SPEC that
begins with '-' goes after '--'.

Three sites of a tensor train, joined:

  $ weir einsum 'asb,btc,cud->astud' left.npy middle.npy right.npy -o theta.npy

A trace, and a matrix's product with its transpose, both printed:

  $ weir einsum 'ii->' M.npy
  $ weir einsum 'ij,kj->ik' M.npy M.npy

Operands are contracted pair by pair in an order that is searched for; --explain
prints it. Files may be in C or Fortran order and in either byte order, and hold
float32, float64, complex64, complex128, int32, int64, float16 or bfloat16, all
of them the same; --dtype converts them.

Printed are the shape and the element type of the result; the path cost, in
floating-point operations; the peak memory of intermediate results, copies and
the result; and the time of the contraction without reading and writing files.
Without -o the result is printed too, abbreviated if it is large. With -o it
takes its place only when it is complete: until then, and after a failure or an
interrupt, an older file is as it was.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("arguments: got %d; expected SPEC and at least one file", len(args))
			}
			if f.output == "" && cmd.Flags().Changed("output") {
				return errors.New("--output is empty; expected a file")
			}
			if f.output == "-" {
				return errors.New("--output is -; expected a file: standard output takes the report")
			}
			return tensor.CheckEinsum(args[0], len(args)-1)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.einsum(cmd.Context(), &f, args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`FILE.npy` that the result is written to")
	addDeviceFlag(cmd, &f.device)
	flags.Var(&f.limit, "memory-limit", "most bytes for intermediate results, copies and the result, as in 512MiB, 2GB or 1000; operands do not count (default: what the device has free)")
	flags.Var(&f.dtype, "dtype", "element type that all operands are converted to; a complex one's imaginary part is dropped by a real one")
	flags.BoolVar(&f.explain, "explain", false, "print the plan: each step with its cost and memory; without -o, do nothing else")
	return cmd
}

// einsum checks all that it can before it reads a file, and all that is left
// before it computes.
func (a *app) einsum(ctx context.Context, f *einsumFlags, spec string, files []string) error {
	if f.output != "" {
		if err := checkPlace(f.output); err != nil {
			return err
		}
	}
	return onDevice(ctx, f.device, func(ctx context.Context, d runtime.Device) error {
		if err := checkOperands(ctx, spec, files, f.dtype.set); err != nil {
			return err
		}
		operands, err := load(ctx, files, f.dtype)
		if err != nil {
			return err
		}
		o := tensor.EinsumOptions{MemoryLimit: int64(f.limit), Names: files}
		plan, err := fit(d, &o, func(o tensor.EinsumOptions) (*tensor.Plan, error) {
			return tensor.PlanEinsum(o, spec, operands...)
		})
		if err != nil {
			return err
		}
		if f.explain {
			if err := plan.Explain(a.stdout); err != nil || f.output == "" {
				return err
			}
		}
		var result *tensor.Array
		start := time.Now()
		err = a.contracting(ctx, plan.Steps(), func(submitted func(done, total int)) error {
			o.Progress = submitted
			if result, err = tensor.EinsumWith(ctx, o, spec, operands...); err != nil {
				return err
			}
			return wait(ctx, result)
		})
		if err != nil {
			return err
		}
		took := time.Since(start)
		if f.output != "" {
			if err := tensor.SaveNPY(ctx, f.output, result); err != nil {
				return err
			}
		}
		if err := summarize(a.stdout, result, plan, took); err != nil || f.output != "" {
			return err
		}
		text, err := tensor.Format(ctx, result)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "\n%s\n", text)
		return err
	})
}

func summarize(w io.Writer, result *tensor.Array, plan *tensor.Plan, took time.Duration) error {
	table := newTable(w)
	fmt.Fprintf(table, "shape\t%s\n", shape(result))
	fmt.Fprintf(table, "dtype\t%v\n", result.DType())
	costOf(plan).write(table)
	fmt.Fprintf(table, "time\t%.3g s\n", took.Seconds())
	return table.Flush()
}

// shape writes a shape as tensor.Format does.
func shape(a *tensor.Array) string {
	if a.Rank() == 0 {
		return "()"
	}
	extents := make([]string, a.Rank())
	for i, n := range a.Shape() {
		extents[i] = strconv.Itoa(n)
	}
	return strings.Join(extents, "×")
}
