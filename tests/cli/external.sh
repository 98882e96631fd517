# External data that is missing, short or behind links; saves that are repeated, stopped or refused.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

mkdir src dst cache
cp "$TESTS/models/linear.onnx" .
"$CAMEO" copy linear.onnx -o src/m.onnx --external w.bin --threshold 1 2>/dev/null
cp src/w.bin keep.bin

echo '-- the same copy again uses the data that is there'
for round in 1 2; do
    try copy src/m.onnx -o dst/m.onnx
    cmp src/m.onnx dst/m.onnx
    ls dst
done
printf 'X' | dd of=src/w.bin conv=notrunc status=none
try copy src/m.onnx -o dst/m.onnx
ls dst

echo '-- data that is not what it should be'
look() {
    try check src/m.onnx
    try copy src/m.onnx -o src/again.onnx
    try copy src/m.onnx -o cache/again.onnx
    ls src/again.onnx cache/again.onnx 2>/dev/null
}
head -c 5 keep.bin >src/w.bin
look
rm src/w.bin
look
mkfifo src/w.bin
look
rm src/w.bin
ln keep.bin src/w.bin
look
rm src/w.bin
ln -s nowhere src/w.bin
look
rm src/w.bin
mv keep.bin cache/blob
ln -s ../cache/blob src/w.bin
look
try check --allow-links src/m.onnx
try copy --allow-links src/m.onnx -o cache/plain.onnx
cmp cache/blob cache/w.bin && try check cache/plain.onnx

echo '-- where a model cannot go'
try copy linear.onnx -o -
"$CAMEO" copy linear.onnx -o /dev/stdout | cat
try copy linear.onnx -o a.onnx --external a.onnx
try print linear.onnx -o text.onnx
ls

echo '-- stopped by a signal'
mkdir large stopped
printf '%s' '<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x) => (float[1] y) <float[67108864] w = ["location": "w.bin"]> { y = Relu(x) }' >large/m.onnxtxt
truncate -s 256M large/w.bin
for signal in INT TERM; do
    env --default-signal="$signal" "$CAMEO" copy large/m.onnxtxt -o stopped/m.onnx &
    pid=$!
    until ls stopped | grep -q tmp; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.005
    done
    kill -$signal $pid
    wait $pid
    echo "[$?]"
    ls stopped
done

echo "-- tensors of attributes lie outside too"
cat >constants.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y) {
    c = Constant <value = float[2] {1, 2}> ()
    k = Constant <value = int64[1] {2}> ()
    z = ConstantOfShape <value = float[1] {3}> (k)
    d = Add (c, z)
    y = Add (x, d)
}
END
try copy constants.onnxtxt -o constants.onnx --external constants.bin --threshold 1
try compare constants.onnxtxt constants.onnx --only results
try infer constants.onnx
