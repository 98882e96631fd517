# The ONNX dialect of MLIR: printed as ONNX-MLIR prints it, read by every command, and equal after
# the way there and back.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
} 2>&1

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "my" : 1], metadata_props: ["made": "by hand"]>
net (float[N, 2] x, bool c) => (float[N, 1] y)
   <float[2, 1] w = {1, -0.5}>
{
   [product] p = MatMul(x, w)
   y = If (c) <
      then_branch = yes () => (float[N, 1] a) { a = Relu(p) },
      else_branch = no () => (float[N, 1] b) { b = my.Twice(p) }>
}
<domain: "my", opset_import: ["" : 17]>
Twice (v) => (r) { r = Add(v, v) }
training {
   algorithm: step () => (float[2, 1] new) { new = Neg(w) },
   update_binding: ["w": "new"]
}
END
try print --form mlir net.onnxtxt
try copy net.onnxtxt -o net.onnx
try copy net.onnx -o net.mlir
try copy net.mlir -o back.onnx
cmp net.onnx back.onnx && echo same bytes
try check net.mlir
try info net.mlir
try compare net.onnx net.mlir --only structure,weights
"$CAMEO" print net.mlir >one.txt
"$CAMEO" print net.onnx >two.txt
cmp one.txt two.txt && echo same text
try run net.mlir --random-inputs --dim N=2 --seed 1

echo "== a loss in a file of its own"
cat >loss.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
loss (float[N, 1] prediction, float[N, 1] target) => (float mean)
{ d = Sub(prediction, target) s = Mul(d, d) mean = ReduceMean<keepdims = 0>(s) }
END
cat >line.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, -0.5}> { y = MatMul(x, w) }
END
"$CAMEO" copy loss.onnxtxt -o loss.mlir >wrote.txt
try prepare line.onnxtxt --loss loss.mlir --optimizer sgd --lr 0.1 -o trainable.mlir
"$CAMEO" prepare line.onnxtxt --loss loss.onnxtxt --optimizer sgd --lr 0.1 -o trainable.onnx >wrote.txt
try compare trainable.onnx trainable.mlir --only structure,weights

echo "== forms"
try print --form mlir-generic --elide 1 net.onnx -o generic.mlir
grep -c '^ *onnx\.' generic.mlir
grep 'onnx.Constant' generic.mlir
try check generic.mlir
try print --form other net.onnx
try print --form mlir --upstream net.onnx

echo "== weights beside"
mkdir beside
try copy net.onnx -o beside/net.mlir --external net.data --threshold 1
grep 'onnx.Constant' beside/net.mlir
ls beside
try copy beside/net.mlir -o whole.onnx --inline
try compare net.onnx whole.onnx --only structure,weights
sed 's/"net.data"/"..\/net.onnx"/' beside/net.mlir >beside/out.mlir
try run beside/out.mlir --random-inputs --dim N=2

echo "== broken"
sed 's/onnx.MatMul/onnx.MatMult/' net.mlir >broken.mlir
try check broken.mlir
sed 's/tensor<2x1xf32>$/tensor<2x1xf32, #layout>/' net.mlir >layout.mlir
try info layout.mlir
echo 'module {' >short.mlir
try print short.mlir

# What we print is MLIR to MLIR's own tool, where there is one.
opt=$(command -v mlir-opt-19 || command -v /usr/lib/llvm-19/bin/mlir-opt || true)
"$CAMEO" print --form mlir-generic net.onnx -o generic.mlir
if [ -z "$opt" ] || "$opt" --allow-unregistered-dialect --mlir-print-op-generic generic.mlir -o again.mlir; then
    [ -z "$opt" ] && cp generic.mlir again.mlir
    "$CAMEO" copy again.mlir -o again.onnx && cmp net.onnx again.onnx && echo "same bytes after MLIR's parser and printer"
fi
