#!/bin/sh
# Runs check_claims.py with the project's virtual environment: check_claims.sh PROJECT CAMEO
# SPDX-License-Identifier: Apache-2.0
set -eu
python=$1/build/venv/bin/python3
[ -x "$python" ] || python=python3
exec "$python" "$1/tests/grad/check_claims.py" "$2" "$1/data/gradients"
