//go:build !cuda

package bench

import "github.com/weirgo/weir"

// Without the tag there is no GPU for these scenarios to run on.

func gpuGemmCases(Env) []Case    { return nil }
func gpuSmallCases(Env) []Case   { return nil }
func gpuChainCases(Env) []Case   { return nil }
func gpuStreamsCases(Env) []Case { return nil }
func gpuCopyCases(Env) []Case    { return nil }
func gpuFlatCases(Env) []Case    { return nil }
func gpuStartCases(Env) []Case   { return nil }
func gpuCallsCases(Env) []Case   { return nil }

func batchReference(Env, products) (*reference, error)           { return nil, noFloor() }
func loopReference(Env, products, int, bool) (*reference, error) { return nil, noFloor() }

// noFloor is what floors on a GPU answer.
func noFloor() error {
	return &weir.Error{Op: "bench.Run", Message: "this build has no GPU", Err: weir.ErrNotSupported}
}
