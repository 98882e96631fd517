#!/bin/sh
# Runs a test on another oneDNN: with.sh VERSION LIBRARY COMMAND...  (VERSION none: without oneDNN)
# SPDX-License-Identifier: Apache-2.0
set -u
version=$1
library=$2
shift 2

if [ "$version" = none ]; then
    CAMEO_ONEDNN=off
    expected='^without oneDNN'
else
    if [ ! -e "$library" ]; then
        echo "skipped: there is no $library (tools/setup.sh test fetches it)"
        echo "# counts: 0 passed, 0 failed"
        exit 0
    fi
    CAMEO_ONEDNN=$library
    expected="^oneDNN $version\\."
fi
export CAMEO_ONEDNN
# A library that cannot be opened would be done without, and nothing tested.
if ! "$CAMEO" --version | grep -q "$expected"; then
    "$CAMEO" --version
    echo "FAIL oneDNN $version is not in use"
    echo "# counts: 0 passed, 1 failed"
    exit 1
fi
exec "$@"
