#!/bin/sh
# Runs judge_microsoft.py with the project's virtual environment: judge_microsoft.sh PROJECT
# SPDX-License-Identifier: Apache-2.0
set -eu
python=$1/build/venv/bin/python3
[ -x "$python" ] || python=python3
exec "$python" "$1/tests/ops/judge_microsoft.py" "$1/tests/ops/microsoft"
