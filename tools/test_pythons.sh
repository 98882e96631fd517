#!/bin/sh
# The Python package under other interpreters: tools/test_pythons.sh PYTHON...
# SPDX-License-Identifier: Apache-2.0
#
# Each gets an environment of its own in build/pythons/ with NumPy, onnx and ml_dtypes, and a wheel: all that have the
# interpreter lock the same one, a free-threaded one its own. Tests that need more are skipped and named. JOBS=N bounds the
# compilers at work.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || {
    echo "usage: tools/test_pythons.sh PYTHON... (paths of interpreters, 3.11 or later)" >&2
    exit 2
}
root=$PWD
if [ -z "${CMAKE_C_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc 2>/dev/null || echo 2)}"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

passed=0
failed=0
rm -rf build/pythons
for interpreter in "$@"; do
    name=$("$interpreter" -c 'import sys, sysconfig
print("%d.%d%s" % (*sys.version_info[:2], "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))')
    folder=build/pythons/$name
    wheels=build/pythons/wheels-$(case $name in *t) echo "$name" ;; *) echo abi3 ;; esac)
    echo "== Python $name"
    "$interpreter" -m venv "$folder"
    "$folder/bin/python3" -m pip install --quiet numpy onnx==1.23.1 ml_dtypes
    [ -d "$wheels" ] || "$folder/bin/python3" -m pip wheel --quiet --no-deps -w "$wheels" .
    ls "$wheels"
    "$folder/bin/python3" -m pip install --quiet --no-deps "$wheels"/*.whl
    log=$folder/tests.log
    (cd / && "$root/$folder/bin/python3" -P "$root/tools/run_python_tests.py" --installed) >"$log" 2>&1 || true
    grep -v '^\.*$' "$log" || true
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    counts=${counts:-0 passed, 1 failed}
    passed=$((passed + ${counts%% *}))
    counts=${counts#*, }
    failed=$((failed + ${counts%% *}))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
