# Training mode left in an inference graph: turned off and said by whatever writes or measures.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
} 2>&1
graph_of() {
    "$CAMEO" print "$1" | sed -n '/^[a-z]* (/,$p'
}

# As PyTorch's older exporter writes a network in training mode: a mask, a constant for the mode,
# and running statistics, here once read by nobody and once an output.
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2] x) => (float[N,2] y, float[2] m2)
    <float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] m = {1, 2}, float[2] v = {1, 1}, bool on = {1}>
{
    [bn1] a, m1, v1 = BatchNormalization <training_mode = 1> (x, s, b, m, v)
    half = Constant <value = float {0.5}> ()
    yes = Constant <value = bool {1}> ()
    [drop1] c, mask = Dropout (a, half, yes)
    [drop2] d = Dropout (c, half, on)
    [bn2] y, m2, v2 = BatchNormalization <training_mode = 1> (d, s, b, m, v)
}
END
try strip net.onnxtxt -o off.onnxtxt
graph_of off.onnxtxt
try check off.onnxtxt
try check net.onnxtxt
try strip off.onnxtxt -o again.onnxtxt
cmp off.onnxtxt again.onnxtxt && echo the same bytes
# Others give the same graph, and --as-is leaves it.
try upgrade net.onnxtxt -o up.onnxtxt --opset 17
cmp off.onnxtxt up.onnxtxt && echo the same bytes
try upgrade net.onnxtxt -o up.onnxtxt --opset 17 --as-is
"$CAMEO" check up.onnxtxt | tail -1
try optimize net.onnxtxt -o fast.onnxtxt --passes upgrade
graph_of fast.onnxtxt
try optimize net.onnxtxt -o fast.onnxtxt --passes upgrade --as-is
"$CAMEO" check fast.onnxtxt | tail -1

# The training keeps training mode; the model that is shipped does not.
cat >data.csv <<'END'
x1,x2,t1,t2
1,2,0,1
3,4,1,0
5,5,0,1
7,6,1,1
END
columns='x=x1,x2 target=t1,t2'
try prepare net.onnxtxt --loss mse --optimizer sgd --of y -o trainable.onnxtxt
"$CAMEO" check trainable.onnxtxt | tail -1
"$CAMEO" print trainable.onnxtxt | grep -c 'training_mode: int = 1'
try train net.onnxtxt -d data.csv --columns "$columns" --loss mse --optimizer sgd --of y --steps 1 -o trained.onnxtxt
"$CAMEO" check trained.onnxtxt | tail -1
try evaluate net.onnxtxt -d data.csv --columns "$columns" --loss mse --of y -m loss
try evaluate off.onnxtxt -d data.csv --columns "$columns" --loss mse --of y -m loss

# A training that computes with the inference graph keeps it; strip takes both.
cat >carried.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2] x) => (float[N,2] y) <float r = {0.5}, bool on = {1}, float w = {1}>
{
    [drop] y = Dropout (x, r, on)
}
training {
    algorithm: step () => (float n) { t = ReduceMean <keepdims = 0> (y) n = Sub (w, t) },
    update_binding: ["w": "n"]
}
END
try upgrade carried.onnxtxt -o up.onnxtxt --opset 18
"$CAMEO" check up.onnxtxt | tail -1
try strip carried.onnxtxt -o bare.onnxtxt
graph_of bare.onnxtxt
try predict carried.onnxtxt -d data.csv --columns x=x1,x2 -o predicted.csv
cat predicted.csv
try predict carried.onnxtxt -d data.csv --columns x=x1,x2 -o random.csv --as-is
cmp -s predicted.csv random.csv || echo it drops values as it is
try strip carried.onnxtxt --entry 0 -o bare.onnxtxt

# Functions, by attribute, by constant and by input; bodies of control flow; old versions.
cat >calls.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
net (float[N,2] x, bool c) => (float[N,2] y, float[N,2] z) <bool on = {1}, float r = {0.5}>
{
    a = own.Norm <train = 1> (x)
    b = own.Drop (a, on)
    z = own.Still <train = 0> (x)
    y = If (c) <
        then_branch = then () => (float[N,2] t) { [inner] t = Dropout (b, r, on) },
        else_branch = else () => (float[N,2] e) { e = Identity (b) }
    >
}
<domain: "own", opset_import: ["" : 17]>
Norm <train> (x) => (y)
{
    s = Constant <value = float[2] {1, 1}> ()
    [norm] y, m, v = BatchNormalization <training_mode : int = @train> (x, s, s, s, s)
}
<domain: "own", opset_import: ["" : 17]>
Drop (x, mode) => (y)
{
    r = Constant <value = float {0.5}> ()
    same = Identity (mode)
    [drop] y = Dropout (x, r, same)
}
<domain: "own", opset_import: ["" : 17]>
Still <train> (x) => (y)
{
    r = Constant <value = float {0.5}> ()
    n = Constant <value_int : int = @train> ()
    mode = Cast <to = 9> (n)
    y = Dropout (x, r, mode)
}
END
try strip calls.onnxtxt -o off.onnxtxt
graph_of off.onnxtxt
cat >old.onnxtxt <<'END'
<ir_version: 4, opset_import: ["" : 6]>
net (float[N,2] x) => (float[N,2] y) <float[2] s = {1, 1}>
{
    [drop] a = Dropout (x)
    [norm] y = BatchNormalization <is_test = 1> (a, s, s, s, s)
}
END
try strip old.onnxtxt -o off.onnxtxt
graph_of off.onnxtxt
cat >nine.onnxtxt <<'END'
<ir_version: 4, opset_import: ["" : 9]>
net (float[N,2] x) => (float[N,2] y) <float[2] s = {1, 1}>
{
    [norm] y, m, v, sm, sv = BatchNormalization (x, s, s, s, s)
}
END
try strip nine.onnxtxt -o off.onnxtxt
graph_of off.onnxtxt

# A mode that the caller feeds is the caller's; a default that is true is told.
cat >fed.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2] x, bool mode, bool on) => (float[N,2] y) <float r = {0.5}, bool on = {1}>
{
    [fed] a = Dropout (x, r, mode)
    [default] y = Dropout (a, r, on)
}
END
try strip fed.onnxtxt -o off.onnxtxt
graph_of off.onnxtxt
