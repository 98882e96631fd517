# cameo train: a training that came from elsewhere says in its metadata how far it is, and what is
# saved says how far it is then.
# SPDX-License-Identifier: Apache-2.0
cat >line.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>
{ y = MatMul(x, w) }
training {
   algorithm: <metadata_props: ["ai.cameo.training.position": "{\"step\": \"n\", \"epoch\": 2, \"samples\": 8}"]>
   step (float[N,1] t) => (float loss, int64 next, float[1,1] moved)
   <int64 n = {4}, int64 one = {1}, float rate = {0.1}> {
      e = Sub(y, t)
      s = Mul(e, e)
      loss = ReduceMean<keepdims = 0>(s)
      g = ai.onnx.preview.training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t)
      d = Mul(rate, g)
      moved = Sub(w, d)
      next = Add(n, one)
   },
   update_binding: ["w": "moved", "n": "next"]
}
END
printf 'x,t\n1,2\n2,2\n3,4\n4,4\n' >line.csv
train() {
    "$CAMEO" train "$@" -d line.csv --columns "x=x t:float=t" --batch-size 2 --no-shuffle 2>/dev/null
    echo "[$?]"
}
position() {
    "$CAMEO" print "$1" | grep -o 'position": ".*"\]' | tr -d '\\'
}

train line.onnxtxt --steps 3 -o once.onnx
position once.onnx
train once.onnx --epochs 2 -o twice.onnx
position twice.onnx
# A run that is taken up again counts what it did before.
train line.onnxtxt --steps 3 --checkpoint kept -o stopped.onnx
train line.onnxtxt --steps 5 --checkpoint kept --resume -o whole.onnx
position whole.onnx
