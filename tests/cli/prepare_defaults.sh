# What prepare and train do without being told: which output and which value the loss reads, which
# tensors are trained, batches that the model fixes, images of bytes.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}
common='--threads 1 --backend reference --no-shuffle'

cat >net.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]>
net (float[N,2,1,1] x) => (int64[N,1] label, float[N,2] p, string[N] words)
<float[2,2,1,1] w = {0.5, -0.5, 0.25, 1}, float[2] zero = {0, 0}>
{
    c = Conv(x, w, zero)
    [bias] d = Conv(c, w, zero)
    s = Softmax<axis: int = 1>(d)
    f = Flatten(s)
    p = Identity(f)
    label = ArgMax<axis: int = 1>(p)
    words = my.own.Speller(label)
}
EOF
echo '-- the one output of floats, before its Softmax; what nobody knows is not needed'
try prepare net.onnxtxt --loss cross-entropy --optimizer sgd --list
try prepare net.onnxtxt --loss cross-entropy --optimizer sgd --list --keep-tied
try prepare net.onnxtxt --loss nll --optimizer sgd --list --train '^w$'
sed 's/axis: int = 1>(d)/axis: int = 2>(d)/' net.onnxtxt >other.onnxtxt
try prepare other.onnxtxt --loss cross-entropy --optimizer sgd --list --train '^w$'
printf 'a,b,t\n1,2,1\n4,5,0\n7,8,0\n1,2,1\n' >four.csv
try train net.onnxtxt -d four.csv --columns 'x=a,b target=t' --loss cross-entropy --optimizer sgd --lr 0 $common \
    --validate four.csv -o out.onnx
echo '-- a Sigmoid behind a Reshape'
cat >sigmoid.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
sigmoid (float[N,2] x) => (float[N] p) <float[2,1] w = {0.5, -0.5}, int64[1] flat = {-1}>
{
    z = MatMul(x, w)
    s = Sigmoid(z)
    p = Reshape(s, flat)
}
EOF
try prepare sigmoid.onnxtxt --loss bce-logits --optimizer sgd --list

echo '-- batches that the model fixes'
cat >fixed.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
fixed (float[2,2] x) => (float[2,1] y) <float[2,1] w = {0.5, -0.5}>
{ y = MatMul(x, w) }
EOF
printf 'a,b,t\n1,2,3\n4,5,6\n7,8,9\n1,2,1\n2,1,0\n' >five.csv
sed 's/\[2,2\] x/[1,2] x/;s/\[2,1\] y/[1,1] y/' fixed.onnxtxt >single.onnxtxt
columns='x=a,b target=t'
try train fixed.onnxtxt -d five.csv --columns "$columns" --loss mse --optimizer sgd --lr 0 $common -o out.onnx
try train fixed.onnxtxt -d five.csv --columns "$columns" --loss mse --optimizer sgd --last-batch short $common -o out.onnx
try train single.onnxtxt -d five.csv --columns "$columns" --loss mse --optimizer sgd --lr 0 $common -o out.onnx
try train single.onnxtxt -d five.csv --columns "$columns" --loss mse --optimizer sgd --batch-size 4 $common -o out.onnx

echo '-- images of bytes'
printf '\0\0\010\003\0\0\0\2\0\0\0\010\0\0\0\010' >images
printf '%64s%64s' '' '' | tr ' ' '\377' >>images
printf '\0\0\010\001\0\0\0\2\1\0' >labels
cat >image.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
image (float[N,64] x) => (float[N,2] y)
<float[2,2] w = {1, 0, 0, 0}>
{
    starts = Constant<value_ints = [0]>() ends = Constant<value_ints = [2]>() axes = Constant<value_ints = [1]>()
    h = Slice(x, starts, ends, axes)
    y = MatMul(h, w)
}
EOF
try train image.onnxtxt -d images:labels --loss cross-entropy --optimizer sgd --lr 0 $common -o out.onnx
try train image.onnxtxt -d images:labels --loss cross-entropy --optimizer sgd --lr 0 $common --raw-bytes -o out.onnx
