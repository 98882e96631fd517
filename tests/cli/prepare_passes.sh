# The passes of a preparation: listed, left out, refused, written one by one.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}
cat >net.onnxtxt <<'EOF'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2] x) => (float[N,2] y)
<float[2,2] w = {0.5, -0.5, 1, 2}, float r = {0.5}>
{ a = MatMul(x, w) d = Dropout(a, r) y = Softmax(d) }
EOF
flags='--loss cross-entropy --optimizer sgd --lr 0.5'

try prepare --list-passes
for pass in modes loss update; do
    try prepare net.onnxtxt $flags --dump-after $pass=$pass.onnx -o out.onnx
    "$CAMEO" print $pass.onnx | sed 1d
done
try prepare net.onnxtxt $flags --without training-mode,folding -o plain.onnx
"$CAMEO" print plain.onnx | grep -c Dropout
try prepare net.onnxtxt $flags --without bypass,untie -o out.onnx
try prepare net.onnxtxt $flags --without dropout -o out.onnx
try prepare net.onnxtxt $flags --dump-after loss -o out.onnx
try prepare net.onnxtxt $flags --dump-after los=out.onnx -o out.onnx
