#!/bin/sh
# Runs a GPU bundle: conformance, tests, compute-sanitizer where the machine lets
# it, benchmarks. It leaves machine.txt, summary.txt, tests.log and bench.log in
# the folder that is its first argument (results, without one), and fails if a
# test did. WEIR_GPU_SECONDS (540) is about how long it may take.
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-results}"
results=$(cd "${1:-results}" && pwd)
: >"$results/summary.txt"
: >"$results/tests.log"
: >"$results/bench.log"
end=$(($(date +%s) + ${WEIR_GPU_SECONDS:-540}))

# Where drivers and toolkits are: the usual places, and NVIDIA's wheels in the
# machine's Python.
wheels=$(python3 - 2>/dev/null <<'PYTHON'
import glob, os, sysconfig
root = os.path.join(sysconfig.get_paths()["purelib"], "nvidia")
print(":".join(sorted(glob.glob(root + "/*/lib"), key=lambda p: "cu13" not in p)))
PYTHON
)
export LD_LIBRARY_PATH="/usr/local/nvidia/lib64:/usr/local/cuda/lib64:$wheels${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export WEIR_TEST_CUDA=1

{
	date -u
	cat "$here/version"
	uname -srm
	nvidia-smi 2>&1 | head -n 20
	echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
	timeout 120 "$here/weir" devices 2>&1
} >"$results/machine.txt"

status=0
# step NAME SECONDS LOG COMMAND: runs a command and notes how it went.
step() {
	name=$1 limit=$2 log=$3
	shift 3
	left=$((end - $(date +%s)))
	if [ "$left" -lt 10 ]; then
		echo "NO TIME  $name" >>"$results/summary.txt"
		status=1
		return
	fi
	[ "$left" -ge "$limit" ] || limit=$left
	began=$(date +%s)
	echo "=== $name" >>"$results/$log"
	timeout --kill-after=10 "$limit" "$@" >>"$results/$log" 2>&1
	code=$?
	word=ok
	if [ "$code" -ne 0 ]; then
		word="FAILED ($code)"
		status=1
	fi
	echo "$word  $name  $(($(date +%s) - began)) s" >>"$results/summary.txt"
}

# in_package NAME SECONDS LOG PACKAGE ARGUMENTS: a package's test binary, where it
# finds its testdata.
in_package() {
	name=$1 limit=$2 log=$3 package=$4
	shift 4
	cd "$here/tests/$package" || exit 1
	step "$name" "$limit" "$log" "./$(basename "$package").test" "$@"
	cd "$here" || exit 1
}

in_package conformance 240 tests.log internal/driver/cuda -test.v -test.timeout=230s
step command 60 tests.log "$here/weir" einsum 'asb,btc,cud->astud' "$here/data/left.npy" "$here/data/middle.npy" "$here/data/right.npy" \
	-o "${TMPDIR:-/tmp}/weir-theta.npy"
# Arrays live on the first GPU. What names the host device in what it expects is
# left out; so is the runtime's own lifecycle, which is about host devices: it runs
# as where no GPU is visible.
in_package tensor 120 tests.log tensor -test.timeout=110s -test.skip='^(Example|TestTheWorkspaceOfHandlesIsCountedAndGivenBackAtClose)'
for package in provider/blas provider stream buffer; do
	in_package "$package" 60 tests.log "$package" -test.timeout=50s -test.skip='^Example'
done
cd "$here/tests/runtime" || exit 1
step 'runtime without a GPU' 60 tests.log env CUDA_VISIBLE_DEVICES= ./runtime.test -test.timeout=50s
cd "$here" || exit 1
in_package 'calls' 60 bench.log internal/driver/cuda -test.run='^$' -test.bench=Calls -test.benchtime=20000x
in_package 'copies of 1 GiB' 60 bench.log internal/driver/cuda -test.run='^$' -test.bench=1GiB -test.benchtime=10x
if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
	for tool in memcheck racecheck; do
		cd "$here/tests/internal/driver/cuda" || exit 1
		step "compute-sanitizer $tool" 90 tests.log "$sanitizer" --tool "$tool" --error-exitcode 99 ./cuda.test \
			-test.run='TestCUDAPassesTheConformanceSuite/Kernel/(sum_of_float32|copy_of_float64_to_float16|mul_of_complex64|large_views)$' -test.timeout=80s
		cd "$here" || exit 1
	done
else
	echo "not there  compute-sanitizer" >>"$results/summary.txt"
fi

cat "$results/summary.txt"
grep -E '^ *--- FAIL|^panic|^fatal error' "$results/tests.log" | head -n 60
grep -E '^Benchmark' "$results/bench.log"
exit "$status"
