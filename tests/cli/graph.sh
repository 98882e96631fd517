# cameo graph: pictures of models. The places of boxes are judged by a program: none overlaps.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}

cat >judge.py <<'END'
import re, sys, xml.etree.ElementTree as tree
space = "{http://www.w3.org/2000/svg}"
def judge(svg):
    boxes = labels = overlaps = edges = 0
    for panel in svg.findall(space + "g"):
        rects = []
        edges += len(panel.findall(space + "path"))
        for g in panel.iter(space + "g"):
            found = g.findall(space + "rect")
            labels += any(t.get("class") == "label" for t in g.findall(space + "text"))
            if g is not panel and found:
                r = found[-1]
                rects.append([float(r.get(k)) for k in ("x", "y", "width", "height")])
        boxes += len(rects)
        for i, (x, y, w, h) in enumerate(rects):
            for x2, y2, w2, h2 in rects[i + 1:]:
                overlaps += x < x2 + w2 and x2 < x + w and y < y2 + h2 and y2 < y + h
    return f"{boxes} boxes, {labels} with a shape, {edges} edges, {overlaps} overlaps"
text = open(sys.argv[1], encoding="utf-8").read()
for part in re.findall(r"<svg.*?</svg>", text, re.S):
    print(judge(tree.fromstring(part)))
END

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "local" : 1, "ai.onnx.preview.training" : 1]>
net (float[N,4] x, bool b) => (float[N,2] y, float[N,3] "h<&>")
<float[4,3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] B = {1, 2, 3}, float[3,2] V = {1, 0, 0, 1, 1, 1},
 float[N,3] m>
{
    ["block/first"] m = MatMul(x, W)
    ["block/bias"] "h<&>" = Add(m, B)
    [act] a = local.Act("h<&>")
    [twice] W2 = Add(W, W)
    [choice] c = If(b) <
        then_branch = yes () => (float[N,3] t) { t = Mul(a, m) },
        else_branch = no () => (float[N,3] e) { e = Identity(a) }>
    [second] y = MatMul(c, V)
}
<domain: "local", opset_import: ["" : 17]>
Act (v) => (w) { u = Neg(v) w = Relu(u) }
training {
    algorithm: alg (float[N,2] target) => (float loss, float[3,2] V_new)
    {
        d = Sub(y, target)
        loss = ReduceSumSquare<keepdims = 0>(d)
        g = ai.onnx.preview.training.Gradient<xs = ["V"], y = "loss">(V)
        V_new = Sub(V, g)
    },
    update_binding: ["V": "V_new"]
}
END

try graph net.onnxtxt -o net.svg
python3 judge.py net.svg
try graph net.onnxtxt -o net.html --fold block
python3 judge.py net.html
grep -c '<details' net.html
grep -c 'href="#p' net.html
grep -c 'src=\|http://[^w]' net.html
try graph net.onnxtxt -o net.dot --fold block
cat net.dot
echo '-- many nodes, in scopes'
python3 - <<'END' >many.onnxtxt
print('<ir_version: 8, opset_import: ["" : 17]>\nmany (float[4] x) => (float[4] y)\n{')
last = "x"
for i in range(40):
    for k in range(4):
        print(f'    ["/layer{i // 10}/part{i}/n{k}"] v{i}_{k} = Add({last}, {last if k else "x"})')
        last = f"v{i}_{k}"
print(f"    y = Add({last}, v3_1)\n}}")
END
try graph many.onnxtxt -o many.svg
python3 judge.py many.svg
try graph many.onnxtxt -o all.svg --fold none
python3 judge.py all.svg
echo '-- wrong usage'
try graph net.onnxtxt
try graph net.onnxtxt -o net.png
try graph none.onnx -o none.svg
try graph net.onnxtxt -o none/net.svg
