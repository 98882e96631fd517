# cameo optimize: models as the passes leave them.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17], producer_name: "somebody">
net (float[N,2] x) => (float[N,1] y) <float[2] a = {1, 2}, float[2] b = {10, 20}>
{
    c = Add(a, b)
    d = Mul(x, c)
    [mean] y = ReduceMean<axes = [1]>(d)
}
END
cat >old.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 9]>
old (float[N,3] x, float[3,2] w) => (float[N,2,1] y)
<float[3,2] w = {0.1, 0.2, 0.3, -0.1, -0.2, 0.4}>
{
    z = MatMul(x, w)
    y = Unsqueeze<axes = [2]>(z)
}
END

# Passes come and go; those that are left out are not what this is about.
echo '-- written under the opset it had'
try optimize net.onnxtxt -o folded.onnxtxt --passes fold 2>&1 | grep -v 'left out'
cat folded.onnxtxt
try check --strict folded.onnxtxt
try optimize net.onnxtxt -o folded.onnx --passes fold --json 2>&1 | sed '/"passes"/,/\]/d'
try optimize net.onnxtxt -o same.onnxtxt --passes '' 2>&1 | grep -v 'left out'
"$CAMEO" print net.onnxtxt >before.txt
"$CAMEO" print same.onnxtxt >after.txt
cmp before.txt after.txt && echo 'the model it was'
echo '-- raised where it is too old'
try optimize old.onnxtxt -o raised.onnxtxt --passes fold 2>&1 | grep -v 'left out'
cat raised.onnxtxt
echo '-- step by step'
try optimize net.onnxtxt --passes fold --dump-after gradients=before.onnx --dump-after fold=after.onnx
for file in before after; do
    "$CAMEO" info $file.onnx | grep '^operators'
done
"$CAMEO" optimize --list | grep -e upgrade -e fold
echo '-- the same results'
try run net.onnxtxt --random-inputs >before.txt
try optimize net.onnxtxt -o all.onnx --portable >/dev/null
try run all.onnx --random-inputs >after.txt
sed -i 1d before.txt after.txt
cmp before.txt after.txt && echo 'the same'
echo '-- functions are inlined, what refers to their attributes too'
try optimize "$TESTS/models/functions.onnx" -o functions.onnx --passes '' 2>&1 | grep -v 'left out'
try check --strict functions.onnx
"$CAMEO" print functions.onnx | sed -n '/^functions/,$p'
echo '-- the update of a parameter is one node'
"$CAMEO" optimize "$TESTS/optimize/update.onnxtxt" -o update.onnx 2>/dev/null | tail -n 1
echo '-- refused'
try optimize net.onnxtxt -o no.onnx --passes fold,unfold 2>&1 | sed 's/; the passes are.*//'
try optimize net.onnxtxt -o no.onnx --without upgrade
try optimize net.onnxtxt --dump-after fold
try optimize net.onnxtxt
try optimize
try optimize "$TESTS/models/training_linreg_sgd.onnx" -o no.onnx
test -e no.onnx || echo 'nothing was written'
