package bench

// smallSizes are the extents of small products; requiredSmall is that with a
// requirement.
var smallSizes = []int{8, 16, 32, 64, 128}

const requiredSmall = 64

var gemmSmall = Scenario{
	Name: "gemm-small",
	About: "square products of float32 from 8 to 128 through tensor.GemmInto and tensor.MatMul with Free, each waited for," +
		" beside the same BLAS called directly; of 64 also beside its bare routine. On a GPU beside the host's BLAS",
	Need: "on the host device, of 64: at most 2 us more than the direct call, and at most 1 heap allocation for MatMul, none for GemmInto",
	Cases: func(env Env) []Case {
		if !env.Resources.Device().IsHost() {
			return gpuBesideHost()
		}
		var cases []Case
		for _, n := range smallSizes {
			cases = append(cases,
				smallCase(n, "GemmInto", "direct", 0),
				smallCase(n, "MatMul", "direct", 1))
		}
		return append(cases, smallCase(requiredSmall, "GemmInto", "bare", 0))
	},
}

// gpuBesideHost shows which products are worth a launch; nothing is promised.
func gpuBesideHost() []Case {
	var cases []Case
	for _, n := range smallSizes {
		for _, call := range []string{"GemmInto", "MatMul"} {
			cases = append(cases, gemmCase[float32](n, call, "host", Microseconds))
		}
	}
	return cases
}

func smallCase(n int, call, floor string, allocs float64) Case {
	var limits []Limit
	if n == requiredSmall {
		limits = []Limit{{Of: OfExcess, Max: 2}, {Of: OfAllocs, Max: allocs}}
	}
	return gemmCase[float32](n, call, floor, Microseconds, limits...)
}
