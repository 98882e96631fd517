# No output destroys a file that is read, whatever it is called.
# SPDX-License-Identifier: Apache-2.0
cp "$TESTS/models/training_linreg_sgd.onnx" net.onnx
cp "$TESTS/models/training/linreg_sgd.npz" data.npz
cp "$TESTS/models/linear.onnx" plain.onnx
"$CAMEO" copy plain.onnx -o apart.onnx --external apart.bin --threshold 1 2>/dev/null
ln data.npz other_name.npz
ln -s net.onnx link.onnx
mkdir dir checkpoints
python3 -m zipfile -e data.npz checkpoints
cat >identity.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x) => (float[N] y) { y = Identity(x) }
END
python3 - <<'END'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
head += " " * (63 - (10 + len(head)) % 64) + "\n"
with open("dir/y.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<2f", 1, 2))
END
cksum ./*.onnx ./*.bin ./*.npz dir/* checkpoints/* >before.txt

refuse() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1 | tail -1
    cksum ./*.onnx ./*.bin ./*.npz dir/* checkpoints/* | cmp - before.txt
}
train="train net.onnx --data data.npz --steps 1"
refuse $train -o out.onnx --log data.npz
refuse $train -o out.onnx --log other_name.npz
refuse $train -o out.onnx --log ./net.onnx
refuse $train -o out.onnx --log link.onnx
refuse $train -o data.npz
refuse $train --best data.npz --validate data.npz -o out.onnx
refuse train net.onnx --data checkpoints/../data.npz --validate data.npz --steps 1 --log dir/../data.npz -o out.onnx
refuse train net.onnx --data checkpoints --steps 1 --checkpoint checkpoints -o out.onnx
refuse run plain.onnx --random-inputs --profile plain.onnx
refuse run apart.onnx --random-inputs --profile apart.bin
refuse run identity.onnxtxt --input x=dir/y.npy --output dir
refuse copy apart.onnx -o apart.bin
refuse print apart.onnx -o apart.bin
refuse optimize apart.onnx -o apart.bin
refuse optimize apart.onnx -o out.onnx --dump-after fold=apart.bin
refuse strip apart.onnx -o apart.bin
ls out* 2>/dev/null

echo '-- a model may be saved over itself'
"$CAMEO" optimize plain.onnx -o plain.onnx >/dev/null 2>&1 && "$CAMEO" check plain.onnx
"$CAMEO" copy apart.onnx -o apart.onnx --inline 2>/dev/null && "$CAMEO" check apart.onnx
