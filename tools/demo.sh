#!/bin/sh
# A short walk through the command: tools/demo.sh [CAMEO], run by `make demo-files`.
# SPDX-License-Identifier: Apache-2.0
set -eu
cameo=${1:-build/cameo}
case $cameo in
*/*) cameo=$(cd "$(dirname "$cameo")" && pwd)/$(basename "$cameo") ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

if [ -t 1 ]; then
    bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m')
else
    bold='' dim='' plain=''
fi

heading() {
    printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

show() {
    printf '%s$ cameo %s%s\n' "$dim" "$*" "$plain"
    "$cameo" "$@" 2>&1
}

heading 'A model that knows how to train itself, written by hand'
cat >line.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview.training" : 1],
 doc_string: "fits a line: y = slope * x + offset">
line (float[N] x) => (float[N] y)
<float slope = {0}, float offset = {0}>
{
    scaled = Mul (x, slope)
    y = Add (scaled, offset)
}
training {
    algorithm: descent (float[N] target) => (float loss, float new_slope, float new_offset)
    <float rate = {0.1}>
    {
        error = Sub (y, target)
        squared = Mul (error, error)
        loss = ReduceMean <keepdims = 0> (squared)
        by_slope, by_offset = ai.onnx.preview.training.Gradient
            <xs = ["slope", "offset"], zs = ["x", "target"], y = "loss"> (slope, offset, x, target)
        step_slope = Mul (rate, by_slope)
        new_slope = Sub (slope, step_slope)
        step_offset = Mul (rate, by_offset)
        new_offset = Sub (offset, step_offset)
    },
    update_binding: ["slope": "new_slope", "offset": "new_offset"]
}
END
cat line.onnxtxt
show copy line.onnxtxt -o line.onnx

heading 'What is in it'
show info line.onnx

heading 'Is it legal ONNX, training included?'
show check --strict line.onnx

heading 'And what if it were not?'
sed 's/Mul (x, slope)/Mull (x, slop)/; s/"offset": "new_offset"/"ofset": "new_offset"/' \
    line.onnxtxt >wrong.onnxtxt
show check wrong.onnxtxt || true

heading 'Saved again: not a byte is different'
show copy line.onnx -o again.onnx
cmp line.onnx again.onnx
sha256sum line.onnx again.onnx

heading 'Printed, read back, printed: nothing is lost'
show print line.onnx -o one.onnxtxt
show copy one.onnxtxt -o back.onnx
show print back.onnx -o two.onnxtxt
cmp one.onnxtxt two.onnxtxt
sha256sum one.onnxtxt two.onnxtxt

printf "\nYour turn: %s help\n" "${1:-build/cameo}"
