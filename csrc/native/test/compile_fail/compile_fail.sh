#!/bin/sh
# compile_fail.sh <include folder> [compiler]: what must not compile does not, because
# of the constraint and of nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
include=$1
compiler=${2:-${CXX:-g++}}
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

compile() { "$compiler" -std=c++20 -fsyntax-only -DRAFTRKT_HOST -I"$include" "-DREFUSED=$1" "$here/job.cpp" 2>"$errors"; }

compile 0 || { cat "$errors"; echo 'compile_fail: the entry point that is allowed does not compile'; exit 1; }
cases=$(sed -n 's/^#elif REFUSED == //p' "$here/job.cpp")
failed=0
for number in $cases; do
	if compile "$number"; then
		echo "compile_fail: case $number compiles"
		failed=1
	elif ! grep -q 'job_entry_point' "$errors"; then
		cat "$errors"
		echo "compile_fail: case $number fails for another reason"
		failed=1
	fi
done
set -- $cases
[ "$failed" = 0 ] && echo "compile_fail: $# entry points are refused"
exit "$failed"
