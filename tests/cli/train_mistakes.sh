# What cameo train says of mistakes before it starts, and what it keeps when it is stopped.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}
common='--threads 1 --backend reference --loss mse --optimizer sgd --lr 0.001'

cat >line.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
line (float[N,2] X) => (float[N,1] y) <float[2,1] w = {0.5, -0.5}>
{ y = MatMul(X, w) }
EOF
printf 'a,b,t\n1,2,3\n4,5,6\n7,8,9\n1,2,1\n' >data.csv
columns='X=a,b target=t'

echo '-- where the result cannot go'
mkdir folder
try train line.onnxtxt -d data.csv --columns "$columns" $common -o folder
try train line.onnxtxt -d data.csv --columns "$columns" $common -o nowhere/out.onnx --log folder/
long=$(printf '%250s' '' | tr ' ' a)
"$CAMEO" train line.onnxtxt -d data.csv --columns "$columns" $common -o "$long.onnx" 2>&1 | sed "s/$long/LONG/"
echo '-- all that is wrong, whatever cannot be opened'
try train line.onnxtxt -d none.csv --validate none.npz --loss crossentropy --optimizer adm --lr 0.1 -o out.onnx
try train line.onnxtxt -d none.csv --loss mse --optimizer sgd --momentum 0.5 --beta1 0.5 --warmup-from 2 --schedule cosine --warmup-epochs 2 --class-weights 1,-1 -o out.onnx
try train line.onnxtxt -d data.csv --columns "$columns" $common --schedule plateau -o out.onnx
try prepare line.onnxtxt --loss mse --optimizer sgd --schedule step --schedule-epochs 2 --warmup 3 --warmup-epochs 1 -o out.onnx
try prepare line.onnxtxt --loss mse --optimizer sgd --schedule plateau --schedule-factor 2 --schedule-threshold 1 -o out.onnx
try prepare line.onnxtxt --loss mse --optimizer sgd --schedule-patience 2 --schedule-factor 0.5 -o out.onnx
try prepare line.onnxtxt --loss bce-logits --optimizer sgd --class-weights 1,x -o out.onnx
echo '-- names that do not meet'
try train line.onnxtxt -d data.csv $common -o out.onnx
try train line.onnxtxt -d data.csv --columns 'a=a,b c=t' $common -o out.onnx
echo '-- another run than the one that is gone on with'
try train line.onnxtxt -d data.csv --columns "$columns" $common --epochs 2 --checkpoint ck -o out.onnx
try train line.onnxtxt -d data.csv --columns "$columns" ${common% *} 0.002 --weight-decay 0.1 --epochs 4 --checkpoint ck --resume --batch-size 2 -o out.onnx
try train line.onnxtxt -d data.csv --columns "X=b,a target=t" $common --lr 0.001 --epochs 2 --checkpoint ck --resume -o out.onnx
try train line.onnxtxt -d data.csv --columns "X=a,b label=t" --target label $common --lr 0.001 --epochs 2 --checkpoint ck --resume -o out.onnx
echo '-- stopped without a checkpoint'
"$CAMEO" train line.onnxtxt -d data.csv --columns "$columns" $common --steps 1000000000 --log run.jsonl -o stopped.onnx 2>said.txt &
while ! test -s run.jsonl; do sleep 0.05; done
kill -INT $!
wait $!
echo "[$?]"
sed 's/step [0-9]*/step N/' said.txt | grep -v ' steps/s '
try check stopped.onnx

echo "-- other data of the same size"
printf 'a,b,t\n1,2,3\n3,4,7\n' >first.csv
printf 'a,b,t\n5,1,3\n2,2,7\n' >second.csv
cat >two.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul(x, w) }
END
steps="--columns x=a,b\ target=t --loss mse --optimizer sgd --lr 0.01 -b 2 --threads 1 --backend reference"
for data in "-d first.csv -d second.csv --steps 2" "-d second.csv -d first.csv --steps 4 --resume" \
    "-d first.csv -d second.csv --steps 4 --resume"; do
    eval "try train two.onnxtxt $data $steps --checkpoint two -o two.onnx"
done
