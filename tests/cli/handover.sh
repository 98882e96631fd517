# A model as code of PyTorch: names of tensors, layers, names that nobody should give, what has no form.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
net (float[n,4] x) => (float[n,2] y)
<float[3,4] "fc1.weight" = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] "fc1.bias" = {1, 2, 3},
 float[2,3] w = {1, 2, 3, 4, 5, 6}, float half = {0.5}>
{
    h = Gemm <transB: int = 1> (x, "fc1.weight", "fc1.bias")
    a = Relu(h)
    s = Mul(a, half)
    y = Gemm <transB: int = 1> (s, w)
}
END
try export net.onnxtxt --to pytorch-code -o net
ls net
cat net/model.py

echo '-- names are no code'
cat >hostile.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,2] "x): pass # ", float[2,2] "import os; os.system('id')") => (float[2,2] "class")
<float[2,2] "w = 1; print" = {1, 2, 3, 4}>
{
    "lambda: 0" = Add("x): pass # ", "import os; os.system('id')")
    "def" = MatMul("lambda: 0", "w = 1; print")
    "class" = Einsum <equation: string = "ij,jk->ik"> ("def", "x): pass # ")
}
END
try export hostile.onnxtxt --to pytorch-code --no-check -o hostile
sed -n '/^class/,/return/p' hostile/model.py

echo '-- all that has no form is listed, and nothing is written'
cat >picture.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (uint8[n] bytes, uint8[m] more) => (uint8[h,w,3] y, uint8[i,k,3] z)
{
    y = ImageDecoder(bytes)
    z = ImageDecoder(more)
}
END
try export picture.onnxtxt --to pytorch-code -o picture
ls picture 2>&1 | sed 's/^ls: //'

echo '-- as functions of JAX'
try export net.onnxtxt --to jax-code -o jax
ls jax
cat jax/model.py
try export hostile.onnxtxt --to jax-code --no-check -o hostile_jax
sed -n '/^def apply/,/return/p' hostile_jax/model.py
