# cameo run, used wrongly: one sentence that names the place, and an exit code that says whose fault.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

arrays=$TESTS/models/arrays
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x, float[3] bias) => (float[N,3] y)
{
    y = Add(x, bias)
}
END
cp "$arrays/f4.npy" x.npy
cp "$arrays/f8.npy" d.npy
cp "$arrays/big.npy" big.npy
cp "$arrays/scalar.npy" scalar.npy
head -c 140 x.npy >cut.npy

try run
try run none.onnx
try run net.onnxtxt --imput x=x.npy
try run net.onnxtxt --threads many
try run net.onnxtxt
try run net.onnxtxt --input x=x.npy
try run net.onnxtxt --input x.npy
try run net.onnxtxt --input z=x.npy
try run net.onnxtxt --input x=none.npy
try run net.onnxtxt --input x=net.onnxtxt
try run net.onnxtxt --input x=cut.npy
try run net.onnxtxt --input x=big.npy
try run net.onnxtxt --input x=x.npy --input x=x.npy
try run net.onnxtxt --input x=d.npy --random-inputs
try run net.onnxtxt --input bias=x.npy --random-inputs
try run net.onnxtxt --input "$arrays/other.npz"
try run net.onnxtxt --random-inputs --format csv
try run net.onnxtxt --random-inputs --backend abacus 2>&1 | sed 's/, plain.*/, .../'
try run net.onnxtxt --random-inputs -o x.npy
cat >odd.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
odd (float[2] x) => (float[2] y)
{
    [first] a = my.Frob(x)
    [second] b = Relu(a)
    [third] y = Frobnicate(b)
}
END
try run odd.onnxtxt --random-inputs

# What a node refuses is the model's fault, whatever its operator calls it.
node() {
    printf '<ir_version: 8, opset_import: ["" : 17]>\n%s\n' "$1" >node.onnxtxt
    try run node.onnxtxt --random-inputs
    try run node.onnxtxt --random-inputs --backend plain
}
node 'g (float[1,1,2,2] x) => (float[1,1,4,4] y) { y = Resize(x) }'
node 'g (float[2,3] x) => (float[2,3] y) <int64[2] i = {7,1}> { y = Gather(x, i) }'
node 'g (int64[2,2] x) => (float[N] y) { y = ConstantOfShape(x) }'
node 'g (int64[2] x) => (float[N] y) { y = BlackmanWindow(x) }'

# A loop that doubles its state ends with a sentence: there is no more than the machine has.
cat >grow.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1048576] x) => (float[] y) <int64 n = {60}, bool go = {1}>
{
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[] s) => (bool d, float[] t) {
        d = Identity(c) t = Concat <axis = 0> (s, s) }>
}
END
try run grow.onnxtxt --random-inputs --memory 64M
