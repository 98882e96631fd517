# cameo check: every finding, the counts, and what the exit code says.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cp "$TESTS/models/linear.onnx" "$TESTS/models/training_linreg_sgd.onnx" .
cat >bad.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) {
    [first] a = Relu(x, x, x)
    [second] y = Ad(a, ghost)
}
END
try check linear.onnx
try check linear.onnx training_linreg_sgd.onnx
try check bad.onnxtxt linear.onnx
try check --json bad.onnxtxt
"$CAMEO" check --json linear.onnx bad.onnxtxt none.onnx 2>said.txt >found.json
echo "[$?]"
python3 -c '
import json
for entry in json.load(open("found.json")):
    print(entry["model"], entry.get("violations"), entry.get("error"))'
cat said.txt
