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
