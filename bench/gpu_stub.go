//go:build !cuda

package bench

// Without the tag there is no GPU for these scenarios to run on.

func gpuGemmCases(Env) []Case    { return nil }
func gpuSmallCases(Env) []Case   { return nil }
func gpuChainCases(Env) []Case   { return nil }
func gpuStreamsCases(Env) []Case { return nil }
func gpuCopyCases(Env) []Case    { return nil }
func gpuFlatCases(Env) []Case    { return nil }
func gpuStartCases(Env) []Case   { return nil }
func gpuCallsCases(Env) []Case   { return nil }
