# cameo grad --operator: how an operator is differentiated.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

echo '-- a kink, an extra output, a body, no gradient'
try grad --operator Relu
try grad --operator TopK
try grad --operator com.microsoft.BiasGelu
try grad --operator Floor
try grad --operator ArgMax
try grad --operator Gradient

echo '-- the domain; an operator of ours is shown as its definition'
try grad --operator Gelu --domain com.microsoft
try grad --operator GeluGrad | head -20

echo '-- older versions are upgraded'
try grad --operator Clip --opset 6 | head -5
try grad --operator Gelu --opset 19
try grad --operator Relu --opset 99

echo '-- mistakes'
try grad --operator Rellu
try grad --operator gelu --domain com.microsoft
try grad --operator Relu --domain com.microsoft
try grad --operator Xyzzy
try grad --operator ''
try grad --operator Relu net.onnx
try grad --operator Relu --of y
try grad --opset 3 net.onnx
try grad --of y --wrt x -o out.onnx
try grad --operator Relu --opset 0
"$CAMEO" grad --operator Relu >/dev/full
echo "[$?]"
