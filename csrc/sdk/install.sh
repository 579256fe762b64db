#!/bin/sh
# Installs NVIDIA's wheels, pinned by hash, outside the checkout: install.sh those that
# a build with the cuda tag needs (requirements.txt), install.sh raft those that make
# raft needs besides (raft-requirements.txt). Does nothing where an installed toolkit
# will do, or where it has done its work before. docs/cuda.md says more.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
case ${1:-cuda} in
cuda)
	name=cuda-sdk
	wheels=requirements.txt
	variable=WEIR_CUDA_SDK
	target=${WEIR_CUDA_SDK:-$cache/cuda-13.0}
	what='CUDA 13.0 (0.9 GB to download, 1.3 GB installed)'
	instead="install NVIDIA's CUDA toolkit, 12 or later, and name it with CUDA_HOME"
	;;
raft)
	name=raft-sdk
	wheels=raft-requirements.txt
	variable=WEIR_RAFT_SDK
	target=${WEIR_RAFT_SDK:-$cache/raft-26.10}
	what='RAFT 26.10 (0.12 GB to download, 0.3 GB installed)'
	instead='do without RAFT, which only make raft needs'
	;;
*)
	echo "install.sh: got $1; expected raft or nothing" >&2
	exit 2
	;;
esac

fail() {
	printf '%s: %s\n' "$name" "$1" >&2
	exit 1
}

# A toolkit will do if it is CUDA 12 or later and has the headers of the libraries.
usable() {
	for header in cuda.h cublas_v2.h cusolverDn.h; do
		[ -f "$1/include/$header" ] || return 1
	done
	version=$(sed -n 's/^#define CUDA_VERSION \([0-9][0-9]*\).*/\1/p' "$1/include/cuda.h")
	[ "${version:-0}" -ge 12000 ]
}

# What is named comes before what is found.
if [ "$name" = cuda-sdk ]; then
	if [ -n "${CUDA_HOME:-}" ]; then
		if usable "$CUDA_HOME"; then
			echo "cuda-sdk: CUDA_HOME names a CUDA toolkit, $CUDA_HOME; nothing to install"
			exit 0
		fi
		echo "cuda-sdk: CUDA_HOME=$CUDA_HOME is passed over: it has no CUDA 12 or later with cuda.h, cublas_v2.h and cusolverDn.h" >&2
	fi
	if [ -z "${WEIR_CUDA_SDK:-}" ] && usable /usr/local/cuda; then
		echo "cuda-sdk: there is a CUDA toolkit, /usr/local/cuda; nothing to install"
		exit 0
	fi
fi

# 'layout 1' is what this script makes of the wheels; count on when that changes.
stamp=$({ echo 'layout 1'; cat "$here/$wheels"; } | sha256sum | cut -d ' ' -f 1)
installed() { [ "$(cat "$target/weir-stamp" 2>/dev/null)" = "$stamp" ]; }
if installed; then
	echo "$name: $target is up to date"
	exit 0
fi
if [ -e "$target" ] && [ ! -f "$target/weir-stamp" ]; then
	fail "$target exists and was not made by this script; name another folder with $variable"
fi

[ "$(uname -sm)" = 'Linux x86_64' ] ||
	fail "the pinned wheels are for x86-64 Linux, and this is $(uname -sm); $instead"
python=$(command -v python3 || command -v python) ||
	fail "Python with pip is needed to install the wheels; install it, or $instead"
"$python" -m pip --version >/dev/null 2>&1 ||
	fail "$python has no pip; install it, or $instead"

# Whatever happens, the target is the old one, the new one, or absent.
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "$name: installing $what into $target"
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip install --quiet --no-deps --require-hashes --only-binary=:all: \
	--no-compile --no-cache-dir --no-warn-script-location \
	--requirement "$here/$wheels" --target "$work/new" ||
	fail "pip could not install the wheels; what it said is above. Without a package index: $instead"

holds() { [ -f "$work/new/$1" ] || fail "the wheels hold no $1"; }
if [ "$name" = cuda-sdk ]; then
	# The wheels have no links for -lcublas, and nvcc looks for lib64.
	root=$work/new/nvidia/cu13
	holds nvidia/cu13/include/cuda.h
	ln -s lib "$root/lib64"
	for library in "$root"/lib/lib*.so.*; do
		file=$(basename "$library")
		ln -s "$file" "$root/lib/${file%.so.*}.so"
	done
else
	holds libraft/include/raft/core/handle.hpp
	holds librmm/lib64/librmm.so
	holds cmake/data/bin/cmake
fi
echo "$stamp" >"$work/new/weir-stamp"

if [ -e "$target" ]; then
	mv -T "$target" "$work/old" 2>/dev/null || true
fi
# Another run of this script may have been faster.
mv -T "$work/new" "$target" 2>/dev/null || installed || fail "could not put the installation in place at $target"
echo "$name: installed"
