#!/bin/sh
# A web page that reads digits: examples/web/run.sh [FOLDER], then open FOLDER over HTTP, for example with
# python3 -m http.server --directory FOLDER
# SPDX-License-Identifier: Apache-2.0
#
# CAMEO is the command (cameo); clang-19 and lld-19 must be there. Where Node is, it reads a digit too.
set -eu
cameo=${CAMEO:-cameo}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-web}"
cd "${1:-web}"

"$cameo" demo --dir demo >/dev/null 2>&1
"$cameo" set-shape demo/trained.onnx N=1 -o digits.onnx >/dev/null 2>&1
"$cameo" compile digits.onnx -o digits.wasm
cp "$here/index.html" "$here/model.mjs" .
if command -v node >/dev/null; then
    node "$here/read.mjs" digits.wasm demo/unseen.npy
fi
