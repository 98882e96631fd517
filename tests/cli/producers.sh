# What producers write and ONNX does not allow, or hardly anybody else writes: it runs, with a note where a rule is broken.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}
cat >order.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
order (float[-1] x) => (float[-1] y)
<float[1] w = {2}>
{
    y = Add(t, x)
    t = Mul(x, w)
}
END
cat >circle.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
circle (float[2] x) => (float[2] y)
{
    y = Add(t, x)
    [first] t = Mul(x, u)
    [second] u = Neg(t)
}
END
cat >sparse.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
sparse (float[-1,3] x) => (float[-1,3] y)
<float[3] w = {1, 2, 3}, sparse_tensor[3] {float[1] s {4}, int64[1] {1}}>
{
    t = Mul(x, w)
    y = Add(t, s)
}
END
printf 'x,a,b,t\n1,2,3,1\n2,3,4,2\n' >rows.csv
echo '-- nodes out of order, a dimension of -1'
try run order.onnxtxt --random-inputs --seed 1
try check order.onnxtxt
try optimize order.onnxtxt -o sorted.onnx --without regions | grep -v ' -> '
try check sorted.onnx
try info order.onnxtxt
try prepare order.onnxtxt --loss mse --optimizer sgd --lr 0.1 -o ready.onnx
echo '-- in a circle'
try run circle.onnxtxt --random-inputs
echo '-- a sparse initializer'
try run sparse.onnxtxt --random-inputs --seed 1
try optimize sparse.onnxtxt -o dense.onnx | grep -v ' -> '
try print dense.onnx
try check dense.onnx
try prepare sparse.onnxtxt --loss mse --optimizer sgd --lr 0.1 --list -o ready.onnx
echo '-- trained, batch normalization included'
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[-1,2] x) => (float[-1,1] y)
<float[2,3] w = {1,2,3,4,5,6}, float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = {1,1,1}, float[3,1] u = {1,1,1}>
{
    y = MatMul(r, u)
    r = Relu(n)
    n = BatchNormalization(p, s, b, m, v)
    p = MatMul(x, w)
}
END
printf 'a,b,t\n1,2,1\n2,1,3\n3,1,2\n0,1,1\n' >rows.csv
try train net.onnxtxt --data rows.csv --columns "x=a,b t=t" --target t --loss mse --optimizer sgd --lr 0.01 --epochs 2 --batch-size 4 -o trained.onnx
# the last digits are the machine's own
try print trained.onnx | sed -n '/^net/,/^}/p' | sed -E 's/([0-9]\.[0-9]{4})[0-9]*/\1/g'
