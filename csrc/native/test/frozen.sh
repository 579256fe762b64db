#!/bin/sh
# frozen.sh <program> [write]: compares what the program prints of the interface with
# the list of its ABI version, or writes that list.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" >"$work/is"
version=$(sed -n 's/^constant RR_ABI_VERSION //p' "$work/is")
list=$here/../frozen/abi-$version.txt

if [ "${2:-}" = write ]; then
	cp "$work/is" "$list"
	exit 0
fi

# What the headers export or define must be known to the program.
missing=0
for name in $(sed -n 's/^RR_API.*[ *]\(rr_[a-z_]*\)(.*/\1/p; s/^#define \(RR_[A-Z0-9_]*\) .*/\1/p' "$here"/../include/raftrkt/*.h |
	grep -v -E '^RR_(API|BEGIN_C|END_C)$' | sort -u); do
	grep -q -w -- "$name" "$here/frozen.cpp" || { echo "frozen: test/frozen.cpp does not know $name"; missing=1; }
done
[ "$missing" = 0 ] || exit 1

if [ ! -f "$list" ]; then
	echo "frozen: ABI version $version has no list; write it with: frozen.sh $program write"
	exit 1
fi
if diff "$list" "$work/is" >"$work/diff"; then
	echo "frozen: the interface is that of ABI version $version, $(wc -l <"$list") facts"
	exit 0
fi
echo "frozen: the interface is not that of ABI version $version (< was, > is):"
grep '^[<>]' "$work/diff"
if grep -q '^<' "$work/diff"; then
	echo "frozen: libraries that are built would break. Take the change back, or give the interface a new ABI version:"
	echo "frozen: set RR_ABI_VERSION in include/raftrkt/abi.h to $((version + 1)), run: frozen.sh $program write,"
	echo "frozen: and change the canary in the same commit."
else
	echo "frozen: these are additions; if they are meant, run: frozen.sh $program write"
fi
exit 1
