#!/bin/sh
# An installed tree can be used through pkg-config and through CMake: install.sh CMAKE BUILD CC PYTHON
# SPDX-License-Identifier: Apache-2.0
set -u
cmake=$1
build=$2
cc=$3
python=$4

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
#include <stdio.h>
#include <string.h>
static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "g (float[2] x) => (float[2] y) { y = Add(x, x) }\n";
int main(int argc, char **argv)
{
    struct cameo_model *model = NULL;
    struct cameo_session *session = NULL;
    struct cameo_error err;
    const float x[2] = {1, 2};
    const int64_t dims[1] = {2};
    const struct cameo_tensor memory = cameo_tensor_of(CAMEO_FLOAT, 1, dims, x, sizeof x);
    const struct cameo_feed feed = cameo_feed_tensor("x", &memory);
    struct cameo_fetch fetch = cameo_fetch_value("y");
    FILE *file = argc > 1 ? fopen(argv[1], "w") : NULL;
    int good;

    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        return 2;
    if (cameo_model_load(argv[1], NULL, &model, &err) != CAMEO_OK ||
        cameo_session_new(model, NULL, &session, &err) != CAMEO_OK ||
        cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    good = cameo_value_real(fetch.value, 0) == 2 && cameo_value_real(fetch.value, 1) == 4;
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_model_free(model);
    return good ? 0 : 1;
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
# Only release builds are hardened.
if grep -q '^CMAKE_BUILD_TYPE:.*=Release$' "$build/CMakeCache.txt"; then
    set -- --ours cameo --ours 'libcameo*.so.*'
else
    set --
fi
try "the loader searches no folder that is relative" \
    "$python" "$(dirname "$0")/elf.py" "$@" "$folder/prefix"
pc=$(find "$folder/prefix" -name cameo.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
if command -v pkg-config >/dev/null; then
    try "compiles through pkg-config" \
        "$cc" "$folder/user.c" -o "$folder/a.out" $(pkg-config --cflags --libs cameo)
    libraries=$(pkg-config --variable=libdir cameo)
    try "runs as linked through pkg-config" \
        env LD_LIBRARY_PATH="$libraries" "$folder/a.out" "$folder/a.onnxtxt"
    try "compiles statically through pkg-config" "$cc" "$folder/user.c" -o "$folder/b.out" \
        $(pkg-config --cflags cameo) "$libraries/libcameo.a" \
        $(pkg-config --static --libs cameo | sed 's/-lcameo\>//')
    try "runs as linked statically" "$folder/b.out" "$folder/b.onnxtxt"
fi
try "configures through CMake" "$cmake" -S "$folder/user" -B "$folder/user/build" \
    -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_C_COMPILER="$cc"
try "builds through CMake" "$cmake" --build "$folder/user/build"
try "runs with the shared library" "$folder/user/build/shared" "$folder/c.onnxtxt"
try "runs with the static library" "$folder/user/build/static" "$folder/d.onnxtxt"
if [ -x "$folder/prefix/bin/cameo" ]; then
    try "the installed command runs" "$folder/prefix/bin/cameo" --version
fi
finds_codecs() {
    (cd / && env -u CAMEO_CODECS "$folder/prefix/bin/cameo" --version) | tee "$folder/version" |
        grep -q "$folder/prefix/.*libcameo_codecs"
}
if [ -x "$folder/prefix/bin/cameo" ] && ls "$build"/libcameo_codecs.so.* >/dev/null 2>&1; then
    try "the installed command finds its image codecs" finds_codecs
fi
if [ -f "$build/share/cameo.1" ]; then
    try "the manual is there" test -s "$folder/prefix/share/man/man1/cameo.1"
    try "bash completes" test -s "$folder/prefix/share/bash-completion/completions/cameo"
    try "zsh completes" test -s "$folder/prefix/share/zsh/site-functions/_cameo"
fi
# `make install` into a folder whose name has a space: one argument, not two.
mkdir -p "$folder/checkout/tools" "$folder/bin"
cp "$(dirname "$0")/../../tools/build.sh" "$folder/checkout/tools"
printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' >"$folder/bin/cmake"
chmod +x "$folder/bin/cmake"
gives_prefix() {
    PATH="$folder/bin:$PATH" PREFIX="$folder/my programs" sh "$folder/checkout/tools/build.sh" release &&
        grep -Fx -e "-DCMAKE_INSTALL_PREFIX=$folder/my programs" "$folder/checkout/build/configure.log"
}
try "installs into a folder whose name has a space" gives_prefix
echo "# counts: $passed passed, $failed failed"
[ $failed -eq 0 ]
