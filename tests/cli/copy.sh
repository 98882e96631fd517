# cameo copy: the same bytes, unless tensors are to move.
# SPDX-License-Identifier: Apache-2.0
for path in "$TESTS"/models/*.onnx; do
    model=$(basename "$path")
    [ "$model" != external.onnx ] || continue # its data is not there
    cp "$path" .
    "$CAMEO" copy "$model" -o "copy-$model" 2>said.txt
    code=$?
    cmp "$model" "copy-$model" && grep -q 'the same bytes as' said.txt && [ $code -eq 0 ] ||
        { echo "$model: exit $code"; cat said.txt; }
done
echo '-- copied byte for byte:' "$(ls copy-*.onnx | wc -l)"

try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

try copy linear.onnx -o out.onnx --external out.bin --threshold 1
try info out.onnx
try copy out.onnx -o whole.onnx --inline
"$CAMEO" print linear.onnx -o before.txt
"$CAMEO" print whole.onnx -o after.txt
cmp before.txt after.txt && echo 'the same model'
try copy linear.onnx -o many.onnx --external many.data --threshold 0 --per-tensor --align 64
ls many*
try copy many.onnx -o many.onnx --inline
"$CAMEO" print many.onnx -o after.txt
cmp before.txt after.txt && echo 'the same model, over itself'
ls many*

cp "$TESTS/models/external.onnx" .
try copy external.onnx -o whole.onnx --inline
