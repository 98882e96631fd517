# Operators of ONNX Runtime: those that its optimizer writes run and train, others are named.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >fused.onnxtxt <<'END'
<ir_version: 7, opset_import: ["" : 12, "com.microsoft" : 1]>
fused (float[N,2] x) => (float[N,2] y)
<float[2,2] w = {1, 0.5, -1, 2}, float[2] gamma = {1, 2}, float[2] beta = {0, 0.5}, float[2] b = {0.5, -0.5}>
{
    [product] p = com.microsoft.FusedMatMul<transB = 1, alpha = 2.0>(x, w)
    [norm] n, n1, n2, s = com.microsoft.SkipLayerNormalization<epsilon = 1.0>(p, x, gamma, beta)
    [gelu] g = com.microsoft.BiasGelu(n, b)
    [layer] l = LayerNormalization<epsilon = 1.0>(g, gamma, beta)
    [rms] y = SimplifiedLayerNormalization<epsilon = 1.0>(l, gamma)
}
END
printf 'x1,x2,t1,t2\n1,2,0,1\n-1,0.5,1,0\n' >data.csv
sed 's/(float\[N,2\] x)/()/; s/^<float/<float[2,2] x = {1, 2, -1, 0.5}, float/' fused.onnxtxt >given.onnxtxt
try run given.onnxtxt
try gradcheck fused.onnxtxt 2>/dev/null | sed 's/ *differs.*//'
try train fused.onnxtxt --data data.csv --columns 'x=x1,x2 t=t1,t2' --target t --loss mse --optimizer sgd --lr 0.1 --steps 4 -o trained.onnx

echo '-- it is not ONNX that has them'
try check fused.onnxtxt

echo '-- those that nobody knows are all named'
cat >unknown.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1, "com.microsoft" : 1]>
unknown (float[2,2] x) => (float[2,2] y)
<float[2,2] w = {1, 2, 3, 4}>
{
    [a] u = my.own.Thing(x)
    [b] v = my.own.Other<k = 1>(u)
    [c] s = com.microsoft.Solve(v)
    [d] t = com.microsoft.FusedMatMul(s, w)
    [e] e = com.microsoft.FusedGemm<activation = "Cosine">(x, w)
    y = Add(e, t)
}
END
try run unknown.onnxtxt --random-inputs 2>&1 | sed 's/there: [0-9]* op/there: some op/'
printf 'x1,x2,t1,t2\n1,2,0,1\n' >one.csv
try train unknown.onnxtxt --data one.csv --columns 'x=x1,x2 t=t1,t2' --target t --loss mse --optimizer sgd -o t.onnx 2>&1 |
    sed 's/there: [0-9]* op/there: some op/'
try check unknown.onnxtxt

echo '-- a function of the model comes first'
cat >functions.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1, "com.microsoft" : 1]>
functions () => (float[1,2] y) <float[1,2] x = {1, 2}>
{
    u = my.own.Thing(x)
    y = com.microsoft.Gelu(u, u)
}
<domain: "my.own", opset_import: ["" : 17]>
Thing (a) => (b) { b = Neg(a) }
<domain: "com.microsoft", opset_import: ["" : 17]>
Gelu (a, b) => (c) { c = Add(a, b) }
END
try check functions.onnxtxt
try run functions.onnxtxt

echo '-- accuracy level 4 rounds the left operand; its gradient is that of level 0'
for level in 0 4; do
    cat >coded.onnxtxt <<MODEL
<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
coded () => (float[1,2] y)
<float[1,16] x = {127, -2, 3.25, -4, 5.5, -6.5, 7, -8, 9.25, 10, -11.5, 12, 13, 14, 15, 16.75},
 uint8[2,1,8] w = {16, 50, 84, 118, 152, 186, 220, 254, 16, 50, 84, 118, 152, 186, 220, 15}, float[2,1] scales = {0.5, 0.25}>
{
    y = com.microsoft.MatMulNBits<K = 16, N = 2, block_size = 16, accuracy_level = $level>(x, w, scales)
}
MODEL
    try run coded.onnxtxt
    "$CAMEO" grad coded.onnxtxt --of y --wrt x,scales -o gradient.onnx >/dev/null 2>&1 && "$CAMEO" run gradient.onnx
done

echo '-- --tool ort: what ONNX Runtime accepts is a note'
cat >order.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 12], producer_name: "somebody", producer_version: "1.2">
order (float[N,2] x) => (float[N,2] y)
<float[2] gamma = {1, 2}>
{
    [late] y = Relu(n)
    [norm] n = SimplifiedLayerNormalization(x, gamma)
}
END
try check order.onnxtxt
try check --tool ort order.onnxtxt
try check --tool ort --json order.onnxtxt
sed 's/Relu(n)/Relu(nothing)/' order.onnxtxt >still.onnxtxt
try check --tool ort still.onnxtxt
try check --tool other order.onnxtxt 2>&1

echo '-- that is not said of what ONNX Runtime refuses: a circle, bodies of nodes and functions out of order'
cat >circle.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
circle (float[N,2] x) => (float[N,2] y)
{
    y = Relu(n)
    n = Neg(y)
}
END
cat >bodies.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]>
bodies (float[N,2] x, bool c) => (float[N,2] y)
{
    f = my.own.Late(x)
    y = If(c) <then_branch = then () => (a) { a = Relu(b) b = Neg(f) }, else_branch = otherwise () => (d) { d = Neg(f) }>
}
<domain: "my.own", opset_import: ["" : 17]>
Late (a) => (b) { b = Relu(c) c = Neg(a) }
END
try check --tool ort circle.onnxtxt
try check --tool ort bodies.onnxtxt

echo '-- it is said of a body that reads a later result, types without shapes, initializers of IR version 3'
cat >later.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 8]>
later (float[] x, bool c) => (float[] y)
<float[2] w = {1, 2}>
{
    y = If(c) <then_branch = then () => (a) { a = Neg(b) }, else_branch = otherwise () => (d) { d = Neg(x) }>
    b = Add(x, w)
}
END
try check later.onnxtxt
try check --tool ort later.onnxtxt
