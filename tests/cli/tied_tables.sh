# A table of an embedding and its transpose, which exporters write twice: trained as one, unless they
# differ, hold one repeated value or --keep-untied is given.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}
common='--loss cross-entropy --optimizer sgd --lr 0.5 --class-axis 1'

cat >tied.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
tied (int64[N] x) => (float[N,3] y)
<float[3,2] table = {0.5, -0.5, 0.25, 1, 0.125, 2}, float[2,3] "onnx::MatMul_9" = {0.5, 0.25, 0.125, -0.5, 1, 2}>
{
    h = Gather(table, x)
    ["/lm_head/MatMul"] y = MatMul(h, "onnx::MatMul_9")
}
EOF
printf 'x,t\n0,1\n1,2\n2,0\n1,0\n' >four.csv
echo '-- by their values'
try prepare tied.onnxtxt $common --list
try train tied.onnxtxt -d four.csv --columns 'x=x target=t' $common --steps 3 -b 4 --no-shuffle --threads 1 --backend reference -o out.onnx
try strip out.onnx -o stripped.onnxtxt
cat stripped.onnxtxt
try train tied.onnxtxt -d four.csv --columns 'x=x target=t' $common --steps 3 -b 4 --no-shuffle --threads 1 --backend reference --keep-untied -o out.onnx
echo '-- patterns match both names'
try prepare tied.onnxtxt $common --list --train lm_head
try prepare tied.onnxtxt $common --list --freeze 'lm_head|table'
echo '-- values that differ, one repeated value, no table'
sed 's/-0.5, 1, 2}>/-0.5, 1, 3}>/' tied.onnxtxt >differ.onnxtxt
try prepare differ.onnxtxt $common --list
sed 's/{[-0-9., ]*}/{1, 1, 1, 1, 1, 1}/g' tied.onnxtxt >repeated.onnxtxt
try prepare repeated.onnxtxt $common --list
sed -e 's/int64\[N\] x/float[N,3] x/' -e 's/Gather(table, x)/MatMul(x, table)/' tied.onnxtxt >factors.onnxtxt
try prepare factors.onnxtxt $common --list

cat >recorded.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 20]>
recorded (float[N,3] x) => (float[N,3] y)
<float[3,3] "o.weight" = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3,3] val_3 = {1, 4, 7, 2, 5, 8, 3, 6, 9},
 float[3,3] val_3 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['o.weight']"]>>
{
    a = MatMul(x, "o.weight")
    [o <metadata_props: ["pkg.torch.onnx.fx_node": "%o = call_function[target=torch.ops.aten.linear.default](args = (%a, %p_o_weight))"]>]
    y = MatMul(a, val_3)
}
EOF
echo '-- by what the exporter recorded, if the values agree'
try prepare recorded.onnxtxt --loss mse --optimizer sgd --list
sed 's/3, 6, 9}/3, 6, 10}/' recorded.onnxtxt >differ.onnxtxt
try prepare differ.onnxtxt --loss mse --optimizer sgd --list
