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
