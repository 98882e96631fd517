#!/bin/sh
# The shared library exports the functions of cameo.h and links libc and libm, nothing else:
# exports.sh LIBRARY HEADER NM READELF
# SPDX-License-Identifier: Apache-2.0
set -u
library=$1
header=$2
nm=$3
readelf=$4

folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
"$nm" -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort -u >"$folder/exported"
# Comments go first: a function may be spoken of before it is declared. Functions that are inline in
# the header have no CAMEO_API.
cc -fpreprocessed -dD -E -P "$header" | grep -v '^#' | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*CAMEO_API[^(]*\b\(cameo_[a-z0-9_]*\) *(.*/\1/p' | sort -u >"$folder/declared"

passed=0
failed=0
judge() {
    if [ -s "$folder/wrong" ]; then
        sed "s/^/$1: /" "$folder/wrong"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
comm -23 "$folder/exported" "$folder/declared" >"$folder/wrong"
judge "exported, not in cameo.h"
comm -13 "$folder/exported" "$folder/declared" >"$folder/wrong"
judge "in cameo.h, not exported"
# ld.so is there for thread-local variables and is part of libc.
"$readelf" -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -v '^libc\.so\|^libm\.so\|^ld-linux' >"$folder/wrong"
judge "linked, neither libc nor libm"
echo "# counts: $passed passed, $failed failed"
[ $failed -eq 0 ]
