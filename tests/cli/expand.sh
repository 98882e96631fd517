# cameo expand: functions inlined, and core operators only.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "local" : 1], producer_name: "somebody">
net (float[N,2] x) => (float[N,2] y)
{
    [first] t = local.scaled<factor = 2.0>(x)
    [second] u = local.scaled(t)
    [hinge] y = Relu(u)
}
<domain: "local", opset_import: ["" : 17]>
scaled <factor: float = 0.5> (x) => (y)
{
    f = Constant<value_float: float = @factor>()
    y = Mul(x, f)
}
END
cat >old.onnxtxt <<'END'
<ir_version: 4, opset_import: ["" : 9]>
old (float[N,3] x) => (float[N,3] y)
{
    [sum] s = ReduceSum<axes = [1]>(x)
    [div] t = Div(x, s)
    [soft] y = Softmax<axis = 1>(t)
}
END

echo '-- functions of the model'
try expand net.onnxtxt -o flat.onnxtxt
cat flat.onnxtxt
try check --strict flat.onnxtxt
echo '-- core operators only'
try expand net.onnxtxt -o core.onnxtxt --core
cat core.onnxtxt
for file in net flat core; do
    "$CAMEO" run $file.onnxtxt --random-inputs | tail -n 1
done
try expand old.onnxtxt -o new.onnxtxt --core
cat new.onnxtxt
echo '-- by name'
try expand net.onnxtxt -o one.onnxtxt --only Relu --json
"$CAMEO" copy net.onnxtxt -o net.onnx
try expand net.onnx -o one.onnx --except local::scaled
cmp net.onnx one.onnx && echo 'the same bytes'
try expand net.onnxtxt -o all.onnxtxt --operators --except Relu
echo '-- refused'
try expand net.onnxtxt -o no.onnx --only Gelu
try expand net.onnxtxt -o no.onnx --only '*'
try expand net.onnxtxt -o no.onnx --core --only Relu
try expand net.onnxtxt
sed 's/Relu/local.Unknown/' net.onnxtxt >unknown.onnxtxt
try expand unknown.onnxtxt -o known.onnx
try expand unknown.onnxtxt -o no.onnx --core
ls no.onnx 2>/dev/null || echo "nothing was written"
