package main

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/tensor"
)

// checkOperands finds, before any file is read beyond its header, what is wrong
// with the files, and whether their shapes fit the specification: it plans the
// contraction with arrays of those shapes that have one element.
func checkOperands(ctx context.Context, spec string, files []string, convert bool) error {
	one, err := tensor.Zeros(ctx, tensor.Float64)
	if err != nil {
		return err
	}
	operands := make([]*tensor.Array, len(files))
	var first tensor.DType
	for i, file := range files {
		info, err := tensor.StatNPY(file)
		if err != nil {
			return err
		}
		if i == 0 {
			first = info.DType
		}
		if info.DType != first && !convert {
			return weir.Argf("einsum", "%s is %v and %s is %v; expected one element type: --dtype NAME converts all operands",
				files[0], first, file, info.DType)
		}
		if operands[i], err = one.Broadcast(info.Shape...); err != nil {
			return err
		}
	}
	_, err = tensor.PlanEinsum(tensor.EinsumOptions{Names: files}, spec, operands...)
	return err
}
