# cameo compile: what is refused, and the stages that need no other program.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[2,3] x) => (float[2,3] y)
{
    t = Add(x, x)
    y = Add(t, x)
}
END
cat >words.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
words (string[2] x) => (string[2] y)
{
    y = Identity(x)
}
END

echo '-- wrong usage'
try compile net.onnxtxt -o ''
try compile net.onnxtxt -o net.h --emit object
try compile net.onnxtxt -o net.weights --emit object
try compile net.onnxtxt -o net.so --emit llvm
try compile net.onnxtxt -o net.wasm --target aarch64-linux-gnu
try compile net.onnxtxt -o net.so --target wasm32
echo '/* mine */' >own.h
try compile net.onnxtxt -o own --emit object
cat own.h
try compile net.onnxtxt
try compile net.onnxtxt -o net.dll
try compile net.onnxtxt --emit object
try compile net.onnxtxt --emit wish
try compile net.onnxtxt -o net.so --weights under
try compile net.onnxtxt -o net.so --name 'a b'
try compile nothing.onnx -o net.so
try compile net.onnxtxt -o net.so --train-step
try compile net.onnxtxt -o net.so --init

echo '-- what cannot be compiled'
try compile words.onnxtxt --emit linalg

cat >many.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 21]>
many (string[2] s, seq(float[2]) q, float[2,3] x, int64[n] sizes, bool c, uint8[n] file)
  => (string[2] s2, float z, float[] r, float[] o, uint8[h,w,3] picture)
{
    s2 = Identity(s)
    l = SequenceLength(q)
    z = Cast<to = 1>(l)
    [reshaped] r = Reshape(x, sizes)
    picture = ImageDecoder(file)
    o = If(c) <then_branch = yes () => (float[] t) { t = Reshape(x, sizes) },
               else_branch = no () => (float[] e) { e = Exp(r) }>
}
END
try compile many.onnxtxt --emit linalg

echo '-- stages'
try compile net.onnxtxt --emit linalg | grep -o linalg.generic | head -n 1

echo '-- without the module'
CAMEO_MLIR=off "$CAMEO" compile net.onnxtxt -o net.so
echo "[$?]"
CAMEO_MLIR=off "$CAMEO" --version | grep MLIR
ls net.so net.h 2>&1 | grep -c 'No such file'

echo '-- a full disk'
"$CAMEO" compile net.onnxtxt --emit linalg >/dev/full
echo "[$?]"
"$CAMEO" compile net.onnxtxt --emit onnx >/dev/full
echo "[$?]"

echo '-- libraries that are none'
echo text >text.so
try run text.so
try run missing.so
# The head of a library for a processor that nobody tests on.
{
    printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\26\0'
    head -c 300 /dev/zero
} >far.so
try run far.so 2>&1 | sed 's/this machine is .*/this machine is .../'

echo '-- what is compiled is not a model'
try info far.so
printf '!<arch>\n' >net.a
try check net.a
printf '\0asm\1\0\0\0' >net.wasm
try print net.wasm
try bench far.so --backend reference
try bench far.so --without fold
mkdir none
try test none --backend abacus 2>&1 | sed 's/, plain.*,/, ...,/'
