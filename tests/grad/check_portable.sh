#!/bin/sh
# Runs check_portable.py with the project's virtual environment: check_portable.sh PROJECT RUN_CASES FOLDER...
# SPDX-License-Identifier: Apache-2.0
set -eu
python=$1/build/venv/bin/python3
[ -x "$python" ] || python=python3
here=$1/tests/grad
shift
exec "$python" "$here/check_portable.py" "$@"
