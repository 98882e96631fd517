#!/bin/sh
# Compiles the kernels of compiled models as `cameo compile` does, for every kind of processor, and runs
# those for aarch64 in an emulator where there is one.
# SPDX-License-Identifier: Apache-2.0
set -u
sources=$TESTS/../src
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

if ! command -v clang-19 >/dev/null; then
    echo "clang-19 is not installed: no kernel was compiled for another processor"
    echo "# counts: 0 passed, 0 failed"
    exit 0
fi

count() { # what, then a command
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $what"
    fi
}

# shellcheck disable=SC2086
compile() { # source, flags of the target, object
    clang-19 -std=c17 -O3 -ffreestanding -Wall -Wextra -Werror $2 -I"$sources" -c "$1" -o "$3"
}

for kernel in "$sources"/kernels/*.c; do
    name=$(basename "$kernel" .c)
    for target in "--target=x86_64-linux-gnu" "--target=x86_64-linux-gnu -march=x86-64-v3" \
        "--target=x86_64-linux-gnu -march=x86-64-v4" "--target=aarch64-linux-gnu" \
        "--target=riscv64-linux-gnu -march=rv64gc" "--target=riscv64-linux-gnu -march=rv64gcv" \
        "--target=wasm32" "--target=wasm32 -msimd128"; do
        count "$name for $target" compile "$kernel" "$target" "$folder/$name.o"
    done
done

# Nothing is asked for beyond memcpy and memset.
needs_only_memory_functions() {
    compile "$1" "--target=x86_64-linux-gnu" "$folder/needs.o" || return 1
    others=$(nm -u "$folder/needs.o" | grep -vwE 'memcpy|memset')
    [ -z "$others" ] || { echo "$1 needs:$others" && return 1; }
}
for kernel in "$sources"/kernels/*.c; do
    count "$(basename "$kernel") alone" needs_only_memory_functions "$kernel"
done

run_on_aarch64() {
    for kernel in "$sources"/kernels/*.c; do
        compile "$kernel" "--target=aarch64-linux-gnu" "$folder/$(basename "$kernel" .c).o" || return 1
    done
    aarch64-linux-gnu-gcc -static -std=c17 -O2 -I"$sources" "$TESTS/kernels/small.c" "$folder/f32.o" \
        "$folder/i8.o" "$folder/pack.o" -o "$folder/small" && qemu-aarch64 "$folder/small"
}
if command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null; then
    count "kernels on aarch64" run_on_aarch64
else
    echo "qemu-aarch64 or aarch64-linux-gnu-gcc is not installed: kernels for aarch64 did not run"
fi
echo "# counts: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
