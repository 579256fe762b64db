#!/bin/sh
# c_headers.sh <include folder>: the C headers compile in C99, C11, and old and new C++.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
strict='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only'
for header in "$1"/raftrkt/*.h; do
	name="raftrkt/$(basename "$header")"
	for language in 'cc -x c -std=c99' 'cc -x c -std=c11' 'c++ -x c++ -std=c++11' 'c++ -x c++ -std=c++20'; do
		${language%% *} ${language#* } $strict -DRAFTRKT_HOST -I"$1" "-DHEADER=\"$name\"" "$here/c_headers.c" ||
			{ echo "c_headers: $name does not compile with ${language#* }"; exit 1; }
	done
done
echo 'c_headers: every header compiles in C99, C11, C++11 and C++20'
