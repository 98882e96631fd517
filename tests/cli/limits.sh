# What the machine's limits leave. Sanitizers reserve addresses and write files before the program
# begins, so this is not for their builds.
# SPDX-License-Identifier: Apache-2.0
echo '-- a file that may not grow'
cp "$TESTS/models/training_mlp_adam_initialized.onnx" m.onnx
(
    ulimit -f 0
    "$CAMEO" copy m.onnx -o grown.onnx
    echo "[$?]"
)
ls grown* 2>/dev/null

echo '-- little stack: a sentence, before anything could overflow it'
(
    ulimit -s 256
    "$CAMEO" check m.onnx 2>said.txt
    echo "[$?]"
)
sed 's/has [0-9]*/has N/' said.txt

echo '-- without a limit of its own a run may hold what is there'
cat >grow.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1048576] x) => (float[] y) <int64 n = {60}, bool go = {1}>
{
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[] s) => (bool d, float[] t) {
        d = Identity(c) t = Concat <axis = 0> (s, s) }>
}
END
ulimit -v 3000000
"$CAMEO" run grow.onnxtxt --random-inputs --threads 1 2>&1 | sed 's/[0-9][0-9]*/N/g'
