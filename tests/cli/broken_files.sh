# Files that are cut short or no models at all: one sentence, exit 1, never a crash.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

head -c 100 "$TESTS/models/linear.onnx" >short.onnx
printf 'hello, I am a text file\n' >hello.onnx
: >empty.onnx
mkdir folder.onnx
for model in short hello empty folder; do
    try info $model.onnx
    try check $model.onnx
done

echo '-- what is no model says what it looks like'
guess() {
    printf "$1" >guess.onnx
    "$CAMEO" info guess.onnx
}
guess 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n'
guess '<!DOCTYPE html>\n<html><body>404</body></html>\n'
guess 'PK\003\004\024\000\000\000archive/data.pkl'
guess '\037\213\010\000\000\000'
guess '<ir_version: 8, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) { y = Relu(x) }\n'
guess '{"name": "net"}\n'
guess '\211HDF\r\n\032\n\000\000'
guess '\034\000\000\000TFL3\024\000\040\000'
guess '\100\000\000\000\000\000\000\000{"w":{"dtype":"F32"}}'
guess '\200\002ccollections\nOrderedDict\n'
rm guess.onnx

echo '-- a mark that an editor put before the text does no harm'
printf '\357\273\277<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }' >mark.onnxtxt
try check mark.onnxtxt
rm mark.onnxtxt
try print short.onnx
try copy short.onnx -o out.onnx
ls

# Cut at every length: yes or no, nothing else.
size=$(wc -c <"$TESTS/models/functions.onnx")
length=0
while [ $length -lt "$size" ]; do
    head -c $length "$TESTS/models/functions.onnx" >cut.onnx
    "$CAMEO" info cut.onnx >/dev/null 2>&1
    code=$?
    [ $code -le 1 ] || echo "cut at $length: exit $code"
    length=$((length + 7))
done
