# cameo evaluate and cameo predict: numbers worked out by hand, and what is refused.
# SPDX-License-Identifier: Apache-2.0
# Of numbers the first twelve decimals: the last ones are the machine's.
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" >said.txt 2>&1
    status=$?
    sed -E 's/([0-9]\.[0-9]{12})[0-9]+/\1/g' said.txt
    rm said.txt
    echo "[$status]"
}

# Regression: predictions 1 2 3 4 for targets 2 2 4 4, so the errors are 1 0 1 0; around their mean
# of 3 the targets have squares of 4 together. mae 2/4, r2 1 - 2/4; in batches of 3 too.
cat >line.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>
{ y = MatMul(x, w) }
END
cat >line.csv <<'END'
x,t
1,2
2,2
3,4
4,4
END
try evaluate line.onnxtxt -d line.csv --columns "x=x t=t" --loss mse --batch-size 3
try evaluate line.onnxtxt -d line.csv --columns "x=x t=t" -m mae,mse,rmse,r2 --loss huber --json

# Classes: the scores are the inputs; of five labels one does not count, and of the four others
# three have the highest score.
cat >class.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
class (float[N,3] x) => (float[N,3] y) <float[3] b = {0, 0, 0}>
{ y = Add(x, b) }
END
cat >class.csv <<'END'
a,b,c,label
9,0,0,0
0,9,0,1
0,0,9,2
9,0,0,1
5,0,0,-100
END
columns="x=a,b,c label=label"
try evaluate class.onnxtxt -d class.csv --columns "$columns" --batch-size 2
try evaluate class.onnxtxt -d class.csv --columns "$columns" --loss cross-entropy \
    -m loss,accuracy,top-1,top-2,confusion,f1-macro,f1-micro,f1-weighted,auc --json
try evaluate class.onnxtxt -d class.csv --columns "$columns" --ignore -1
try evaluate class.onnxtxt -d class.csv --columns "$columns" --ignore 2

# Two classes, one score: a model of probabilities, with three outputs.
cat >two.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
two (float[N,1] x) => (float[N,1] p, int64[N,1] chosen, float[N,2] both)
<float half = {0.5}>
{
    p = Sigmoid(x)
    more = Greater(p, half)
    chosen = Cast<to = 7>(more)
    both = Concat<axis = 1>(x, p)
}
END
cat >two.csv <<'END'
x,y
-2,0
-1,1
1,0
2,1
3,1
END
try evaluate two.onnxtxt -d two.csv
try evaluate two.onnxtxt -d two.csv --of p --loss bce
try evaluate two.onnxtxt -d two.csv --of chosen -m accuracy,precision,recall,confusion
try predict two.onnxtxt -d two.csv --columns "x=x" -o two-out.csv
cat two-out.csv
try predict two.onnxtxt -d two.csv --columns "x=x" --outputs chosen,p -o two-out.npz
try predict two.onnxtxt -d two.csv --columns "x=x" --outputs chosen -o two-out.npy
try run line.onnxtxt --input x=two-out.npy
try predict two.onnxtxt -d two.csv --columns "x=x" -o two-out.safetensors

# A batch of two, three rows.
cat >fixed.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
fixed (float[2,1] x) => (float[2,1] y) { y = Neg(x) }
END
head -4 line.csv >three.csv
try evaluate fixed.onnxtxt -d three.csv --columns "x=x t=t" -m mae
try predict fixed.onnxtxt -d three.csv --columns "x=x" -o fixed.csv
cat fixed.csv
try predict fixed.onnxtxt -d three.csv --columns "x=x" -o fixed.csv --batch-size 3

# Scores as a sequence of maps, labels 3 and 7.
cat >maps.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
maps (float[N,2] x) => (int64[N] label, seq(map(int64,float)) scores) <int64[2] names = {3, 7}>
{
    best = ArgMax<axis = 1, keepdims = 0>(x)
    label = Gather(names, best)
    scores = ai.onnx.ml.ZipMap<classlabels_int64s = [3, 7]>(x)
}
END
cat >maps.csv <<'END'
a,b,y
0.9,0.1,3
0.2,0.8,7
0.4,0.6,3
0.3,0.7,7
END
try evaluate maps.onnxtxt -d maps.csv --columns "x=a,b y=y" --loss cross-entropy -m loss,accuracy,auc,confusion
try predict maps.onnxtxt -d maps.csv --columns "x=a,b" -o maps-out.csv
cat maps-out.csv

# The loss of a training, of a file, of an output; and what is left out of them.
cat >trained.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>
{ y = MatMul(x, w) }
training {
    algorithm: step (float[N,1] t) => (float loss, float[1,1] new) <float rate = {0.1}>
    {
        e = Sub(y, t)
        s = Mul(e, e)
        loss = ReduceMean<keepdims = 0>(s)
        g = ai.onnx.preview.training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t)
        d = Mul(rate, g)
        new = Sub(w, d)
    },
    update_binding: ["w": "new"]
}
END
cat >cube.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
cube (float[N,1] prediction, float[N,1] target) => (float loss) <float three = {3}>
{ e = Sub(target, prediction)
  c = Pow(e, three)
  loss = ReduceMean<keepdims = 0>(c) }
END
cat >own.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
own (float[N,1] x, float[N,1] t) => (float[N,1] y, float cost)
{ y = Identity(x)
  e = Sub(y, t)
  a = Abs(e)
  cost = ReduceMean<keepdims = 0>(a) }
END
try evaluate trained.onnxtxt -d line.csv --columns "x=x t=t" --batch-size 3
try evaluate line.onnxtxt -d line.csv --columns "x=x t=t" --loss cube.onnxtxt -m loss
try evaluate own.onnxtxt -d line.csv --columns "x=x t=t" --loss output:cost

# What does not fit.
try evaluate line.onnxtxt
try evaluate line.onnxtxt -d line.csv --columns "x=x t=t" -m accuracy,r3,top
try evaluate line.onnxtxt -d line.csv --columns "x=x t=t" -m r2 --loss l2
try evaluate line.onnxtxt -d line.csv --columns "x=x t=t" --of z
try evaluate class.onnxtxt -d class.csv --columns "$columns" -m r2
try evaluate class.onnxtxt -d class.csv --columns "$columns" --loss mse
try evaluate line.onnxtxt -d line.csv --columns "x=x"
try evaluate line.onnxtxt -d class.csv --columns "x=a t=b,c"
try evaluate class.onnxtxt -d class.csv --columns "$columns" --classes 1,2
try evaluate class.onnxtxt -d class.csv --columns "$columns" --classes 1,x
try predict line.onnxtxt -d line.csv --columns "x=x"
try predict line.onnxtxt -d line.csv --columns "x=x" -o out.txt
try predict two.onnxtxt -d two.csv --columns "x=x" -o out.npy
try predict two.onnxtxt -d two.csv --columns "x=x" --outputs q,r -o out.npz
try predict own.onnxtxt -d line.csv --columns "x=x t=t" -o out.npz
try predict line.onnxtxt -d line.csv --columns "x=x" -o line.csv
ls
