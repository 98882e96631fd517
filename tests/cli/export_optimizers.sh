# cameo export: every optimizer for the frameworks that have it, and its training continued from there.
# SPDX-License-Identifier: Apache-2.0
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] s)
<float[3,2] "fc/kernel" = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4}, float[2] "fc/bias" = {0, 0.5}>
{
    z = MatMul(x, "fc/kernel")
    s = Add(z, "fc/bias")
}
END
cat >data.csv <<'END'
a,b,c,y
1,2,3,0
3,1,2,1
0,1,1,0
2,2,0,1
END
train() {
    "$CAMEO" train "$1" --data data.csv --columns "x=a,b,c y=y" --target y --no-shuffle \
        --batch-size 2 --steps 3 -o "$2" 2>/dev/null | grep loss
}
# What optax does not store is given again.
settings() {
    case $1 in
    lion) echo '{"lr": 0.01, "betas": [0.9, 0.99], "weight_decay": 0.001}' ;;
    lamb) echo '{"lr": 0.01, "betas": [0.9, 0.999], "epsilon": 1e-6, "weight_decay": 0}' ;;
    esac
}
for optimizer in adafactor adamax nadam radam adadelta asgd lion lamb; do
    "$CAMEO" prepare net.onnxtxt --loss cross-entropy --target y --lr 0.01 -o prepared.onnx \
        --optimizer "$optimizer" >/dev/null 2>&1
    train prepared.onnx trained.onnx >/dev/null
    train trained.onnx further.onnx >wanted.txt
    for to in pytorch flax; do
        if ! "$CAMEO" export trained.onnx --to "$to" -o out >/dev/null 2>why.txt; then
            sed -n 1p why.txt
            continue
        fi
        "$CAMEO" checkpoint info out | sed -n 's/, arithmetic.*//; /^optimizer:/p'
        settings "$optimizer" >settings.json
        "$CAMEO" import net.onnxtxt out --loss cross-entropy --target y -o again.onnx \
            $([ -s settings.json ] && echo --set settings.json) >/dev/null 2>&1
        train again.onnx more.onnx | cmp - wanted.txt && echo "$to: $optimizer continues"
    done
done
