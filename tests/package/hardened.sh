#!/bin/sh
# What release builds must have: hardened.sh READELF FILE...
# SPDX-License-Identifier: Apache-2.0
set -eu
readelf=$1
shift
failed=0
need() { # FILE WHAT PATTERN OPTIONS: the pattern must be in what readelf says
    "$readelf" "$4" "$1" | grep -q -E "$3" && return
    echo "$1 has no $2"
    failed=$((failed + 1))
}
for file; do
    need "$file" 'relocations bound at start' 'BIND_NOW|Flags:.* NOW' -dW
    need "$file" 'read-only relocations' 'GNU_RELRO' -lW
    need "$file" 'stack that cannot be run' 'GNU_STACK .* RW ' -lW
    need "$file" 'stack protector' '__stack_chk_fail' -sW
    need "$file" 'checked functions of libc' '__[a-z]*_chk' -sW
done
need "$1" 'addresses of its own choice' 'Flags:.* PIE' -dW
echo "# counts: $((5 * $# + 1 - failed)) passed, $failed failed"
[ $failed = 0 ]
