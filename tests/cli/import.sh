# cameo import: what another framework saved goes into a model, and training goes on from there.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" >out 2>err
    code=$?
    cat out
    sed 's/: [0-9.]* [a-zA-Z]*$//' err # sizes are left out
    echo "[$code]"
}
net() { # NAME FIRST SECOND: two layers, their weights called FIRST.. and SECOND..
    cat >"$1" <<END
<ir_version: 10, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] y)
<float[3,4] "$2.w" = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4, 0.5, -0.3, 0.2, 0.1, -0.4, 0.3}, float[4] "$2.b" = {0, 0, 0, 0},
 float[4,2] "$3.w" = {0.3, -0.2, 0.1, 0.4, -0.5, 0.2, 0.1, -0.1}, float[2] "$3.b" = {0, 0}>
{
    a = MatMul(x, "$2.w")
    b = Add(a, "$2.b")
    c = Tanh(b)
    d = MatMul(c, "$3.w")
    y = Add(d, "$3.b")
}
END
}
cat >data.csv <<'END'
p,q,r,s,t
1,0,0,1,0
0,1,0,0,1
0,0,1,1,1
1,1,0,0,0
END
net net.onnxtxt one two
net renamed.onnxtxt w7 w3
losses() { # MODEL: of two further steps
    "$CAMEO" train "$1" --data data.csv --columns "x=p,q,r target=s,t" --steps 2 --batch-size 2 \
        --no-shuffle --json -o more.onnx 2>/dev/null | grep -o '"loss": [0-9.]*' | cut -c1-15
}

echo "== there and back: the same bits"
"$CAMEO" train net.onnxtxt --data data.csv --columns "x=p,q,r target=s,t" --loss mse \
    --optimizer adamw --lr 0.05 --clip-norm 1 --steps 5 --batch-size 2 --no-shuffle -o half.onnx 2>/dev/null >/dev/null
"$CAMEO" export half.onnx --to lightning -o half.ckpt 2>/dev/null
try import net.onnxtxt half.ckpt --loss mse --clip-norm 1 --list -o back.onnx
try compare half.onnx back.onnx
[ "$(losses half.onnx)" = "$(losses back.onnx)" ] && echo "the same losses"

echo "== names that say nothing"
try import renamed.onnxtxt half.ckpt --loss mse --clip-norm 1 --list -o renamed.onnx
[ "$(losses half.onnx)" = "$(losses renamed.onnx)" ] && echo "the same losses"
printf 'w7.w = one.w\n/^w3[.]/ = two.\n' >rules
try import renamed.onnxtxt half.ckpt --weights-only --map rules --json
printf 'w7.w = one.q\nw9.w = one.w\nnonsense\n' >rules
try import renamed.onnxtxt half.ckpt --weights-only --map rules -o no.onnx

echo "== weights without a training"
"$CAMEO" export half.onnx --to safetensors --weights-only -o half.safetensors 2>/dev/null
try import net.onnxtxt half.safetensors --weights-only -o weights.onnx
try import net.onnxtxt half.safetensors --loss mse -o no.onnx
try import net.onnxtxt half.safetensors --loss mse --optimizer sgd --lr 0.1 -o sgd.onnx

echo "== settings"
echo '{"groups": [{"names": ["one.w", "two.w"], "lr": 0.1}, {"names": ["one.b", "two.b"], "lr": 0.2, "weight_decay": 0}], "rates": [[0.1, 0.2], [0.05, 0.1]], "clip_norm": 0}' >set.json
try import net.onnxtxt half.ckpt --loss mse --set set.json -o grouped.onnx
echo '{"lr": "fast", "colour": 1, "schedule": "wavy", "groups": [{"names": ["one.w"], "betas": 3}, {"names": ["one.w"]}]}' >set.json
try import net.onnxtxt half.ckpt --loss mse --set set.json -o no.onnx
echo '{"lr": ' >set.json
try import net.onnxtxt half.ckpt --loss mse --set set.json -o no.onnx
try import net.onnxtxt half.ckpt --loss mse --schedule cosine -o no.onnx
try import net.onnxtxt half.ckpt --loss mse --schedule cosine --schedule-steps 20 -o cosine.onnx

echo "== left over"
sed 's/float\[2\] "two.b" = {0, 0}/float[2] "two.b" = {0, 0}, float[2] "three.b" = {1, 2}/; s/    y = Add(d, "two.b")/    e = Add(d, "two.b")\n    y = Add(e, "three.b")/' net.onnxtxt >more.onnxtxt
try import more.onnxtxt half.ckpt --loss mse -o no.onnx
try import more.onnxtxt half.ckpt --loss mse --partial --list -o partial.onnx
sed 's/float\[4,2\] "two.w" = {0.3, -0.2, 0.1, 0.4, -0.5, 0.2, 0.1, -0.1}/float[4,3] "two.w" = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}/; s/float\[2\] "two.b" = {0, 0}/float[3] "two.b" = {0, 0, 0}/; s/float\[N,2\]/float[N,3]/' net.onnxtxt >other.onnxtxt
try import other.onnxtxt half.ckpt --weights-only -o no.onnx

echo "== wrong usage"
try import net.onnxtxt half.ckpt -o no.onnx
try import net.onnxtxt half.ckpt --loss mse
try import net.onnxtxt half.ckpt --loss mse --train w -o no.onnx
try import net.onnxtxt nowhere.pt --weights-only -o no.onnx
try import net.onnxtxt half.ckpt --loss mse --set nowhere.json -o no.onnx
try import half.onnx half.ckpt --loss mse -o no.onnx
[ -e no.onnx ] || echo "nothing was written"
