#!/bin/sh
# Compiles kernels.cu into kernels.fatbin, which package kernels embeds, and
# keeps the hash of what it was made from in kernels.sum. It needs nvcc of CUDA
# 12.8 or later: CUDA_HOME, else the toolkit that make cuda-sdk installed, else
# /usr/local/cuda. Machine code for the A100 and the H100 and H200; PTX, which
# the driver compiles, for what comes after them.
set -eu
cd "$(dirname "$0")"

sources="build.sh kernels.cu numbers.h params.h twins.h"
for root in "${CUDA_HOME:-}" "${WEIR_CUDA_SDK:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/cuda-13.0}/nvidia/cu13" /usr/local/cuda; do
	if [ -x "$root/bin/nvcc" ]; then
		"$root/bin/nvcc" -std=c++17 -O3 --fatbin --compress-mode=speed -Xfatbin -compress-all \
			-gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[sm_90,compute_90]' \
			kernels.cu -o kernels.fatbin.new
		mv kernels.fatbin.new kernels.fatbin
		cat $sources | sha256sum | cut -d ' ' -f 1 >kernels.sum
		exit 0
	fi
done
echo "kernels: no nvcc in CUDA_HOME, WEIR_CUDA_SDK or /usr/local/cuda; run make cuda-sdk" >&2
exit 1
