# What cannot be written is one sentence and exit 3; a reader that has had enough is no failure.
# SPDX-License-Identifier: Apache-2.0
cp "$TESTS/models/training_mlp_adam_initialized.onnx" m.onnx
for command in 'info m.onnx' 'info --json m.onnx' 'print m.onnx' 'check m.onnx' '--help' '--version'; do
    # shellcheck disable=SC2086
    "$CAMEO" $command >/dev/full
    echo "$command [$?]"
done
"$CAMEO" print m.onnx -o /dev/full
echo "print -o [$?]"

# More than a pipe holds, so that the writer meets the closed end.
python3 -c 'print("<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[2] x) => (float[2] y)\n<float[30000] w = {"
                  + ",".join(map(str, range(30000))) + "}> { y = Relu(x) }")' >large.onnxtxt
{
    "$CAMEO" print large.onnxtxt
    echo "print [$?]" >code.txt
} | head -n 1
cat code.txt
