# Tensors that an exporter folded and renamed: patterns match the names that the framework has for
# them, lists show them, and tensors that were equal when they were written are trained apart.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
<metadata_props: ["pkg.torch.export.ExportedProgram.graph_signature": "
# inputs
p_t_0_weight: PARAMETER target='t.0.weight'
p_t_0_bias: PARAMETER target='t.0.bias'
p_t_1_lora_weight: PARAMETER target='t.1.lora.weight'
p_t_2_lora_weight: PARAMETER target='t.2.lora.weight'
p_t_3_weight: PARAMETER target='t.3.weight'
x: USER_INPUT
"]> net (float[N,3,2] x) => (float[N,3,2] y)
<float[2,2] val_0 = {0.5, -0.5, 0.25, 1}, float[2] "t.0.bias" = {0.5, 0.25},
 float[2,2] val_1 = {0, 0, 0, 0}, float[2,2] val_2 = {1, 2, -1, 0.5},
 float[2,2] val_0 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['t.0.weight']"]>,
 float[2,2] val_1 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['t.1.lora.weight']"]>,
 float[2,2] val_2 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['t.3.weight']"]>>
{
    [a <metadata_props: ["pkg.torch.onnx.fx_node": "%a = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_t_0_weight, %p_t_0_bias))"]>]
    a0 = MatMul(x, val_0)
    [b <metadata_props: ["pkg.torch.onnx.fx_node": "%a = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_t_0_weight, %p_t_0_bias))"]>]
    a1 = Add(a0, "t.0.bias")
    [c <metadata_props: ["pkg.torch.onnx.fx_node": "%c = call_function[target=torch.ops.aten.linear.default](args = (%a1, %p_t_1_lora_weight))"]>]
    c0 = MatMul(a1, val_1)
    c1 = Add(a1, c0)
    [d <metadata_props: ["pkg.torch.onnx.fx_node": "%d = call_function[target=torch.ops.aten.linear.default](args = (%c1, %p_t_2_lora_weight))"]>]
    d0 = MatMul(c1, val_1)
    d1 = Add(c1, d0)
    [e <metadata_props: ["pkg.torch.onnx.fx_node": "%e = call_function[target=torch.ops.aten.linear.default](args = (%d1, %p_t_3_weight))"]>]
    y = MatMul(d1, val_2)
}
EOF
echo '-- original names'
try info net.onnxtxt
try info net.onnxtxt --json | grep -A1 original
try prepare net.onnxtxt --loss mse --optimizer sgd --list
echo '-- patterns match them'
try prepare net.onnxtxt --loss mse --optimizer sgd --list --freeze '^t\.0'
try prepare net.onnxtxt --loss mse --optimizer sgd --list --train lora
try prepare net.onnxtxt --loss mse --optimizer sgd --list --train lora --keep-tied
try prepare net.onnxtxt --loss mse --optimizer sgd --json --train 't\.3' | grep -B3 -A1 original
echo '-- and one that matches nothing names those that are near'
try prepare net.onnxtxt --loss mse --optimizer sgd --json --freeze 'lorra'
echo '-- export writes them, turned back, and import finds them'
try export net.onnxtxt --to safetensors --list
try export net.onnxtxt --to safetensors -o net.safetensors
try import net.onnxtxt net.safetensors --weights-only --list -o back.onnx
try compare net.onnxtxt back.onnx --only weights
try prepare net.onnxtxt --loss mse --optimizer adam -o ready.onnx
try export ready.onnx --to pytorch --list
try export net.onnxtxt --to onnxruntime --weights-only --list
cat >merged.onnxtxt <<'EOT'
<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
merged (float[N,3] x) => (float[N,3] y)
<float[3,2] "onnx::MatMul_1" = {1, 2, 3, 4, 5, 6}, float[2,3] "onnx::MatMul_2" = {0, 0, 0, 0, 0, 0},
 float[3,3] "k.weight" = {0, 0, 0, 0, 0, 0, 0, 0, 0}>
{
    [Identity_0] "onnx::MatMul_3" = Identity("onnx::MatMul_2")
    [Identity_1] "v.weight" = Identity("k.weight")
    ["/q/lora_A/MatMul"] a = MatMul(x, "onnx::MatMul_1")
    ["/q/lora_B/MatMul"] b = MatMul(a, "onnx::MatMul_2")
    ["/v/lora_B/MatMul"] c = MatMul(a, "onnx::MatMul_3")
    ["/k/Transpose"] kt = Transpose<perm = [1, 0]>("k.weight")
    ["/k/MatMul"] d = MatMul(b, kt)
    ["/v/Transpose"] vt = Transpose<perm = [1, 0]>("v.weight")
    ["/v/MatMul"] e = MatMul(c, vt)
    y = Add(d, e)
}
EOT
echo '-- the older exporter keeps one of equal tensors and copies it'
try prepare merged.onnxtxt --loss mse --optimizer sgd --list
try prepare merged.onnxtxt --loss mse --optimizer sgd --list --train 'lora_B|^v'
try prepare merged.onnxtxt --loss mse --optimizer sgd --list --train 'v.lora_B' --keep-tied
try export merged.onnxtxt --to safetensors --list
"$CAMEO" prepare merged.onnxtxt --loss mse --optimizer sgd --momentum 0.9 -o merged_ready.onnx 2>said.txt || cat said.txt
try export merged_ready.onnx --to pytorch -o merged.pt
try export merged_ready.onnx --to pytorch --weights-only -o merged.pt
cat >statistic.onnxtxt <<'EOT'
<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
statistic (float[N,2,3] x) => (float[N,2,3] y)
<float[2] "b.running_mean" = {0, 0}, float[2] "b.running_var" = {1, 2}, float[2,2,1] "c.weight" = {1, 2, 3, 4}>
{
    [Identity_0] "c.bias" = Identity("b.running_mean")
    ["/b/Constant"] one = Constant<value_floats = [1.0, 1.0]>()
    ["/b/Constant_1"] zero = Constant<value_floats = [0.0, 0.0]>()
    ["/b/BatchNormalization"] h = BatchNormalization(x, one, zero, "b.running_mean", "b.running_var")
    ["/c/Conv"] y = Conv(h, "c.weight", "c.bias")
}
EOT
echo '-- and a statistic that a bias was merged with keeps its name'
try prepare statistic.onnxtxt --loss mse --optimizer sgd --list
cat >tied.onnxtxt <<'EOT'
<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
tied (int64[N,2] x) => (float[N,2,4] y)
<float[4,2] "emb.weight" = {1, 2, 3, 4, 5, 6, 7, 8}, float t = {2}>
{
    ["/emb/Gather"] h = Gather("emb.weight", x)
    ["/head/Transpose"] w = Transpose<perm = [1, 0]>("emb.weight")
    ["/head/MatMul"] a = MatMul(h, w)
    ["/Mul"] y = Mul(a, t)
}
EOT
echo '-- a layer that has the weight of another one has a name for it'
try info tied.onnxtxt --json | grep -A1 original
try export tied.onnxtxt --to safetensors --list
cat >saved.onnxtxt <<'EOT'
<ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
<metadata_props: ["pkg.torch.export.ExportedProgram.graph_signature": "
p_a_weight: PARAMETER target='a.weight'
p_b_weight: PARAMETER target='b.weight'
p_p_weight: PARAMETER target='p.weight'
b_scale: BUFFER target='scale' persistent=False
b_kept: BUFFER target='kept' persistent=True
b_count: BUFFER target='count' persistent=True
x: USER_INPUT
"]> saved (float[N,2] x) => (float[N,2] y)
<float[2,2] "b.weight" = {1, 2, 3, 4}, float[2] scale = {2, 3}, float kept = {0.5},
 float[2] val_1 = {1, 1}, float[2,1] val_2 = {0.25, 0.5},
 float[2,1] val_2 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['p.weight', 'val_0']"]>>
{
    [s] h = Mul(x, scale)
    [k] h0 = Mul(h, kept)
    [c] h1 = Mul(h0, val_1)
    [at <metadata_props: ["pkg.torch.onnx.fx_node": "%a = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_b_weight))",
                          "pkg.torch.onnx.name_scopes": "['', 'a', 'linear']"]>]
    wa = Transpose<perm = [1, 0]>("b.weight")
    a = MatMul(h1, wa)
    [bt <metadata_props: ["pkg.torch.onnx.fx_node": "%b = call_function[target=torch.ops.aten.linear.default](args = (%a, %p_b_weight))",
                          "pkg.torch.onnx.name_scopes": "['', 'b', 'linear']"]>]
    wb = Transpose<perm = [1, 0]>("b.weight")
    b = MatMul(a, wb)
    shape = Constant<value_ints = [-1, 2, 1]>()
    b1 = Reshape(b, shape)
    [p <metadata_props: ["pkg.torch.onnx.fx_node": "%p = call_function[target=torch.ops.aten.prelu.default](args = (%b, %p_p_weight))"]>]
    p0 = PRelu(b1, val_2)
    flat = Constant<value_ints = [-1, 2]>()
    y = Reshape(p0, flat)
}
EOT
echo '-- what the network saves, and nothing else, is exported'
try info saved.onnxtxt --json | grep -A1 original
try export saved.onnxtxt --to safetensors --list
try export saved.onnxtxt --to safetensors -o saved.safetensors
cat >gates.onnxtxt <<'EOT'
<ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
<metadata_props: ["pkg.torch.export.ExportedProgram.graph_signature": "
p_r_bias_ih: PARAMETER target='r.bias_ih'
p_r_bias_hh: PARAMETER target='r.bias_hh'
x: USER_INPUT
"]> gates (float[N,2] x) => (float[N,2] y)
<float[2] "r.bias_ih" = {1, 2}, float[2] "r.bias_hh" = {3, 4}>
{
    [a <metadata_props: ["pkg.torch.onnx.fx_node": "%r = call_function[target=torch.ops.aten.lstm.input](args = (%x, [%p_r_bias_ih, %p_r_bias_hh]))",
                         "pkg.torch.onnx.name_scopes": "['', 'r', 'lstm']"]>] a = Add(x, "r.bias_ih")
    [b <metadata_props: ["pkg.torch.onnx.fx_node": "%r = call_function[target=torch.ops.aten.lstm.input](args = (%x, [%p_r_bias_ih, %p_r_bias_hh]))",
                         "pkg.torch.onnx.name_scopes": "['', 'r', 'lstm']"]>] b = Add(a, "r.bias_hh")
    [c <metadata_props: ["pkg.torch.onnx.fx_node": "%r = call_function[target=torch.ops.aten.lstm.input](args = (%x, [%p_r_bias_ih, %p_r_bias_hh]))",
                         "pkg.torch.onnx.name_scopes": "['', 'r', 'lstm']"]>] y = Mul(b, "r.bias_hh")
}
EOT
cat >scaled.onnxtxt <<'EOT'
<ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
<metadata_props: ["pkg.torch.export.ExportedProgram.graph_signature": "
p_e_weight: PARAMETER target='e.weight'
x: USER_INPUT
"]> scaled (int64[N,2] x) => (float[N,2,4] y)
<float[4,2] "e.weight" = {1, 2, 3, 4, 5, 6, 7, 9}, float[2,4] val_1 = {0.25, 0.75, 1.25, 1.75, 0.5, 1, 1.5, 2.25},
 float[2,4] val_1 <metadata_props: ["pkg.onnxscript.optimizer.folded_from": "['e.weight', 'mul']"]>>
{
    [e] h = Gather("e.weight", x)
    [o] y = MatMul(h, val_1)
}
EOT
sed -e 's/<metadata_props: \["pkg.torch.export[^>]*//' -e '/^p_e/d' -e '/^x: /d' -e 's/^"\]> //' -e '/folded_from/d' \
    -e 's/2.25},/2.25}>/' -e 's/val_1/"onnx::MatMul_1"/' -e 's/\[e\]/["\/e\/Gather"]/' -e 's/\[o\]/["\/MatMul"]/' \
    scaled.onnxtxt >folded.onnxtxt
cat >weights.onnxtxt <<'EOT'
<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
g (float[1] x) => (float[1] y)
<float[2,3] "q.lora_A.weight" = {1, 2, 3, 4, 5, 6}, float[3,2] "q.lora_B.weight" = {1, 2, 3, 4, 5, 6},
 float[3,2] "v.lora_B.weight" = {7, 8, 9, 10, 11, 12}, float[3,3] "k.weight" = {1, 2, 3, 4, 5, 6, 7, 8, 9},
 float[3,3] "v.weight" = {9, 8, 7, 6, 5, 4, 3, 2, 1}>
{
    y = Identity(x)
}
EOT
sed -e '/^<float/,/^{/c<float[2] "r.bias_ih" = {5, 6}, float[2] "r.bias_hh" = {7, 8}>\n{' weights.onnxtxt >biases.onnxtxt
sed -e '/^<float/,/^{/c<float[4,2] "e.weight" = {1, 2, 3, 4, 5, 6, 7, 9}>\n{' weights.onnxtxt >table.onnxtxt
for file in weights biases table; do
    "$CAMEO" export $file.onnxtxt --to safetensors -o $file.safetensors 2>/dev/null
done
echo '-- import takes merged tensors apart, leaves others alone, and fills nothing that was computed'
try import merged.onnxtxt weights.safetensors --weights-only --list -o merged.onnx
try export merged.onnx --to safetensors -o again.safetensors
try checkpoint info weights.safetensors --dump before >/dev/null
try checkpoint info again.safetensors --dump after >/dev/null
for file in before/* after/*; do
    mv "$file" "${file%%/*}/${file#*/?????.}"
done
diff -r before after && echo 'all five tensors are those of the checkpoint'
try import gates.onnxtxt biases.safetensors --weights-only --list -o gates.onnx
try import scaled.onnxtxt table.safetensors --weights-only --list -o scaled.onnx
try import folded.onnxtxt table.safetensors --weights-only --list -o scaled.onnx
