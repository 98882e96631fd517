# What exporters fold into other tensors or drop of a network is said once, before training.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >folded.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 20]>
<metadata_props: ["pkg.torch.export.ExportedProgram.graph_signature": "
p_c_weight: PARAMETER target='c.weight'
p_c_bias: PARAMETER target='c.bias'
p_bn_weight: PARAMETER target='bn.weight'
p_bn_bias: PARAMETER target='bn.bias'
b_bn_running_mean: BUFFER target='bn.running_mean' persistent=True
b_bn_running_var: BUFFER target='bn.running_var' persistent=True
p_a: PARAMETER target='A'
p_pos_weight: PARAMETER target='pos.weight'
p_kind_weight: PARAMETER target='kind.weight'
p_o_weight: PARAMETER target='o.weight'
"]> folded (float[N,2,3] x) => (float[N,2,3] y)
<float[2,2,1] "c.weight" = {0.5, -0.5, 0.25, 1}, float[3] neg = {-1, -2, -0.5},
 float[1,2,3] embedding = {1, 2, 3, 4, 5, 6}, float[1,2,3] embedding_1 = {1, 2, 3, 1, 2, 3},
 float[3,3] val_3 = {1, 4, 7, 2, 5, 8, 3, 6, 10},
 float[2,2,1] "c.weight" <metadata_props: ["pkg.torch.export.graph_signature.InputSpec.kind": "PARAMETER"]>,
 float[3,3] val_3 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['o.weight']"]>,
 float[3] neg <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['A', 'exp']"]>,
 float[1,2,3] embedding <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['arange', 'pos.weight']"]>,
 float[1,2,3] embedding_1 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['kind.weight', 'zeros']"]>>
{
    [c <metadata_props: ["pkg.onnxscript.rewriter.rule_name": "FuseBatchNormIntoConv, RemoveOptionalBiasFromConv",
                         "pkg.torch.onnx.fx_node": "%n = call_function[target=torch.ops.aten.batch_norm.default](args = (%c, %p_bn_weight, %p_bn_bias))"]>]
    c0 = Conv(x, "c.weight")
    c1 = Mul(c0, neg)
    c2 = Add(c1, embedding)
    c3 = Add(c2, embedding_1)
    [o <metadata_props: ["pkg.torch.onnx.fx_node": "%o = call_function[target=torch.ops.aten.linear.default](args = (%c3, %p_o_weight))"]>]
    y = MatMul(c3, val_3)
}
EOF
echo '-- what the newer exporter folded and dropped'
try prepare folded.onnxtxt --loss mse --optimizer sgd --list
cat >older.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
older (float[N,2,3] x) => (float[N,2,3] y)
<float[2,2,1] "onnx::Conv_1" = {0.5, -0.5, 0.25, 1}, float[2] "onnx::Conv_2" = {1, 2}>
{
    ["/d1/d1.0/Conv"] y = Conv(x, "onnx::Conv_1", "onnx::Conv_2")
}
EOF
echo '-- and the older one'
try prepare older.onnxtxt --loss mse --optimizer sgd --list
echo '-- export names each key that it cannot write, before it writes'
try export folded.onnxtxt --to safetensors -o folded.safetensors
try export older.onnxtxt --to safetensors -o older.safetensors
echo '-- import does not fill what was computed with what it was computed from'
cat >network.onnxtxt <<'EOT'
<ir_version: 10, opset_import: ["" : 20]>
network (float[N,3] x) => (float[N,3] y)
<float[3] A = {1, 2, 3}, float[3,3] "o.weight" = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[2,2,1] "c.weight" = {1, 2, 3, 4}>
{
    a = Mul(x, A)
    b = MatMul(a, "o.weight")
    y = Identity(b)
}
EOT
try export network.onnxtxt --to safetensors -o network.safetensors
try import folded.onnxtxt network.safetensors --weights-only --list -o filled.onnx
cat >undecided.onnxtxt <<'EOT'
<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
undecided (float[N,2] x) => (float[N,2] y)
<float[2,2] "a.weight" = {1, 2, 3, 4}, float[2] gate = {1, 2}, float t = {0.5}, float[2,2] w = {1, 2, 3, 4},
 float[2,1] u = {1, 2}, float[1,2] v = {1, 2}>
{
    ["/a/Gemm"] a = Gemm("x", "a.weight")
    ["/Mul"] b = Mul(a, gate)
    ["/MatMul"] uv = MatMul(u, v)
    ["/Add"] sum = Add(w, uv)
    ["/MatMul_1"] c = MatMul(b, sum)
    ["/Mul_1"] y = Mul(c, t)
}
EOT
echo '-- what the older exporter did not record is said where it matters'
try prepare undecided.onnxtxt --loss mse --optimizer sgd --list
try prepare undecided.onnxtxt --loss mse --optimizer sgd --list --freeze 'gate|^[tuvw]$'
try prepare undecided.onnxtxt --loss mse --optimizer sgd --list --train .
cat >padding.onnxtxt <<'EOT'
<ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
padding (int64[N,2] x, int64[N,2] z) => (float[N,2,2] y)
<float[4,2] "e.weight" = {1, 2, 3, 4, 5, 6, 7, 8}, float[4,2] "f.weight" = {1, 2, 3, 4, 5, 6, 7, 8}>
{
    [e <metadata_props: ["pkg.torch.onnx.fx_node": "%e = call_function[target=torch.ops.aten.embedding.default](args = (%p_e_weight, %x, 3), kwargs = {})"]>]
    a = Gather("e.weight", x)
    [f <metadata_props: ["pkg.torch.onnx.fx_node": "%f = call_function[target=torch.ops.aten.embedding.default](args = (%p_f_weight, %z), kwargs = {})"]>]
    b = Gather("f.weight", z)
    y = Add(a, b)
}
EOT
echo '-- and a row that PyTorch does not train'
try prepare padding.onnxtxt --loss mse --optimizer sgd --list
try prepare padding.onnxtxt --loss mse --optimizer sgd --list --freeze '^e'
