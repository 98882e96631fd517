# Models that are shipped: small external data goes inside, every file is named, the copy is proved.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
} 2>&1

# Two weights of 1 KiB, which may lie outside, and a bias that is too small for that.
list() {
    seq 1 256 | awk '{ print ($1 % 7 - 3) / 100 }' | paste -sd, -
}
cat >src.onnxtxt <<END_MODEL
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,16] x) => (float[N,16] y)
    <float[16,16] w = {$(list)}, float[16,16] v = {$(list)}, float[1] b = {1}>
{
    a = MatMul (x, w)
    c = MatMul (a, v)
    y = Add (c, b)
}
END_MODEL
names=$(echo a b c d e f g h i j k l m n o p | tr ' ' ,)
printf '%s\n1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7\n2,2,3,4,5,6,7,8,9,1,2,3,4,5,6,8\n' "$names" >rows.csv
mkdir src elsewhere
"$CAMEO" copy src.onnxtxt -o src/net.onnx --external net.onnx.data 2>/dev/null
fresh() {
    rm -rf in && cp -r src in
}
# Does it load where nothing else is?
alone() {
    rm -rf lonely && mkdir lonely && cp "$1" lonely && "$CAMEO" run lonely/* --random-inputs >/dev/null 2>&1 &&
        echo stands alone
}
rows() { # cameo train with the rows, labels called $1
    label=$1
    shift
    try train "$@" --data rows.csv --columns "x=$names $label=$names" | sed 's/loss,* [0-9].*/loss/'
}

echo '-- each of them writes one file'
fresh
try prepare in/net.onnx --loss mse --optimizer sgd -o trainable.onnx
alone trainable.onnx
try strip in/net.onnx -o stripped.onnx
alone stripped.onnx
try optimize in/net.onnx --portable -o optimized.onnx
alone optimized.onnx
try upgrade in/net.onnx --opset 18 -o upgraded.onnx
alone upgraded.onnx
try downgrade in/net.onnx --opset 13 -o downgraded.onnx
alone downgraded.onnx
rows label in/net.onnx --loss mse --optimizer sgd -o trained.onnx
alone trained.onnx
try strip trained.onnx -o final.onnx --check
alone final.onnx

echo '-- --external and --inline decide otherwise, and files are named in JSON too'
try strip in/net.onnx -o elsewhere/out.onnx --external w/out.data --check
try strip in/net.onnx -o elsewhere/out.onnx --external a --inline
try upgrade in/net.onnx --opset 18 -o elsewhere/up.onnx --external up.data --json
"$CAMEO" optimize in/net.onnx -o elsewhere/fast.onnx --json 2>/dev/null | sed -n '/"files"/,$p'
rows label in/net.onnx --loss mse --optimizer sgd -o elsewhere/t.onnx --json --external t.data |
    sed 's/.*"files"/"files"/'

echo '-- a file that carries its training keeps its layout; others name what they need'
"$CAMEO" prepare in/net.onnx --loss mse --optimizer sgd --freeze '^v$' -o in/t.onnx 2>/dev/null
"$CAMEO" copy in/t.onnx -o in/t.onnx --external t.data 2>/dev/null
rows target in/t.onnx -o in/t2.onnx --best in/best.onnx --validate rows.csv
try infer in/net.onnx -o in/inferred.onnx
try expand in/net.onnx -o elsewhere/expanded.onnx
try copy in/net.onnx -o in/copy.onnx

echo '-- over the input itself'
fresh
try strip in/net.onnx -o in/net.onnx --check
ls in

echo '-- a copy that is not legal is not shipped in silence'
sed 's/float\[1\] b = {1}/float[1] b = {}/' src.onnxtxt >broken.onnxtxt
try strip broken.onnxtxt -o broken.onnx --check

echo '-- data that tensors share is written once'
cat >in/shared.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2] x) => (float[N,2] y)
    <float[2,2] w = ["location": "s.data", "offset": "0", "length": "16"],
     float[2,2] v = ["location": "s.data", "offset": "0", "length": "16"]>
{
    a = MatMul (x, w)
    y = MatMul (a, v)
}
END_MODEL
printf '\000\000\200?\000\000\000@\000\000@@\000\000\200@' >in/s.data
try strip in/shared.onnxtxt -o inside.onnx --check
try copy in/shared.onnxtxt -o outside.onnx --external outside.data --threshold 1

echo '-- 64 MiB and more: a data file of its own, under a new name'
mkdir large
printf '%s' '<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x) => (float[1] y) <float[16777216] w = ["location": "w.bin"], int64[1] i = {5}> {
    z = Gather(w, i) y = Add (x, z) }' >large/m.onnxtxt
truncate -s 64M large/w.bin
try strip large/m.onnxtxt -o large/out.onnx --check
try strip large/m.onnxtxt -o large/m.onnxtxt
ls large
rm -r large

echo '-- data that is missing, or cannot be written'
fresh
rm in/net.onnx.data
try strip in/net.onnx -o missing.onnx
try optimize in/net.onnx -o missing.onnx --passes upgrade
ls missing.onnx 2>/dev/null
try strip src/net.onnx -o no/such/folder/out.onnx
# A disk that is full: the old file stays.
cp src.onnxtxt full.onnx
(ulimit -f 0 && trap '' XFSZ && try strip src/net.onnx -o full.onnx)
cmp src.onnxtxt full.onnx && ls
