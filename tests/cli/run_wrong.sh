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
