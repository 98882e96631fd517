#!/bin/sh
# Runs the test of our functions over all floats, shared by as many processes as there are cores: every_float.sh PROGRAM
# SPDX-License-Identifier: Apache-2.0
set -u
program=$1
cores=$(nproc 2>/dev/null || echo 1)
logs=$(mktemp -d) || exit 3
trap 'rm -rf "$logs"' EXIT

first=0
while [ $first -lt "$cores" ]; do
    {
        MATH_STEP=$cores MATH_FIRST=$first "$program" 2>&1
        echo $? >"$logs/$first.status"
    } >"$logs/$first.log" &
    first=$((first + 1))
done
wait

failed=0
for status in "$logs"/*.status; do
    if [ "$(cat "$status")" -ne 0 ]; then
        failed=$((failed + 1))
        tail -n 20 "${status%.status}.log"
    fi
done
echo "$((cores - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
