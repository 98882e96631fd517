# Data in several files: --data and --validate may be given more than once, and samples follow each
# other in the order of the files.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'EOF2'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,1] x) => (float[N,1] y)
<float[1,1] w = {0.5}>
{
    y = MatMul(x, w)
}
EOF2
printf 'x,t\n1,2.5\n2,4.5\n3,6.5\n' >a.csv
printf 'x,t\n4,8.5\n5,10.5\n' >b.csv
printf 'x,t\n1,2.5\n2,4.5\n3,6.5\n4,8.5\n5,10.5\n' >both.csv
columns='x=x target=t'
run() {
    try train net.onnxtxt --columns "$columns" --loss mse --optimizer sgd --lr 0.01 -b 1 --no-shuffle --threads 1 \
        --backend reference "$@"
}
echo '-- two files are one set'
run -d a.csv -d b.csv --validate a.csv --validate b.csv -o two.onnx
run -d both.csv --validate both.csv -o one.onnx
try compare one.onnx two.onnx --only weights
try evaluate two.onnx -d a.csv -d b.csv --columns "$columns" --metrics mse
try evaluate one.onnx -d both.csv --columns "$columns" --metrics mse
try predict two.onnx -d a.csv -d b.csv --columns "$columns" -o out.csv
cat out.csv
echo '-- files that do not go together'
cat >wide.onnxtxt <<'EOF2'
<ir_version: 8, opset_import: ["" : 17]>
wide (float[N,1] x) => (float[N,2] y)
<float[1,2] w = {0.5, 1}>
{
    y = MatMul(x, w)
}
EOF2
try predict net.onnxtxt -d a.csv --columns "$columns" -o narrow.npz
try predict wide.onnxtxt -d a.csv --columns "$columns" -o wide.npz
run -d a.csv -d narrow.npz -o no.onnx
try evaluate two.onnx -d narrow.npz -d wide.npz --metrics mse
try evaluate two.onnx -d a.csv -d nowhere.csv --columns "$columns" --metrics mse
echo '-- none of them is overwritten'
run -d a.csv -d b.csv --log b.csv -o no.onnx
