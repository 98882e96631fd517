# cameo train: what is measured, worked out by hand, and what a step may hold.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>stderr.txt
    echo "[$?]"
    sed 's/, onednn$//' stderr.txt
}
common="--threads 1 --backend reference --optimizer sgd --lr 0 --no-shuffle -o out.onnx"

# Regression: predictions 1 2 3 4 for targets 2 2 4 4, so the errors are 1 0 1 0; around their mean
# of 3 the targets have squares of 4 together. mae 2/4, r2 1 - 2/4, loss 2/4; in batches of 3 too.
cat >line.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>
{ y = MatMul(x, w) }
END
cat >line.csv <<'END'
x,t
1,2
2,2
3,4
4,4
END
try train line.onnxtxt -d line.csv --validate line.csv --columns "x=x t:float=t" --target t \
    --loss mse --log line.jsonl --batch-size 3 $common
cat line.jsonl

# Classes: the scores are the inputs; of four labels three have the highest score.
cat >class.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
class (float[N,3] x) => (float[N,3] y) <float[3] b = {0, 0, 0}>
{ y = Add(x, b) }
END
cat >class.csv <<'END'
a,b,c,label
9,0,0,0
0,9,0,1
0,0,9,2
9,0,0,1
END
try train class.onnxtxt -d class.csv --validate class.csv --columns "x=a,b,c label=label" \
    --loss cross-entropy --batch-size 3 --log class.jsonl $common
sed 's/_loss":[0-9.]*/_loss":X/;s/"loss":[0-9.]*/"loss":X/' class.jsonl

# A loss that is no operator of ONNX's, read inside a function: wrong labels are found all the same.
cat >inside.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 18, "my" : 1, "ai.onnx.preview.training" : 1]>
inside (float[N,3] x) => (float[N,3] y) <float[3] b = {0, 0, 0}>
{ y = Add(x, b) }
<domain: "my", opset_import: ["" : 18]>
cost (scores, labels) => (loss)
{
    flat = Identity(labels)
    loss = SoftmaxCrossEntropyLoss<reduction = "mean">(scores, flat)
}
training {
    algorithm: step (int64[N] label) => (float loss, float[3] b_new) <float rate = {0.1}>
    {
        loss = my.cost(y, label)
        g = ai.onnx.preview.training.Gradient<xs = ["b"], zs = ["x", "label"], y = "loss">
            (b, x, label)
        m = Mul(g, rate)
        b_new = Sub(b, m)
    },
    update_binding: ["b": "b_new"]
}
END
try train inside.onnxtxt -d class.csv --columns "x=a,b,c label=label" -o out.onnx --threads 1
sed 's/1$/3/' class.csv >wrong.csv
try train inside.onnxtxt -d wrong.csv --columns "x=a,b,c label=label" -o out.onnx --threads 1

# What a step holds, and may not.
try train class.onnxtxt -d class.csv --columns "x=a,b,c label=label" --loss cross-entropy --memory \
    --json $common | sed 's/"\(work\|activations\|gradients\|arithmetic\|scratch\|together\)":[0-9]*/"\1":N/g'
try train class.onnxtxt -d class.csv --columns "x=a,b,c label=label" --loss cross-entropy \
    --memory-limit 100 $common | sed 's/needs [0-9]* bytes/needs N bytes/'

# Numbers that make no sense, and flags that mean nothing together.
try train class.onnxtxt -d class.csv --loss cross-entropy --epochs 0 -o out.onnx --optimizer sgd
try train class.onnxtxt -d class.csv --loss cross-entropy --keep=0 -o out.onnx --optimizer sgd
try train class.onnxtxt -d class.csv --loss cross-entropy --schedule-steps 5 --schedule-factor 0.5 \
    --accumulate 0 $common
try train class.onnxtxt -d class.csv --columns "x=a,b,c label=label" --loss cross-entropy \
    --backend fast --threads 1 -o out.onnx --optimizer sgd
try train class.onnxtxt -d class.csv --columns "x=a,b,c label=label" --loss cross-entropy \
    --freeze '^c$' $common
printf 'a,b,c,label\n1,2,nan,0\n' >nan.csv
try train class.onnxtxt -d nan.csv --columns "x=a,b,c label=label" --loss cross-entropy $common
