# Files that ONNX Runtime saved with all of its optimizations: weights in blocks of 8 or 16 channels.
# SPDX-License-Identifier: Apache-2.0
# model BLOCK CHANNELS FILTERS: a 1x1 convolution, plain.onnxtxt as it was, blocked.onnxtxt as it is saved
model() {
    awk -v b="$1" -v c="$2" -v m="$3" '
    function up(n) { return int((n + b - 1) / b) * b }
    function w(o, i) { return o < m && i < c ? (o * 7 + i * 3) % 11 - 5 : 0 }
    BEGIN {
        for (i = 0; i < c * 2; i++) x = x (i ? ", " : "") (i * 5) % 7 - 3
        for (o = 0; o < m; o++) for (i = 0; i < c; i++) plain = plain (o + i ? ", " : "") w(o, i)
        for (o = 0; o < up(m); o += b) for (i = 0; i < up(c); i += b)
            for (bi = 0; bi < b; bi++) for (bo = 0; bo < b; bo++)
                blocked = blocked (blocked == "" ? "" : ", ") w(o + bo, i + bi)
        for (o = 0; o < up(m); o++) bias = bias (o ? ", " : "") (o < m ? o % 3 : 0)
        for (o = 0; o < m; o++) short = short (o ? ", " : "") o % 3
        head = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft.nchwc\" : 1]>\n"
        start = "net () => (float[A,B,C,D] y, float[E,F,G,H] z) <float[1," c ",1,2] x = {" x "}, float["
        print head start m "," c ",1,1] w = {" plain "}, float[" m "] b = {" short "}> {\n" \
            "p = Conv(x, w, b)\n[relu] y = Relu(p)\nz = Transpose<perm = [0, 2, 3, 1]>(y) }" >"plain.onnxtxt"
        print head start up(m) "," up(c) ",1,1] w = {" blocked "}, float[" up(m) "] b = {" bias "}> {\n" \
            "[in] xb = com.microsoft.nchwc.ReorderInput(x)\n" \
            "[conv] yb = com.microsoft.nchwc.Conv<activation = \"Relu\">(xb, w, b)\n" \
            "[out] y = com.microsoft.nchwc.ReorderOutput<channels = " m ">(yb)\n" \
            "[last] z = com.microsoft.nchwc.ReorderOutput<channels = " m ", channels_last = 1>(yb) }" >"blocked.onnxtxt"
    }'
}
same() {
    model "$1" "$2" "$3"
    "$CAMEO" run plain.onnxtxt >plain.txt
    "$CAMEO" run blocked.onnxtxt >blocked.txt
    echo "[$?]"
    cmp plain.txt blocked.txt && echo "blocks of $1: $2 channels, $3 filters agree"
}

echo '-- shapes tell the block size'
same 8 24 8
same 8 16 21
same 16 20 20
same 16 32 17

echo '-- check and infer know them'
"$CAMEO" check --can-run blocked.onnxtxt
"$CAMEO" infer blocked.onnxtxt

echo '-- what is written has standard operators, which every tool reads'
"$CAMEO" optimize blocked.onnxtxt -o out.onnx >/dev/null
"$CAMEO" print out.onnx | grep -c "nchwc\."
"$CAMEO" run out.onnx >out.txt
cmp plain.txt out.txt && echo same

echo '-- no shape tells the block size: said, as ONNX Runtime would compute something on any machine'
model 8 16 16
"$CAMEO" run blocked.onnxtxt 2>&1 >/dev/null | sed 's/; [0-9]* is assumed/; N is assumed/'

echo '-- shapes that contradict each other are refused'
model 8 24 8
sed 's/channels = 8/channels = 0/; s/float\[8,24,1,1\] w/float[8,3,8,1] w/' blocked.onnxtxt >wrong.onnxtxt
"$CAMEO" run wrong.onnxtxt
echo "[$?]"
