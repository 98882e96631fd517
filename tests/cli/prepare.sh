# cameo prepare, strip, step, grad and gradcheck: models made out of models.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] p)
<float[3,2] w = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4}, float[2] b = {0, 0.5}, float t = {2}, int64[2] shape = {-1, 2}>
{
    z = MatMul(x, w)
    s = Add(z, b)
    u = Div(s, t)
    r = Reshape(u, shape)
    p = Softmax<axis: int = 1>(r)
}
END
cat >old.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 9]>
old (float[N,3] x, float[3,2] w) => (float[N,2] y)
<float[3,2] w = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4}>
{
    z = MatMul(x, w)
    d = Dropout<ratio: float = 0.5>(z)
    y = Identity(d)
}
END

echo '-- who is trained'
try prepare net.onnxtxt --loss cross-entropy --optimizer adam --list
try prepare net.onnxtxt --loss cross-entropy --optimizer sgd --freeze '^w' --json
echo '-- written, checked, taken away again'
try prepare net.onnxtxt --loss cross-entropy --optimizer adamw --lr 0.01 --schedule cosine \
    --schedule-steps 100 --warmup 5 --clip-norm 1 --accumulate 2 --target label -o trainable.onnx
try check --strict trainable.onnx
try strip trainable.onnx -o back.onnxtxt
"$CAMEO" print net.onnxtxt >before.txt
"$CAMEO" print back.onnxtxt >after.txt
cmp before.txt after.txt && echo 'the model it was'
echo '-- a loss of one'"'"'s own'
cat >own.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
own (float[N,2] prediction, float[N,2] target) => (float loss)
<float two = {2}>
{
    d = Sub(prediction, target)
    a = Abs(d)
    m = ReduceMean<keepdims: int = 0>(a)
    loss = Mul(m, two)
}
END
try prepare net.onnxtxt --loss own.onnxtxt --optimizer sgd -o own.onnx
try check --strict own.onnx
cat >older.onnxtxt <<'END'
<ir_version: 4, opset_import: ["" : 11]>
older (float[N,2] prediction, float[N,2] target) => (float[N] loss)
{
    d = Sub(prediction, target)
    a = Abs(d)
    loss = ReduceSum<axes: ints = [1], keepdims: int = 0>(a)
}
END
try prepare net.onnxtxt --loss older.onnxtxt --optimizer sgd -o older.onnx
try check --strict older.onnx
"$CAMEO" print older.onnx | grep '"loss\.'
echo '-- an old model is raised'
try prepare old.onnxtxt --loss mse --optimizer sgd -o raised.onnx
try prepare old.onnxtxt --loss mse --optimizer sgd --keep-opset -o raised.onnx
echo '-- the step as a model'
try step raised.onnx --portable -o step.onnx
"$CAMEO" info step.onnx | sed -n '/^inputs/,/^parameters/p'
try check step.onnx
try step net.onnxtxt -o step.onnx
echo '-- derivatives'
try grad net.onnxtxt --of p --wrt x,w --wrt b --portable -o grad.onnx
"$CAMEO" info grad.onnx | sed -n '/^outputs/,/^parameters/p'
try grad net.onnxtxt --of p --wrt shape -o grad.onnx
try grad net.onnxtxt --of p
try gradcheck net.onnxtxt --json | grep -e name -e good -e elements
try gradcheck net.onnxtxt --tolerance 0 >/dev/null
echo '-- what stands in the way'
try prepare net.onnxtxt --loss best --optimizer adamo -o no.onnx
try prepare net.onnxtxt --loss mse --optimizer sgd --beta1 0.5 --schedule linear --train nothing -o no.onnx
try prepare net.onnxtxt --loss mse --optimizer sgd --lr-for 'head=0.1;w=0.2' --weight-decay 0.1 --no-decay tail -o no.onnx
try prepare net.onnxtxt --loss mse --optimizer sgd --lr=-1 --warmup x -o no.onnx
try prepare net.onnxtxt --loss mse -o no.onnx
try prepare trainable.onnx --loss mse --optimizer sgd -o no.onnx
try prepare net.onnxtxt --loss mse --optimizer sgd --train '^shape$' --class-axis 2 --list
try prepare net.onnxtxt --loss cross-entropy --optimizer sgd --class-axis 0 -o no.onnx
test -e no.onnx || echo 'nothing was written'

echo '-- weights and normalization inside functions'
cat >functions.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
net (float[N,2] x) => (float[N,2] y) <float[2] b = {0, 0}>
{
    h = my.outer(x)
    i = my.layer(h)
    n = my.calls_norm(i)
    y = Add(n, b)
}
<domain: "my", opset_import: ["" : 18, "my" : 1]>
outer (x) => (y)
{
    h = my.layer(x)
    y = Relu(h)
}
<domain: "my", opset_import: ["" : 18]>
layer (x) => (y)
{
    w = Constant<value = float[2,2] {1, 2, 3, 4}>()
    c = Constant<value_floats = [0.5, 0.25]>()
    z = MatMul(x, w)
    y = Add(z, c)
}
<domain: "my", opset_import: ["" : 18, "my" : 1]>
calls_norm (x) => (y)
{ y = my.norm(x) }
<domain: "my", opset_import: ["" : 18]>
norm (x) => (y)
{
    s = Constant<value = float[2] {1, 1}>()
    o = Constant<value = float[2] {0, 0}>()
    m = Constant<value = float[2] {0, 0}>()
    v = Constant<value = float[2] {1, 1}>()
    y = BatchNormalization(x, s, o, m, v)
}
END
try prepare functions.onnxtxt --loss mse --optimizer sgd --list -o functions.onnx
try check --strict functions.onnx
"$CAMEO" print functions.onnx | sed -n '/^net/,/^training/p' | sed '/^training/,$d'
try prepare functions.onnxtxt --loss mse --optimizer sgd --train '^b$' --list -o functions.onnx
