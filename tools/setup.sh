#!/bin/sh
# Installs what is missing, and nothing that is there: tools/setup.sh build|test|python|dev|cross|bench|compile|checkpoints|frontends|handover
# SPDX-License-Identifier: Apache-2.0
#
# build   what compiles the library: a C compiler, CMake, Ninja; and what it opens at run time if it
#         can be had: oneDNN, zlib, zstd, libyaml; and what its module of image codecs links
# test    and what tests it: cmocka, Python with the pinned packages in build/venv, a second oneDNN
#         in build/onednn3; and, if it can be had, what `cameo compile` needs: MLIR, clang and lld
#         of LLVM 19 (some 900 MB), and what runs models for other processors: qemu's emulation of
#         one process, Node (some 250 MB)
# python  what builds the Python package, its headers among them, and what its tests use, in
#         build/python-venv (550 MB)
# dev     and what checks it: clang, its sanitizer run-time, clang-format, a C++ compiler
# cross   what test has, and a compiler, an emulator and cmocka for aarch64
# bench   what test has, and the peers in build/bench-venv: ONNX Runtime, PyTorch (some 6 GB)
# compile what test has, all of it needed, MLIR's tools, and a compiler's library for microcontrollers
# checkpoints  what test has, and the frameworks whose checkpoints are read and written, in
#         build/checkpoints-venv and build/checkpoints-ort-venv (some 9 GB)
# handover  what checkpoints has, and what judges generated code, in build/handover-venv, which
#         sees the frameworks of build/checkpoints-venv (some 60 MB more)
# frontends  what test has, and the frameworks whose converters write models, in build/frontends-venv
#         (some 8 GB)
set -u
cd "$(dirname "$0")/.." || exit 3

level=${1:-build}
case $level in
build | test | python | dev | cross | bench | compile | checkpoints | frontends | handover) ;;
*)
    echo "usage: tools/setup.sh build|test|python|dev|cross|bench|compile|checkpoints|frontends|handover" >&2
    exit 2
    ;;
esac

# What the tests of the library need, besides what builds it.
case $level in
build | python) tests= ;;
*) tests=yes ;;
esac

say() {
    echo "setup: $*"
}

missing=
wanted=
# need PACKAGE CHECK...: remembers PACKAGE when CHECK fails.
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

# want PACKAGE CHECK...: the same for what makes things faster but is not needed.
want() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || wanted="$wanted $package"
}

has() {
    command -v "$1"
}

has_header() {
    echo "#include <$1>" | cc -E -o /dev/null -
}

has_shared() {
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q "^[[:space:]]*$1 "
}

has_onednn() {
    has_shared libdnnl.so.2 || has_shared libdnnl.so.3
}

# The package with the library alone is named after its version, which differs by release.
onednn_package() {
    found=$(apt-cache search --names-only '^libdnnl[0-9.]+$' 2>/dev/null | sort | sed -n '1s/ .*//p')
    echo "${found:-libdnnl2}"
}

# What a compiler for ARM calls where there is no instruction.
has_arm_library() {
    ls /usr/lib/gcc-cross/arm-linux-gnueabihf/*/libgcc.a 2>/dev/null | grep -q .
}

arm_library_package() {
    found=$(apt-cache search --names-only '^libgcc-[0-9]+-dev-armhf-cross$' 2>/dev/null | sort | sed -n '1s/ .*//p')
    echo "${found:-libgcc-12-dev-armhf-cross}"
}

# Its folder is named after its version.
has_openjpeg() {
    ls /usr/include/openjpeg-2.*/openjpeg.h /usr/local/include/openjpeg-2.*/openjpeg.h 2>/dev/null |
        grep -q .
}

has_new_cmake() {
    version=$(cmake --version | sed -n 's/^cmake version //p')
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    [ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -ge 25 ]; }
}

has_python_headers() {
    python3 -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))'
}

has_sanitizer_runtime() {
    file=$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)
    [ -e "$file" ] && return 0
    [ -e "$(clang -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ]
}

need gcc has cc
need libc6-dev has_header stdlib.h
need cmake has_new_cmake
need ninja-build has ninja
has_onednn || want "$(onednn_package)" false
want zlib1g has_shared libz.so.1
want libzstd1 has_shared libzstd.so.1
want libyaml-0-2 has_shared libyaml-0.so.2
want libjpeg-dev has_header jpeglib.h
want libpng-dev has_header png.h
want libwebp-dev has_header webp/decode.h
want libopenjp2-7-dev has_openjpeg
want libtiff-dev has_header tiffio.h
# Starting Python to ask takes longer than all other checks: only when the answer matters.
if [ "$level" != build ]; then
    need python3 has python3
    if [ ! -x build/venv/bin/python3 ]; then
        need python3-venv python3 -c 'import ensurepip, venv'
    fi
fi
if [ -n "$tests" ]; then
    need libcmocka-dev has_header cmocka.h
    need binutils has nm
    need pkg-config has pkg-config
    want llvm-19-dev test -e /usr/lib/llvm-19/include/llvm-c/Core.h # libmlir-19-dev does not ask for it
    want libmlir-19-dev test -e /usr/lib/llvm-19/include/mlir-c/IR.h
    want clang-19 has clang-19
    want lld-19 has ld.lld-19
    want qemu-user has qemu-riscv64
    want nodejs has node # runs WebAssembly
fi
if [ "$level" = compile ]; then
    need llvm-19-dev test -e /usr/lib/llvm-19/include/llvm-c/Core.h
    need libmlir-19-dev test -e /usr/lib/llvm-19/include/mlir-c/IR.h
    need clang-19 has clang-19
    need lld-19 has ld.lld-19
    need mlir-19-tools has mlir-opt-19
    need qemu-user has qemu-riscv64
    need nodejs has node
    has_arm_library || want "$(arm_library_package)" false
fi
if [ "$level" = python ]; then
    need python3-dev has_python_headers
fi
if [ "$level" = bench ]; then
    need g++ has c++ # torch.compile
fi
if [ "$level" = cross ]; then
    need gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdlib.h
    need qemu-user has qemu-aarch64
    need libcmocka-dev:arm64 test -e /usr/lib/aarch64-linux-gnu/libcmocka.so
fi
if [ "$level" = dev ]; then
    need clang has clang
    need clang-format has clang-format
    want mlir-19-tools has mlir-tblgen-19
    need g++ has c++
    if has clang >/dev/null; then
        need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" has_sanitizer_runtime
    else
        missing="$missing libclang-rt-dev"
    fi
fi

# install_packages PACKAGE...: false, with a word about it, where that cannot be done.
install_packages() {
    if ! has apt-get >/dev/null; then
        say "no apt-get here; please install: $*"
        return 1
    fi
    become=
    if [ "$(id -u)" -ne 0 ]; then
        if ! has sudo >/dev/null; then
            say "not root and no sudo; please install: $*"
            return 1
        fi
        become=sudo
    fi
    case "$*" in
    *:arm64*)
        if ! dpkg --print-foreign-architectures | grep -qx arm64; then
            say "dpkg --add-architecture arm64"
            $become dpkg --add-architecture arm64 || return 1
            $become apt-get update -q >build/setup.log 2>&1
        fi
        ;;
    esac
    say "apt-get install $*"
    # The package lists may be old or absent: a first try decides whether they are fetched.
    $become env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends "$@" >build/setup.log 2>&1 && return 0
    say "apt-get update"
    $become apt-get update -q >>build/setup.log 2>&1
    $become env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends "$@" >>build/setup.log 2>&1 && return 0
    tail -n 20 build/setup.log
    say "apt-get failed; please install: $*"
    return 1
}

mkdir -p build || exit 3
# shellcheck disable=SC2086
[ -z "$missing" ] || install_packages $missing
# What could not be had is not tried again with every `make`.
if [ -n "$wanted" ] && [ "$wanted" != "$(cat build/setup.without 2>/dev/null)" ]; then
    # shellcheck disable=SC2086
    if ! install_packages $wanted; then
        say "going on without$wanted"
        echo "$wanted" >build/setup.without
    fi
fi

for tool in cc cmake; do
    if ! has $tool >/dev/null; then
        say "cannot go on without $tool"
        exit 3
    fi
done
if ! has_new_cmake; then
    say "cmake is older than 3.25; please install a newer one (\`pip install cmake\` has it)"
    exit 3
fi

# make_venv FOLDER REQUIREMENTS [OPTION]...: options are for pip
make_venv() {
    folder=$1
    list=$2
    shift 2
    say "python3 -m venv $folder"
    rm -rf "$folder"
    python3 -m venv "$folder" || return 1
    say "pip install -r $list"
    "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check "$@" -r "$list" || return 1
    cp "$list" "$folder/installed.txt"
}

if [ -n "$tests" ] && ! cmp -s tools/requirements.txt build/venv/installed.txt; then
    if ! make_venv build/venv tools/requirements.txt --no-deps; then
        say "cannot make build/venv (Python 3.11 or newer and the network are needed)"
        exit 3
    fi
fi
if [ "$level" = python ] && ! cmp -s tools/requirements-python.txt build/python-venv/installed.txt; then
    if ! make_venv build/python-venv tools/requirements-python.txt --no-deps --no-compile; then
        say "cannot make build/python-venv (Python 3.11 or newer and the network are needed)"
        exit 3
    fi
fi
if [ "$level" = bench ] && ! cmp -s tools/requirements-bench.txt build/bench-venv/installed.txt; then
    if ! make_venv build/bench-venv tools/requirements-bench.txt; then
        say "cannot make build/bench-venv (Python 3.11 or newer, the network and 6 GB are needed)"
        exit 3
    fi
fi

# Each framework that cannot be had is told by the test as missing.
if [ "$level" = checkpoints ] || [ "$level" = handover ]; then
    cmp -s tools/requirements-checkpoints.txt build/checkpoints-venv/installed.txt ||
        make_venv build/checkpoints-venv tools/requirements-checkpoints.txt ||
        say "cannot make build/checkpoints-venv (Python 3.11 or newer, the network and 8 GB are needed)"
    cmp -s tools/requirements-checkpoints-ort.txt build/checkpoints-ort-venv/installed.txt ||
        make_venv build/checkpoints-ort-venv tools/requirements-checkpoints-ort.txt ||
        say "cannot make build/checkpoints-ort-venv (Python 3.8 to 3.11 and the network are needed)"
fi

if [ "$level" = handover ] && ! cmp -s tools/requirements-handover.txt build/handover-venv/installed.txt; then
    if make_venv build/handover-venv tools/requirements-handover.txt --no-deps; then
        frameworks=$(cd build/checkpoints-venv && echo "$PWD"/lib/python3*/site-packages)
        echo "$frameworks" >"$(echo build/handover-venv/lib/python3*/site-packages)/frameworks.pth"
    else
        say "cannot make build/handover-venv (Python 3.11 or newer and the network are needed)"
        exit 3
    fi
fi
if [ "$level" = frontends ] && ! cmp -s tools/requirements-frontends.txt build/frontends-venv/installed.txt; then
    if ! make_venv build/frontends-venv tools/requirements-frontends.txt; then
        say "cannot make build/frontends-venv (Python 3.11 or newer, the network and 8 GB are needed)"
        exit 3
    fi
fi

# Not installed into the virtual environment, where only Python would find it: the library alone is
# taken out of the package.
fetch_onednn3() {
    say "pip download -r tools/requirements-onednn.txt, for build/onednn3"
    rm -rf build/onednn3
    mkdir -p build/onednn3/lib || return 1
    cp tools/requirements-onednn.txt build/onednn3/tried.txt
    build/venv/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps \
        -d build/onednn3 -r tools/requirements-onednn.txt || return 1
    build/venv/bin/python3 -m zipfile -e build/onednn3/*.whl build/onednn3/whole || return 1
    mv build/onednn3/whole/*.data/data/lib/libdnnl.so.3 build/onednn3/lib/ || return 1
    rm -rf build/onednn3/whole build/onednn3/*.whl
}

# Without it, tests on oneDNN 3.x are left out.
if [ -n "$tests" ] && [ "$(uname -m)" = x86_64 ] &&
    ! cmp -s tools/requirements-onednn.txt build/onednn3/tried.txt; then
    fetch_onednn3 || say "going on without oneDNN 3.x, on which tests run a second time"
fi
exit 0
