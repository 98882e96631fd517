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
echo '-- of a training: what the loss needs'
sed 's/y = Mul(x, w)/p = Mul(x, w) y = Sum(p, u, m, f, r, t, g)/' many.onnxtxt >needed.onnxtxt
try prepare needed.onnxtxt --loss mse --optimizer sgd -o trainable.onnx
try prepare many.onnxtxt --loss mse --optimizer sgd -o trainable.onnx
echo '-- of gradients'
try grad many.onnxtxt --of y --wrt x -o grad.onnx
try gradcheck many.onnxtxt

echo '-- as many of an old model'
sed 's/"" : 17/"" : 11/' many.onnxtxt | grep -v Mish >old.onnxtxt
try prepare old.onnxtxt --loss mse --optimizer fast -o trainable.onnx

echo '-- of a training, not of its inference'
cat >training.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]>
line (float[N] x) => (float[N] y) <float[1] w = {1}>
{
    y = Mul(x, w)
}
training {
    algorithm: step (float[N] t) => (float loss, float[1] w_new)
    {
        d = Sub(y, t)
        [unknown] a = my.own.Thing(d)
        [types] b = And(d, d)
        loss = ReduceMean<keepdims = 0>(a)
        w_new = Identity(b)
    },
    update_binding: ["w": "w_new", "v": "w_new"]
}
END
printf 'x,t\n1,2\n' >data.csv
try train training.onnxtxt -d data.csv --columns 'x=x t=t' -o trained.onnx
grep -v 'unknown\|types' training.onnxtxt | sed 's/(a)/(d)/;s/(b)/(w)/' >one.onnxtxt
try train one.onnxtxt -d data.csv --columns 'x=x t=t' -o trained.onnx

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

echo '-- in a graph that a function has by default'
cat >unbuilt.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1]>
unbuilt (bool c, float[1,2] x) => (float[1,2] y)
<float[1,2] w = {1, 2}>
{
    k = my.own.F(c)
    y = Add(w, k)
}
<domain: "my.own", opset_import: ["" : 17]>
F <t: graph = given () => (float[1,2] a) { a = Thing() }>(c) => (y)
{
    y = If <then_branch: graph = @t, else_branch: graph = @t> (c)
}
training {
    algorithm: step () => (float[1,2] "w.next") { "w.next" = Sub(w, y) },
    update_binding: ["w" : "w.next"]
}
END
try run unbuilt.onnxtxt --random-inputs
try step unbuilt.onnxtxt -o step.onnx

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

echo '-- the same object for programs'
cat >two.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1]>
two (float[2] x, bool[2] b) => (float[2] y, bool[2] a) <float[2] w = {1, 2}>
{
    [unknown] y = my.own.Thing(x)
    [types] a = Add(b, b)
}
training {
    algorithm: step () => (float[2] w_new) { n = Neg(b) w_new = my.own.Thing(w) },
    update_binding: ["w": "w_new"]
}
END
cat >plain.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1]>
plain (float[2] x) => (float[2] y, float[2] z) { y = my.own.Thing(x) z = my.own.Other(x) }
END
cat >new.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 20]>
new (float[2] x) => (float[2] y, float[2] z) { y = Gelu(x) [m] z = Mish(x) s = StringConcat(t, t) t = Cast<to = 8>(x) }
END
as_json() {
    "$CAMEO" "$@" --json >out.json 2>/dev/null
    echo "$1 [$?]"
    python3 - <<'END'
import json
told = json.load(open("out.json"))
told = told[0] if isinstance(told, list) else told
print(told["violations"], told["warnings"], told["cut"])
for row in told["findings"]:
    assert list(row)[:3] == ["rule", "severity", "place"] and list(row)[-2:] == ["reason", "help"], row
    print(" ", row["severity"], row["rule"], "|", row["place"], "|", row["reason"])
END
}
as_json check plain.onnxtxt
as_json run plain.onnxtxt --random-inputs
as_json prepare plain.onnxtxt --loss output:y --optimizer nothing -o t.onnx
as_json train two.onnxtxt -d data.csv --columns 'x=x t=t' -o t.onnx
as_json downgrade new.onnxtxt --opset 13 -o t.onnx
as_json infer two.onnxtxt
echo 'nothing' >rules
printf 'x,y\n' >no.ckpt
as_json import plain.onnxtxt no.ckpt --weights-only -o t.onnx
