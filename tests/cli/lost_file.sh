# A file that is cut short while it is mapped: one sentence that names it, and exit 3.
# SPDX-License-Identifier: Apache-2.0
python3 - <<'END'
with open("big.onnxtxt", "w") as file:
    file.write('<ir_version: 8, opset_import: ["" : 17]>\ng () => (float[1000000] y)\n')
    file.write("<float[1000000] w = {" + ",".join(["1"] * 1000000) + "}> { y = Identity(w) }\n")
END
"$CAMEO" copy big.onnxtxt -o big.onnx 2>/dev/null

# The text is read slowly through a pipe, so that the cut comes in the middle.
mkfifo pipe
"$CAMEO" print big.onnx >pipe 2>said.txt &
{
    read -r line
    : >big.onnx
    cat >/dev/null
} <pipe
wait $!
echo "[$?]"
cat said.txt

# Data that is cut while several threads train on it: the thread that reads ahead meets it.
cp "$TESTS/models/training_linreg_sgd.onnx" net.onnx
python3 - <<'END'
import struct, zipfile
with zipfile.ZipFile("data.npz", "w") as archive:
    for name, columns in (("x", 3), ("y", 1)):
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (100000, {columns}), }}"
        head += " " * (63 - (10 + len(head)) % 64) + "\n"
        archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                         bytes(400000 * columns))
END
"$CAMEO" train net.onnx --data data.npz --epochs 100000 --threads 3 --log log.jsonl -o out.onnx 2>said.txt &
trainer=$!
while kill -0 $trainer 2>/dev/null && ! [ -s log.jsonl ]; do sleep 0.05; done
: >data.npz
wait $trainer
echo "[$?]"
grep -v "^epoch\|^step" said.txt
