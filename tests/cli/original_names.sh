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
