#!/bin/sh
# Runs a generator of judged cases with the project's virtual environment: make_judged.sh PROJECT SCRIPT FOLDER
# SPDX-License-Identifier: Apache-2.0
set -eu
python=$1/build/venv/bin/python3
[ -x "$python" ] || python=python3
exec "$python" "$1/tools/$2" "$3"
