# cameo strip --entry: one entry of training info goes, the other stays.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
} 2>&1

cat >entries.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>
{ y = MatMul(x, w) }
training {
    algorithm: step () => (float[1,1] new) { new = Neg(w) },
    update_binding: ["w": "new"]
}
training {
    algorithm: other () => (float n) <float v = {1}> { n = Neg(v) },
    update_binding: ["v": "n"]
}
END
try strip entries.onnxtxt --entry 0 -o one.onnxtxt
cat one.onnxtxt
try strip entries.onnxtxt --entry 2 -o one.onnxtxt
try strip entries.onnxtxt --entry x -o one.onnxtxt
