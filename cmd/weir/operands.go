package main

import (
	"context"

	"github.com/weirgo/weir/tensor"
)

// load reads the operands of a contraction, each file once, and converts them
// if a type is given.
func load(ctx context.Context, files []string, to dtypeFlag) ([]*tensor.Array, error) {
	operands := make([]*tensor.Array, len(files))
	known := map[string]*tensor.Array{}
	for i, file := range files {
		a := known[file]
		if a == nil {
			var err error
			if a, err = loadOne(ctx, file, to); err != nil {
				return nil, err
			}
			known[file] = a
		}
		operands[i] = a
	}
	return operands, nil
}

func loadOne(ctx context.Context, file string, to dtypeFlag) (*tensor.Array, error) {
	a, err := tensor.LoadNPY(ctx, file)
	if err != nil || !to.set || a.DType() == to.dtype {
		return a, err
	}
	b, err := tensor.AsType(ctx, a, to.dtype)
	if err != nil {
		return nil, err
	}
	return b, a.Free()
}
