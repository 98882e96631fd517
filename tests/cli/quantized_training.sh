# Training of quantized models is refused with the way on; float tensors can be named.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >rounded.onnxtxt <<'EOF2'
<ir_version: 8, opset_import: ["" : 17]>
rounded (float[N,2] x) => (float[N,2] y)
<float[2,2] w = {0.5, -0.5, 0.25, 1}, float scale = {0.01}, int8 zero = {0}, float[2] bias = {0.5, 0.25}>
{
    [q] wq = QuantizeLinear(w, scale, zero)
    [d] wd = DequantizeLinear(wq, scale, zero)
    [m] h = MatMul(x, wd)
    [a] y = Add(h, bias)
}
EOF2
cat >stored.onnxtxt <<'EOF2'
<ir_version: 8, opset_import: ["" : 17]>
stored (float[N,2] x) => (float[N,2] y)
<int8[2,2] w = {50, -50, 25, 100}, float scale = {0.01}, int8 zero = {0}, float[2] bias = {0.5, 0.25}>
{
    [d] wd = DequantizeLinear(w, scale, zero)
    [m] h = MatMul(x, wd)
    [a] y = Add(h, bias)
}
EOF2
cat >integers.onnxtxt <<'EOF2'
<ir_version: 8, opset_import: ["" : 17]>
integers (float[N,2] x) => (float[N,2] y)
<int8[2,2] w = {50, -50, 25, 100}, float scale = {0.01}, float[2] bias = {0.5, 0.25}>
{
    [q] xq, xs, xz = DynamicQuantizeLinear(x)
    [m] h = MatMulInteger(xq, w, xz)
    [c] hf = Cast<to: int = 1>(h)
    [s] hs = Mul(hf, xs)
    [t] ht = Mul(hs, scale)
    [a] y = Add(ht, bias)
}
EOF2
for model in rounded stored integers; do
    try prepare $model.onnxtxt --loss mse --optimizer sgd --list
    try prepare $model.onnxtxt --loss mse --optimizer sgd --train bias -o $model-ready.onnx
done
