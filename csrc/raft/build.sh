#!/bin/sh
# Builds the native interface on RAFT into build/raft: libraftrkt.so, libweirraft.so,
# the example's libcanary.so, libraftrkt_test.so and raft_test, and RMM beside them.
# It needs nvcc of CUDA 13: CUDA_HOME, else the toolkit that make cuda-sdk installed,
# else /usr/local/cuda; and it installs RAFT where that is missing. Machine code for
# the H100 and H200; PTX, which the driver compiles, for what comes after them. Run it
# as make raft, which installs the interface's package, for the example, in
# build/native/prefix.
set -eu
cd "$(dirname "$0")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
out=$PWD/build/raft

fail() {
	printf 'raft: %s\n' "$1" >&2
	exit 1
}

cuda=
for root in "${CUDA_HOME:-}" "${WEIR_CUDA_SDK:-$cache/cuda-13.0}/nvidia/cu13" /usr/local/cuda; do
	if [ -x "$root/bin/nvcc" ] && [ -f "$root/include/cusparse.h" ]; then
		cuda=$root
		break
	fi
done
[ "$cuda" ] || fail 'no nvcc with cusparse.h in CUDA_HOME, WEIR_CUDA_SDK or /usr/local/cuda; run make cuda-sdk'
csrc/sdk/install.sh raft
raft=${WEIR_RAFT_SDK:-$cache/raft-26.10}

# compile FOLDER OF SOURCES, NAME OF ITS BUILD, SETTING...
compile() {
	sources=$1 build=$out/$2
	shift 2
	"$raft/cmake/data/bin/cmake" -S "$sources" -B "$build" -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_PREFIX_PATH="$PWD/build/native/prefix;$raft/libraft/lib64/cmake;$raft/librmm/lib64/cmake;$raft/rapids_logger/lib64/cmake" \
		-DCUDAToolkit_ROOT="$cuda" -DCMAKE_CUDA_COMPILER="$cuda/bin/nvcc" -DCMAKE_CUDA_ARCHITECTURES=90 \
		-DCMAKE_CUDA_FLAGS="-isystem=$raft/nvidia/cu13/include" \
		-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH='$ORIGIN' "$@" >"$build.log" ||
		fail "$sources could not be configured; $build.log and what is above say why"
	"$raft/cmake/data/bin/cmake" --build "$build"
}
mkdir -p "$out"
compile csrc/raft cmake
compile examples/native-canary/cpp canary -DRAFTRKT_FLAVOUR=raft

for file in "$out"/cmake/lib*.so "$out"/cmake/raft_test "$out"/canary/libcanary.so; do
	[ ! -f "$file" ] || install -s "$file" "$out"
done
install "$raft/librmm/lib64/librmm.so" "$raft/rapids_logger/lib64/librapids_logger.so" "$out"

# What is built against the interface's headers needs nothing of libraftrkt.
for library in libweirraft.so libcanary.so libraftrkt_test.so; do
	[ -f "$out/$library" ] || continue
	undefined=$(nm -D --undefined-only "$out/$library" | grep -E ' rr_') &&
		fail "$library refers to libraftrkt: $undefined"
done
echo "raft: $(cd "$out" && ls *.so | tr '\n' ' ')in build/raft"
