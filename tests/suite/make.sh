#!/bin/sh
# Makes ONNX's test cases with the project's virtual environment: make.sh PROJECT FOLDER
# SPDX-License-Identifier: Apache-2.0
set -eu
python=$1/build/venv/bin/python3
[ -x "$python" ] || python=python3
exec "$python" "$1/tools/make_suite.py" "$2"
