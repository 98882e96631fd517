#!/bin/sh
# Configures a preset where that is needed, then builds: tools/build.sh PRESET TARGET...
# SPDX-License-Identifier: Apache-2.0
#
# DEV=1 makes warnings errors; JOBS=N bounds the compilers at work; PREFIX is where to install.
set -eu
cd "$(dirname "$0")/.."

preset=$1
shift
case $preset in
release) dir=build ;;
*) dir=build/$preset ;;
esac

# Always said: a prefix of an earlier time would stick in CMake's cache.
configuration="-DCAMEO_DEV=${DEV:-0} -DCMAKE_INSTALL_PREFIX=${PREFIX:-/usr/local}"

# Reconfigure when asked for something else, or when cmocka or MLIR came after the first time.
stamp=$dir/configured-as.txt
log=$dir/configure.log
if [ ! -f "$dir/CMakeCache.txt" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$configuration" ] ||
    grep -q '^CMOCKA_LIBRARY:.*NOTFOUND' "$dir/CMakeCache.txt" ||
    { [ -e /usr/lib/llvm-19/include/mlir-c/IR.h ] && [ -e /usr/lib/llvm-19/include/llvm-c/Core.h ] &&
        grep -q '^CAMEO_\(MLIR\|LLVM\)_INCLUDE:.*NOTFOUND' "$dir/CMakeCache.txt"; }; then
    generator=
    if [ ! -f "$dir/CMakeCache.txt" ] && command -v ninja >/dev/null; then
        generator="-G Ninja"
    fi
    mkdir -p "$dir"
    echo "configure $preset in $dir"
    # shellcheck disable=SC2086
    if ! cmake --preset "$preset" $generator "-DCAMEO_DEV=${DEV:-0}" \
        "-DCMAKE_INSTALL_PREFIX=${PREFIX:-/usr/local}" >"$log" 2>&1; then
        cat "$log"
        exit 1
    fi
    echo "$configuration" >"$stamp"
fi

[ $# -gt 0 ] || exit 0
echo "build $preset: $*"
cmake --build "$dir" --parallel "${JOBS:-$(nproc 2>/dev/null || echo 2)}" --target "$@"
