# Wrong usage: one sentence on stderr, exit 2, nothing on stdout.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" >stdout.txt
    echo "[$?]"
    cat stdout.txt
}

cp "$TESTS/models/linear.onnx" m.onnx
try inof m.onnx
try frobnicate
try --verison
try help chekc
try info
try info m.onnx other.onnx
try info --jsno m.onnx
try info --json=yes m.onnx
try info none.onnx
try check none.onnx
try copy m.onnx
try copy m.onnx -o
try copy m.onnx -o x.onnx --external w.bin --inline
try copy m.onnx -o x.onnx --per-tensor
try copy m.onnx -o x.onnx --external w.bin --threshold many
try copy m.onnx -o x.onnx --external w.bin --align 48
try copy m.onnx -o x.onnx --external ../w.bin
try copy m.onnx -o none/x.onnx
try print m.onnx -o m.onnx
try print m.onnx -o none/x.onnxtxt
try print --elide -3 m.onnx
try --generate poem
try info -- --json
cmp m.onnx "$TESTS/models/linear.onnx" && ls
echo '-- what a newcomer types'
try m.onnx
try none.onnx
try run m.onnx x.npy
try train m.onnx data.npz
try info -
try help help | head -n 3
try help info more
try --version more
"$CAMEO" -V | head -n 1 | sed 's/[0-9.]*$/N/'

echo "-- old spellings work, and the new name is said"
cat >two.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
two (float[N,2] x) => (float[N,1] a, float[N,1] b)
   <float[2,1] w = {1, 2}, float[2,1] v = {3, 4}>
{
    a = MatMul(x, w)
    b = MatMul(x, v)
}
END
for flags in "--of b -o of.onnx" "--output of.onnx --of b" "-o of.onnx --output b" "--output b -o of.onnx" \
    "--out of.onnx --output b" "--of b --out of.onnx"; do
    rm -f of.onnx
    try prepare two.onnxtxt --loss mse --optimizer sgd $flags
    ls of.onnx
done
echo "-- one value is expected"
try prepare two.onnxtxt --loss mse --loss l1 --optimizer sgd -o of.onnx
try prepare two.onnxtxt --loss mse --of a --output b -o of.onnx
try prepare two.onnxtxt --loss mse -o of.onnx -o other.onnx
try prepare two.onnxtxt --loss mse --loss mse --of b --optimizer sgd -o of.onnx
