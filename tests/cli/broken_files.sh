# Files that are cut short or no models at all: one sentence, exit 1, never a crash.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

head -c 100 "$TESTS/models/linear.onnx" >short.onnx
printf 'hello, I am a text file\n' >hello.onnx
: >empty.onnx
mkdir folder.onnx
for model in short hello empty folder; do
    try info $model.onnx
    try check $model.onnx
done
try print short.onnx
try copy short.onnx -o out.onnx
ls

# Cut at every length: yes or no, nothing else.
size=$(wc -c <"$TESTS/models/functions.onnx")
length=0
while [ $length -lt "$size" ]; do
    head -c $length "$TESTS/models/functions.onnx" >cut.onnx
    "$CAMEO" info cut.onnx >/dev/null 2>&1
    code=$?
    [ $code -le 1 ] || echo "cut at $length: exit $code"
    length=$((length + 7))
done
