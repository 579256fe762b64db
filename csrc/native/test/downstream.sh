#!/bin/sh
# downstream.sh <build folder> <canary's folder>: the canary, copied outside the tree,
# builds against an installation elsewhere and needs nothing of libraftrkt.
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "downstream: $1"
	exit 1
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
# The installation stays where it can be moved to.
mv "$work/prefix" "$work/moved to"
cp -r "$2" "$work/canary"
grep -r -n "csrc/native" "$work/canary" && fail 'the canary refers to the tree'

cmake -S "$work/canary" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved to" -DCMAKE_CXX_FLAGS=-O0 >"$work/log" ||
	{ cat "$work/log"; fail 'the canary cannot be configured'; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; fail 'the canary cannot be built'; }

library=$work/build/libcanary.so
undefined=$(nm -D --undefined-only "$library" | grep -E ' (rr_|_ZN?K?7raftrkt)' || true)
[ -z "$undefined" ] || fail "undefined symbols: $undefined"
exported=$(nm -D --defined-only "$library" | sed -n 's/.* [Tu] //p' | grep -v -E '^(kc_|_ZZ?NSt)' || true)
[ -z "$exported" ] || fail "exports more than kc_*: $exported"
ldd "$library" | grep -q raftrkt && fail 'linked with libraftrkt'

# What a downstream author may get wrong is said.
mkdir "$work/wrong"
cat >"$work/wrong/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(wrong LANGUAGES CXX)
find_package(raftrkt ${WANTED} REQUIRED)
END
expect() { # what, text, arguments of cmake
	what=$1 text=$2
	shift 2
	if cmake -S "$work/wrong" -B "$work/wrong/build" -DCMAKE_PREFIX_PATH="$work/moved to" "$@" >"$work/log" 2>&1; then
		fail "$what is accepted"
	fi
	tr -s '\n ' ' ' <"$work/log" | grep -q -F "$text" || { cat "$work/log"; fail "$what: the message is another"; }
	rm -rf "$work/wrong/build"
}
expect 'an unknown flavour' 'RAFTRKT_FLAVOUR: expected host or raft, got metal' -DRAFTRKT_FLAVOUR=metal
expect 'a version that is not there' 'compatible with requested version "0.3"' -DWANTED=0.3
echo 'downstream: the canary builds outside the tree and needs nothing of libraftrkt'
