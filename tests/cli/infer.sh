# cameo infer: types and shapes of every value.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
net (float[N,3,H,H] image, float[4,3,3,3] w, float[M,8] more, bool flag) => (float[] y, float[] z)
<int64[1] rows = {0}, int64[1] rest = {-1}, int64[1] first = {1}, int64[1] last = {9223372036854775807},
 float[?,4,?,?] declared>
{
    conv = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(image, w)
    pooled = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(conv)
    flat = Flatten(pooled)
    shape = Shape(image)
    n = Gather<axis = 0>(shape, rows)
    target = Concat<axis = 0>(n, rest)
    again = Reshape(image, target)
    declared = GlobalAveragePool(conv)
    both = Concat<axis = 0>(more, more)
    tail = Slice(more, first, last, rows)
    found = NonZero(more)
    same = Relu(both)
    called = local.twice(more)
    y = Identity(declared)
    z = If(flag) <
        then_branch = yes () => (a) { a = Relu(tail) },
        else_branch = no () => (b) { c = Neg(tail)  b = Abs(c) }>
}
<domain: "local", opset_import: ["" : 17]>
twice (p) => (q) { r = Add(p, p)  q = Relu(r) }
END

echo '-- printed'
try infer net.onnxtxt
echo '-- written'
try infer net.onnxtxt -o typed.onnxtxt 2>&1
cat typed.onnxtxt
try check typed.onnxtxt
echo '-- once more, nothing changes'
try infer typed.onnxtxt -o twice.onnxtxt 2>&1
cmp typed.onnxtxt twice.onnxtxt && echo 'the same'

echo '-- training info'
cat >train.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
net (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}>
{
    y = MatMul(x, w)
}
END
try prepare train.onnxtxt --loss mse --optimizer sgd -o trainable.onnx 2>&1 | tail -1
try infer trainable.onnx | grep -v "^y\|values" | head -6

echo '-- what contradicts itself is listed, and nothing is written'
cat >wrong.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
wrong (float[N,3] x, float[4,2] w) => (int64[N,3] y, float[5] v)
{
    p = MatMul(x, w)
    y = Relu(x)
    z = Add(y, w)
    q = Neg(x)
    v = Identity(q)
}
END
try infer wrong.onnxtxt -o never.onnx
try infer wrong.onnxtxt --json
ls never.onnx 2>&1 | sed 's/.*No such/No such/'

echo '-- operators nobody knows'
cat >foreign.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "some.where" : 1]>
foreign (float[N,3] x) => (float[N] y)
{
    y = some.where.Solve(x)
    s = Shape(x)
}
END
try infer foreign.onnxtxt 2>&1
try infer foreign.onnxtxt --strict 2>&1

echo '-- with --partial what is well-typed is written, and the rest is listed'
try infer wrong.onnxtxt --partial -o part.onnx 2>&1
try print part.onnx | sed -n '/^wrong/,/{/p'

echo '-- deprecated operators have the types of their last version, as in ONNX'
cat >deprecated.onnxtxt <<'END'
<ir_version: 6, opset_import: ["" : 11]>
deprecated (float[2,3] x, int64[1,3] i, float[1,3] u, float[1,1,2,3] im) => (float[A,B] w, float[C,D,E,F] z)
<float[4] sc = {1, 1, 2, 2}>
{
    w = Scatter<axis = 0>(x, i, u)
    z = Upsample<mode = "nearest">(im, sc)
}
END
try infer deprecated.onnxtxt 2>&1
sed 's/: 11\]/: 9]/' deprecated.onnxtxt >older.onnxtxt
try infer older.onnxtxt 2>&1

echo '-- an initializer that is an input: its value, unless another may be fed'
cat >default.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
default (float[2,6] x, int64[2] s) => (float[A,B] y) <int64[2] s = {3, 4}> { y = Reshape(x, s) }
END
sed 's/ir_version: 8/ir_version: 3/' default.onnxtxt >default3.onnxtxt
try infer --constant-inputs default.onnxtxt | head -2
try infer --open-inputs default.onnxtxt | head -2
try infer --open-inputs default3.onnxtxt | head -2
try infer --open-inputs --constant-inputs default.onnxtxt 2>&1
