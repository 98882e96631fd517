#!/bin/sh
# Builds the wheel as `pip install .` does, installs it into build/python-venv and runs its tests: tools/test_python.sh [NAME..]
# SPDX-License-Identifier: Apache-2.0
#
# NAME picks tests, as for tools/run_python_tests.py. The tests run outside the source tree, so that the package is the
# installed one. JOBS=N bounds the compilers at work.
set -eu
cd "$(dirname "$0")/.."

root=$PWD
python=$root/build/python-venv/bin/python3
wheels=build/wheels
if [ -z "${CMAKE_C_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc 2>/dev/null || echo 2)}"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

echo "pip wheel ."
rm -rf "$wheels"
mkdir -p "$wheels"
if ! "$python" -m pip wheel --no-deps -w "$wheels" . >build/wheel.log 2>&1; then
    tail -n 60 build/wheel.log
    exit 1
fi
ls -s -h "$wheels"
"$python" tests/package/elf.py --ours cameo --ours '_cameo.*' --ours 'libcameo*' "$wheels"/*.whl
"$python" -m pip install --quiet --no-compile --no-deps --force-reinstall "$wheels"/*.whl
cd /
exec "$python" -P "$root/tools/run_python_tests.py" --installed "$@"
