# cameo extract, merge, rename and set-shape: edits of the file's own messages.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "local" : 1, "ai.onnx.preview.training" : 1], producer_name: "somebody", metadata_props: ["k": "v"]>
net (float[N,4] x, float[N,2] extra, bool b) => (float[N,2] y, float[N,2] z)
<float[4,3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] B = {1, 2, 3}, float[3,2] V = {1, 0, 0, 1, 1, 1},
 float[2] unused = {1, 2}, float[N,3] h>
{
    [first] m = MatMul(x, W)
    h = Add(m, B)
    [act] a = local.Act(h)
    [choice] c = If(b) <
        then_branch = yes () => (float[N,3] t) { t = Mul(a, h) },
        else_branch = no () => (float[N,3] e) { e = Identity(a) }>
    [second] y = MatMul(c, V)
    z = Add(y, extra)
}
<domain: "local", opset_import: ["" : 17]>
Act (v) => (w) { w = Relu(v) }
<domain: "local", opset_import: ["" : 17]>
Other (v) => (w) { w = Neg(v) }
training {
    algorithm: alg (float[N,2] target) => (float loss, float[3,2] V_new)
    <float lr = {0.1}>
    {
        d = Sub(y, target)
        q = Mul(d, d)
        loss = ReduceMean<keepdims = 0>(q)
        g = ai.onnx.preview.training.Gradient<xs = ["V"], y = "loss">(V)
        s = Mul(lr, g)
        V_new = Sub(V, s)
    },
    update_binding: ["V": "V_new"]
}
END

echo '-- parts'
try extract net.onnxtxt --outputs y -o head.onnxtxt
cat head.onnxtxt
try extract net.onnxtxt --inputs a,b,h --outputs y -o part.onnxtxt
"$CAMEO" print part.onnxtxt | sed -n '/^net/,/^}/p'
try extract net.onnxtxt --inputs x --outputs a -o front.onnxtxt
"$CAMEO" print front.onnxtxt | sed -n '/^net/,/^}/p'
try check head.onnxtxt part.onnxtxt front.onnxtxt
try extract net.onnxtxt --inputs c --outputs y,yy,hhh -o no.onnx
try extract net.onnxtxt --inputs a,a,extra --outputs y,n0ne -o no.onnx
try extract net.onnxtxt -o no.onnx
try extract net.onnxtxt --outputs y

echo '-- one of two'
try merge front.onnxtxt part.onnxtxt --map a:a -o both.onnxtxt
try rename front.onnxtxt h=hidden node:first=one -o front2.onnxtxt
try merge front2.onnxtxt part.onnxtxt --map a:a -o both.onnxtxt
"$CAMEO" print both.onnxtxt | sed -n '/^net/,/^}/p'
try check both.onnxtxt
try merge front.onnxtxt part.onnxtxt --map a:a --prefix2 p/ -o both.onnxtxt
"$CAMEO" print both.onnxtxt | sed -n '/^net/,$p'
try merge front.onnxtxt part.onnxtxt --map a:b,q:r,a:b -o no.onnx
try merge front.onnxtxt part.onnxtxt --map nothing -o no.onnx
try merge front2.onnxtxt part.onnxtxt --outputs y -o both.onnxtxt
sed 's/17/13/' part.onnxtxt >older.onnxtxt
try merge front2.onnxtxt older.onnxtxt --map a:a -o no.onnx

echo '-- names'
try rename net.onnxtxt V=weights loss=error node:second=last dim:N=batch -o named.onnxtxt
"$CAMEO" print named.onnxtxt | sed -n '/^net/,/^}/p;/^training/,$p'
try check named.onnxtxt
try rename net.onnxtxt '*=net/*' 'node:*=n_*' -o named.onnxtxt
"$CAMEO" print named.onnxtxt | sed -n '/^net/,/^}/p;/^training/,$p'
try rename net.onnxtxt x=extra extra=x -o swapped.onnxtxt
"$CAMEO" print swapped.onnxtxt | grep '^net'
try rename net.onnxtxt x=y nosuch=z node:first=second lose=l dim:M=K -o no.onnx
try rename net.onnxtxt x= =y -o no.onnx
try rename net.onnxtxt x= -o no.onnx
try rename net.onnxtxt -o no.onnx

echo '-- shapes'
try set-shape net.onnxtxt x=8,4 extra=8,2 -o fixed.onnxtxt
"$CAMEO" print fixed.onnxtxt | sed -n '/^net/,/^}/p'
try check fixed.onnxtxt
try set-shape net.onnxtxt N=8 -o eight.onnxtxt
"$CAMEO" print eight.onnxtxt | sed -n '/^net/,/^}/p;/algorithm/,/>/p'
try set-shape fixed.onnxtxt x=?,4 extra=M,2 -o free.onnxtxt
try set-shape net.onnxtxt x=N,5 -o no.onnx
try set-shape net.onnxtxt nothing=3 x=-2,4 N=1,2 -o no.onnx
try set-shape net.onnxtxt x -o no.onnx
ls no.onnx 2>&1 | sed 's/.*: //'

echo '-- what was not touched keeps its bytes'
"$CAMEO" copy "$TESTS/models/every_field.onnx" -o as_it_was.onnx 2>/dev/null
try rename as_it_was.onnx node:none=some -o no.onnx
cmp as_it_was.onnx "$TESTS/models/every_field.onnx" && echo same
