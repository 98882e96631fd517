# cameo export: checkpoints for other frameworks, and what comes back from them.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] s)
<float[3,2] "fc/kernel" = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4}, float[2] "fc/bias" = {0, 0.5}, float t = {2}>
{
    z = MatMul(x, "fc/kernel")
    u = Add(z, "fc/bias")
    s = Div(u, t)
}
END
cat >data.csv <<'END'
a,b,c,y
1,2,3,0
3,1,2,1
0,1,1,0
2,2,0,1
END
cat >settings.json <<'END'
{"optimizer": "adamw", "groups": [{"lr": 0.01, "betas": [0.9, 0.999], "epsilon": 1e-8,
 "weight_decay": 0.01}], "clip_norm": 0}
END
train() {
    "$CAMEO" train "$1" --data data.csv --columns "x=a,b,c y=y" --target y --no-shuffle \
        --batch-size 2 --steps 3 -o "$2" 2>/dev/null >/dev/null
}
prepare() {
    "$CAMEO" prepare net.onnxtxt --loss cross-entropy --target y --lr 0.01 -o "$1.onnx" \
        --optimizer "$@" 2>/dev/null
}
prepare adamw
train adamw.onnx trained.onnx

echo '-- what would be written'
try export trained.onnx --to lightning --list
try export trained.onnx --to flax --json
echo '-- every format: exported, imported, exported again; and once more'
again() {
    "$CAMEO" import net.onnxtxt "$1.$format" --loss cross-entropy --target y --set settings.json \
        -o again.onnx 2>/dev/null &&
        "$CAMEO" export again.onnx --to "$format" -o "$2.$format" 2>/dev/null
}
for format in $("$CAMEO" export --list | cut -d' ' -f1 | grep -v -e -code -e '^savedmodel$'); do
    if ! "$CAMEO" export trained.onnx --to "$format" -o "first.$format" 2>/dev/null ||
        ! again first second || ! again second third; then
        echo "$format: refused"
        continue
    fi
    for which in first second; do
        "$CAMEO" checkpoint info "$which.$format" --dump "$which.$format.arrays" >dumped.txt 2>&1
    done
    diff -r "first.$format.arrays" "second.$format.arrays" && echo "$format: the same tensors"
    diff -r "second.$format" "third.$format" && echo "$format: the same bytes"
done
echo '-- trained on after that: the same losses'
"$CAMEO" import net.onnxtxt first.lightning --loss cross-entropy --target y -o again.onnx 2>/dev/null
for model in trained again; do
    "$CAMEO" train $model.onnx --data data.csv --columns "x=a,b,c y=y" --target y --no-shuffle \
        --batch-size 2 --steps 3 --log $model.jsonl -o on.onnx 2>/dev/null >/dev/null
done
cmp trained.jsonl again.jsonl && echo same
echo '-- what another framework computes otherwise'
prepare nesterov
prepare adagrad
try export nesterov.onnx --to onnxruntime -o no.ort
try export adagrad.onnx --to onnxruntime -o no.ort
try export adagrad.onnx --to onnxruntime -o yes.ort --weights-only
echo '-- without training'
try export net.onnxtxt --to safetensors -o weights.safetensors
try export net.onnxtxt --to lightning -o no.ckpt
echo '-- mistakes'
try export trained.onnx --to flaxx -o no.msgpack 2>&1 | sed 's/there are .*/there are .../'
try export trained.onnx -o no.msgpack
try export trained.onnx --to flax
try export --to flax -o no.msgpack
mkdir full
echo >full/a
try export trained.onnx --to orbax -o full
try export trained.onnx --to flax -o nowhere/no.msgpack
try export trained.onnx --to flax -o trained.onnx
ls -d no* nowhere* full/* 2>/dev/null || true
