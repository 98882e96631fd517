# cameo info, for people and as JSON.
# SPDX-License-Identifier: Apache-2.0
for model in linear branches functions external sparse types training_mlp_adam_initialized; do
    cp "$TESTS/models/$model.onnx" .
    echo "\$ cameo info $model.onnx"
    "$CAMEO" info $model.onnx
    echo "[$?]"
done
echo '$ cameo info --json linear.onnx'
"$CAMEO" info --json linear.onnx
for model in "$TESTS"/models/*.onnx; do
    "$CAMEO" info --json "$model" | python3 -m json.tool >parsed.txt || echo "$model: not JSON"
done
echo '$ cameo info --json training_mlp_adam_initialized.onnx, a part'
"$CAMEO" info --json training_mlp_adam_initialized.onnx | python3 -c '
import json, sys
entry = json.load(sys.stdin)["training"][0]
print(entry["inputs"], entry["states"], entry["initialization_binding"][0])'

echo '-- a model that says almost nothing'
printf '\072\000' >bare.onnx
"$CAMEO" info bare.onnx | head -n 2
