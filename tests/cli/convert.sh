# cameo upgrade and cameo downgrade: models under other opset versions.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

# The same results before and after.
same() {
    "$CAMEO" run "$1" --random-inputs >before.txt 2>&1
    "$CAMEO" run "$2" --random-inputs >after.txt 2>&1
    cmp before.txt after.txt && echo 'the same results'
}

cat >old.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 9], producer_name: "somebody">
old (float[N,3] x, float[3,2] w) => (float[N,2] y)
<float[3,2] w = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4}>
{
    [product] z = MatMul(x, w)
    [add_axis] u = Unsqueeze<axes = [2]>(z)
    [part] s = Slice<starts = [0], ends = [1], axes = [2]>(u)
    [relu] r = Relu(s)
    [drop_axis] y = Squeeze<axes = [2]>(r)
}
END
echo '-- to the newest: nodes that mean the same stay, and so do all names'
try upgrade old.onnxtxt -o new.onnxtxt 2>&1
cat new.onnxtxt
try check --strict new.onnxtxt
same old.onnxtxt new.onnxtxt
echo '-- a version on the way'
try upgrade old.onnxtxt -o twelve.onnxtxt --opset 12 2>&1
sed -n '/^{/,$p' twelve.onnxtxt
echo '-- and back'
try downgrade new.onnxtxt -o back.onnxtxt --opset 9 2>&1
cat back.onnxtxt
try check --strict back.onnxtxt
same old.onnxtxt back.onnxtxt
echo '-- nothing to do'
"$CAMEO" copy old.onnxtxt -o old.onnx
try upgrade old.onnx -o same.onnx --opset 9 2>&1
cmp old.onnx same.onnx && echo 'the bytes it had'

cat >young.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
young (float[2,4,3] x, float[4] scale, float[4] bias) => (float[2,4,3] m)
{
    [soft] s = Softmax<axis = 1>(x)
    [mish] m = Mish(s)
}
END
echo '-- what the older version does not have is written as its function body'
try downgrade young.onnxtxt -o body.onnxtxt --opset 12 2>&1
sed -n '/^{/,$p' body.onnxtxt
try check --strict body.onnxtxt
same young.onnxtxt body.onnxtxt

cat >inside.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 12, "local" : 1]>
inside (float[2,3] x, bool c) => (float[2,1] y)
{
    f = local.total<along = 1>(x)
    y = If (c) <
        then_branch = yes () => (float[2,1] a) { a = ReduceSum<axes = [1]>(x) },
        else_branch = no () => (float[2,1] b) { b = Identity(f) }
    >
}
<domain: "local", opset_import: ["" : 11]>
total <along> (v) => (w)
{
    p = Flatten<axis : int = @along>(v)
    w = ReduceSum<axes = [1]>(p)
}
END
echo '-- bodies, and functions with imports of their own'
try upgrade inside.onnxtxt -o inside18.onnxtxt --opset 18 2>&1
cat inside18.onnxtxt
try check --strict inside18.onnxtxt
same inside.onnxtxt inside18.onnxtxt

echo '-- training info'
try downgrade "$TESTS/models/training_mlp_adam_initialized.onnx" -o trained.onnx --opset 11 --json 2>&1
try check --strict trained.onnx

cat >refused.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
refused (float[2,3] x, int64[1] axes, float[3] e) => (float y, float[2,3] z, float[2,3] t)
{
    [sum] y = ReduceSum<keepdims = 0>(x, axes)
    [fold] z = Einsum<equation = "ij,j->ij">(x, e)
    [zeros] t = Trilu(x)
}
END
echo '-- everything that cannot be expressed, and nothing is written'
try downgrade refused.onnxtxt -o no.onnx --opset 11 2>&1
try downgrade refused.onnxtxt -o no.onnx --opset 11 --json 2>/dev/null
ls no.onnx 2>&1 | grep -c 'cannot access'

echo '-- wrong usage'
try upgrade refused.onnxtxt -o no.onnx --opset 11 2>&1
try downgrade refused.onnxtxt -o no.onnx --opset 19 2>&1
try downgrade refused.onnxtxt -o no.onnx 2>&1
try upgrade refused.onnxtxt --opset 19 2>&1
try upgrade refused.onnxtxt -o no.onnx --opset new 2>&1
try upgrade refused.onnxtxt -o no.onnx --opset 99 2>&1
try upgrade refused.onnxtxt -o no.onnx --opset ai.onnx.ml=3 2>&1

echo '-- a domain is shown as long as it is, though the file goes on behind it'
cat >ml.onnxtxt <<'TEXT'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
g (float[N,2] x) => (float[N,2] y) { y = ai.onnx.ml.Scaler <offset = [0.0], scale = [1.0]> (x) }
TEXT
try upgrade ml.onnxtxt -o ml.onnx 2>&1
try downgrade ml.onnx -o down.onnx --opset 17 --opset ai.onnx.ml=1 2>&1
try upgrade ml.onnxtxt -o no.onnx --opset ai.onnx.ml=99 2>&1
