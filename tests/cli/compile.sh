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

echo '-- stages'
try compile net.onnxtxt --emit linalg | grep -o linalg.generic | head -n 1

echo '-- without the module'
CAMEO_MLIR=off "$CAMEO" compile net.onnxtxt -o net.so 2>&1 | sed 's/(.*)/(..)/'
ls net.so net.h 2>&1 | grep -c 'No such file'

echo '-- libraries that are none'
echo text >text.so
"$CAMEO" run text.so 2>&1 | sed 's/: .*//'
try run missing.so
