package bench

// The scenarios of GPUs, beside loops in C that make the same driver calls.

var gpuGemm = Scenario{
	Name: "gpu-gemm",
	About: "square products of 8192, each of the one before, through tensor.MatMul, beside raw cuBLAS: the device's time for each" +
		" product, with what the host needs to submit one beside it",
	Need:  "0.99 of raw cuBLAS for sgemm, dgemm and sgemm in TF32",
	On:    GPUOnly,
	Cases: gpuGemmCases,
}

var gpuSmall = Scenario{
	Name: "gpu-small",
	About: "tensor.GemmInto of 64×64 on an idle device, beside a loop in C of a product of cuBLAS and an event for each: the host's" +
		" time to submit one, alone and as one of eight into one result on as many streams, and the time until it is done",
	Need:  "at most 1.5 us more than the loop in C to submit one, and no heap allocation",
	On:    GPUOnly,
	Cases: gpuSmallCases,
}

var gpuChain = Scenario{
	Name: "gpu-chain",
	About: "64 products of 64×64, each of the one before, until the last is done: through tensor.GemmInto, and on one execution" +
		" lease, beside a loop in C on one stream",
	Need:  "1.1 of the loop in C",
	On:    GPUOnly,
	Cases: gpuChainCases,
}

var gpuStreams = Scenario{
	Name:  "gpu-streams",
	About: "8 independent products of 1024 through tensor.GemmInto, until all are done, beside a loop in C over 8 streams",
	Need:  "1.02 of the loop in C",
	On:    GPUOnly,
	Cases: gpuStreamsCases,
}

var gpuCopy = Scenario{
	Name: "gpu-copy",
	About: "1 GiB between a plain Go slice and the device, through tensor.From and back into a slice that is there or, with" +
		" tensor.Data, a new one; and between page-locked memory and the device; beside raw asynchronous copies of the same memory",
	Need:  "25 GB/s each way for a slice that is there; 0.97 of the raw copy for page-locked memory",
	On:    GPUOnly,
	Cases: gpuCopyCases,
}

var gpuFlat = Scenario{
	Name: "gpu-flat",
	About: "ten million times: a block of up to 4 KiB made, a stream leased, the block accessed and freed; beside stream-ordered" +
		" memory of the driver with an event for each. The growth of the heap, the process and the device's memory is checked",
	Need:  "flat: the heap grows by at most 256 KiB, the process by 32 MiB, the device's memory by 2 MiB",
	On:    GPUOnly,
	Cases: gpuFlatCases,
}

var gpuStart = Scenario{
	Name: "gpu-start",
	About: "making a device's resources and closing them, in a process that has its context, beside making as many streams and" +
		" events alone. The device's memory is looked at before, after the first product, and at the end",
	Need:  "no handle before its first use; closing gives all memory back",
	On:    GPUOnly,
	Cases: gpuStartCases,
}

var gpuCalls = Scenario{
	Name: "gpu-calls",
	About: "single calls of the driver through Weir's interface of it, which crosses from Go to C, beside the same calls in a loop" +
		" in C: the host's time on an idle device",
	On:    GPUOnly,
	Cases: gpuCallsCases,
}
