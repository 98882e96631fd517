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

echo '-- weights that are no initializers'
cat >elsewhere.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
elsewhere (float[N,2] x, bool c) => (float[N,1] y, float[3] z)
{
    w = Constant<value: tensor = float[2,2] {1, 2, 3, 4}>()
    b = Constant<value_floats: floats = [1.0, 2.0]>()
    h = MatMul(x, w)
    g = Add(h, b)
    y = ai.onnx.ml.LinearRegressor<coefficients: floats = [1.0, 2.0], intercepts: floats = [0.5], targets: int = 1>(g)
    z = If(c) <
        then_branch = yes () => (float[3] p) <float[3] p = {1, 2, 3}> { },
        else_branch = no () => (float[3] q) { q = Constant<value: tensor = float[3] {4, 5, 6}>() }
    >
}
END
"$CAMEO" info elsewhere.onnxtxt | sed -n '/^parameters/,/^$/p'
"$CAMEO" info --json elsewhere.onnxtxt | grep -A 3 -e '_parameters": {'

echo '-- a model that says almost nothing'
printf '\072\000' >bare.onnx
"$CAMEO" info bare.onnx | head -n 2

echo '-- work and memory'
"$CAMEO" info linear.onnx --dim n=8 | sed -n '/^work/,$p'
"$CAMEO" info linear.onnx --dim m=8 2>&1
echo "[$?]"
"$CAMEO" info linear.onnx --dim n=none 2>&1
echo "[$?]"
