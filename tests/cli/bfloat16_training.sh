# Weights of bfloat16 are trained as floats, which the graph casts; optimize makes them bfloat16
# again.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'EOF2'
<ir_version: 10, opset_import: ["" : 21]>
net (float[N,1] x) => (float[N,1] y)
{
    [w] w = Constant<value: tensor = bfloat16[1,1] {16128}>()
    [a] xb = Cast<to: int = 16>(x)
    [m] yb = MatMul(xb, w)
    [b] y = Cast<to: int = 1>(yb)
}
EOF2
sed -e 's/^{/<bfloat16[1,1] w = {16128}>\n{/' -e '/Constant/d' net.onnxtxt >held.onnxtxt
sed -e 's/float\[N,1\] x/bfloat16[N,1] x/' -e 's/Cast<to: int = 16>(x)/Identity(x)/' held.onnxtxt >narrow.onnxtxt
sed -e 's/Cast<to: int = 16>(x)/Identity(x)/' held.onnxtxt >mixed.onnxtxt
printf 'x,t\n1,0.5001\n1,0.5001\n1,0.5001\n1,0.5001\n' >four.csv
run() {
    model=$1
    shift
    try train $model --columns 'x=x target=t' -d four.csv --loss mse --optimizer sgd --lr 0.5 -b 4 --steps 3 --threads 1 \
        --backend reference "$@"
}
echo '-- updates that bfloat16 has no bits for are kept'
run held.onnxtxt -o trained.onnx
try check trained.onnx
try strip trained.onnx -o stripped.onnxtxt
cat stripped.onnxtxt
try optimize stripped.onnxtxt -o small.onnx
try info small.onnx --json | grep -A1 '"name": "t'
echo '-- what is frozen stays as it is'
try prepare held.onnxtxt --loss mse --optimizer sgd --freeze w --list
echo '-- an input that Gradient does not take, and types that do not fit'
run narrow.onnxtxt -o no.onnx
run mixed.onnxtxt -o no.onnx
echo '-- a type that the file declares for a weight changes with it'
cat >declared.onnxtxt <<'EOF2'
<ir_version: 10, opset_import: ["" : 21]>
net (float[N,1] x) => (float[N,1] y)
<bfloat16[1,1] w = {16128}, bfloat16[1,1] w>
{
    [a] xb = Cast<to: int = 16>(x)
    [m] yb = MatMul(xb, w)
    [b] y = Cast<to: int = 1>(yb)
}
EOF2
try copy declared.onnxtxt -o declared.onnx
run declared.onnx -o trained.onnx
try check trained.onnx
try strip trained.onnx -o stripped.onnx --check
