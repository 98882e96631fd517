# Text and binary forms: every command reads both, and nothing is lost on the way.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

for model in linear functions training_linreg_sgd; do
    cp "$TESTS/models/$model.onnx" .
done
try print linear.onnx
try print --elide 2 linear.onnx
try print --upstream linear.onnx
echo
try print training_linreg_sgd.onnx -oprinted.onnxtxt
cat printed.onnxtxt
try check printed.onnxtxt
try info printed.onnxtxt

# There and back: the second text equals the first.
for model in linear functions training_linreg_sgd; do
    "$CAMEO" copy $model.onnx -o $model.onnxtxt 2>>said.txt
    "$CAMEO" copy $model.onnxtxt -o back.onnx 2>>said.txt
    "$CAMEO" print back.onnx -o back.onnxtxt
    "$CAMEO" print $model.onnx -o first.onnxtxt
    cmp first.onnxtxt back.onnxtxt && echo "$model: the same text"
    "$CAMEO" copy back.onnx -o back.onnxtxt 2>>said.txt
    cmp $model.onnxtxt back.onnxtxt && echo "$model: the same text by copy"
done

cat >broken.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) {
    y = Relu[x)
}
END
try info broken.onnxtxt
