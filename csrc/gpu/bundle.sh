#!/bin/sh
# Packs what a GPU machine without Go needs into build/gpu-bundle.tar.xz: test
# binaries with the cuda tag and what they read, the command, run.sh and run.py; and
# the native interface, on RAFT, where make raft built it. It needs what make cuda
# needs, and nothing of it goes into the bundle but Weir's own code, and RMM with its
# logger. Run it as make gpu-bundle.
set -eu
cd "$(dirname "$0")/../.."

packages="internal/driver/cuda internal/graph internal/devicetest csrc/floor provider provider/blas provider/solver buffer runtime profile tensor tensor/flow tensor/grad async scheduler stream bench"
native="native provider/raft" # that call libraries of build/raft
most=$((60 << 20)) # bytes of the bundle

. ./build/cuda.env
work=build/gpu-bundle
rm -rf "$work"
mkdir -p "$work/weir-gpu/tests"
if [ -f build/raft/libraftrkt.so ]; then
	mkdir "$work/weir-gpu/raft"
	cp build/raft/*.so "$work/weir-gpu/raft/"
	[ ! -f build/raft/raft_test ] || cp build/raft/raft_test "$work/weir-gpu/raft/"
	packages="$packages $native"
else
	echo "gpu-bundle: without RAFT; make raft builds it"
fi
for p in $packages; do
	mkdir -p "$work/weir-gpu/tests/$p"
	go test -c -tags cuda -trimpath -ldflags '-s -w' -o "$work/weir-gpu/tests/$p/" "./$p"
	if [ -d "$p/testdata" ]; then
		cp -r "$p/testdata" "$work/weir-gpu/tests/$p/"
	fi
done
go build -tags cuda -trimpath -ldflags '-s -w' -o "$work/weir-gpu/weir" ./cmd/weir
cp csrc/gpu/run.sh csrc/gpu/run.py "$work/weir-gpu/"
cp -r examples/data "$work/weir-gpu/"
git describe --always --dirty 2>/dev/null >"$work/weir-gpu/version" || echo unknown >"$work/weir-gpu/version"

# The binaries have most of their code in common: a dictionary as long as several of
# them makes half of it.
tar -C "$work" -cf - weir-gpu | xz --lzma2=preset=4,dict=96MiB >build/gpu-bundle.tar.xz.new
mv build/gpu-bundle.tar.xz.new build/gpu-bundle.tar.xz
bytes=$(wc -c <build/gpu-bundle.tar.xz)
echo "build/gpu-bundle.tar.xz: $bytes bytes"
[ "$bytes" -le "$most" ] || { echo "gpu-bundle: that is more than $most" >&2; exit 1; }
