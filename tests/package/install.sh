#!/bin/sh
# An installed tree can be used through pkg-config and through CMake: install.sh CMAKE BUILD CC
# SPDX-License-Identifier: Apache-2.0
set -u
cmake=$1
build=$2
cc=$3

folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0
# try SENTENCE COMMAND...: one test.
try() {
    sentence=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        echo "ok   $sentence"
        passed=$((passed + 1))
    else
        echo "FAIL $sentence"
        cat "$folder/log"
        failed=$((failed + 1))
    fi
}

cat >"$folder/user.c" <<'END'
#include <cameo.h>
int main(void)
{
    return 0;
}
END
mkdir "$folder/user"
cat >"$folder/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(cameo REQUIRED)
add_executable(shared ../user.c)
target_link_libraries(shared PRIVATE cameo::cameo)
add_executable(static ../user.c)
target_link_libraries(static PRIVATE cameo::static)
END

# Moved after installing: a package may not remember where it was.
try "installs" "$cmake" --install "$build" --prefix "$folder/first"
try "can be moved" mv "$folder/first" "$folder/prefix"
pc=$(find "$folder/prefix" -name cameo.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
if command -v pkg-config >/dev/null; then
    try "compiles through pkg-config" \
        "$cc" "$folder/user.c" -o "$folder/a.out" $(pkg-config --cflags --libs cameo)
fi
try "configures through CMake" "$cmake" -S "$folder/user" -B "$folder/user/build" \
    -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_C_COMPILER="$cc"
try "builds through CMake" "$cmake" --build "$folder/user/build"
try "runs with the shared library" "$folder/user/build/shared"
try "runs with the static library" "$folder/user/build/static"
if [ -x "$folder/prefix/bin/cameo" ]; then
    try "the installed command runs" "$folder/prefix/bin/cameo" --version
fi
if [ -f "$build/share/cameo.1" ]; then
    try "the manual is there" test -s "$folder/prefix/share/man/man1/cameo.1"
    try "bash completes" test -s "$folder/prefix/share/bash-completion/completions/cameo"
    try "zsh completes" test -s "$folder/prefix/share/zsh/site-functions/_cameo"
fi
echo "# counts: $passed passed, $failed failed"
[ $failed -eq 0 ]
