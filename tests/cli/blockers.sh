# All that keeps a model from running is said at once, a line each, whatever the subcommand.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >many.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1]>
many (float[2] x, bool[2] b, string[2] s, bool c) => (float[2] y)
<float[2] w = {1, 2}>
{
    [unknown] u = my.own.Thing(x)
    [later] m = Mish(x)
    [types] a = Add(b, b)
    [follows] f = Neg(a)
    [text] r = Sqrt(s)
    [axis] t = Softmax<axis = 7>(x)
    [branch] g = If (c) <then_branch = yes () => (float[2] o) { o = Abs(s) },
                         else_branch = no () => (float[2] o) { o = Exp(s) }>
    y = Mul(x, w)
}
END
try run many.onnxtxt --random-inputs
try run many.onnxtxt --random-inputs --backend plain
try prepare many.onnxtxt --loss mse --optimizer sgd -o trainable.onnx
try grad many.onnxtxt --of y --wrt x -o grad.onnx
try gradcheck many.onnxtxt

echo '-- more than anybody reads'
{
    echo '<ir_version: 10, opset_import: ["" : 17, "my.own" : 1]>'
    echo 'most (float[2] x) => (float[2] y) {'
    i=0
    while [ $i -lt 205 ]; do
        echo "a$i = my.own.Thing$i(x)"
        i=$((i + 1))
    done
    echo 'y = Neg(x) }'
} >most.onnxtxt
"$CAMEO" run most.onnxtxt --random-inputs 2>said.txt
echo "[$?]"
wc -l <said.txt | tr -d ' '
sed -n '1,2p;$p' said.txt

echo '-- an opset from the future'
cat >future.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 99, "my.own" : 5, "ai.onnx.ml" : 77]>
future (float[2] x) => (float[2] y)
<float[2] w = {80, 3000}>
{
    y = Mul(x, w)
}
END
"$CAMEO" run future.onnxtxt --random-inputs 2>said.txt >/dev/null
echo "[$?]"
cat said.txt
"$CAMEO" prepare future.onnxtxt --loss output:y --optimizer sgd --list 2>&1 | head -n 2
