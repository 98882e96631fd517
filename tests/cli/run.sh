# cameo run: inputs from files of every kind, outputs printed or written.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

arrays=$TESTS/models/arrays
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,3] y, int64[2] s)
{
    y = Neg(x)
    s = Shape(x)
}
END
cat >two.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
two (float[N,3] x, int64[2,3] g) => (float[N,3] y)
<float one = {1}>
{
    f = Cast<to: int = 1>(g)
    y = Sub(x, f)
}
END
cp "$arrays/f4.npy" x.npy
cp "$arrays/i8.npy" g.npy

try run net.onnxtxt --input x=x.npy
try run net.onnxtxt --input x.npy --output out
try run net.onnxtxt --input out/y.npy
try run net.onnxtxt -i x.npy -o out --format pb
try run net.onnxtxt -i x=out/y.pb
try run net.onnxtxt -i x.npy -o out --format safetensors
ls out
try run net.onnxtxt -i "$arrays/columns.npy" --backend plain
try run net.onnxtxt -i "$arrays/two.safetensors"
try run net.onnxtxt -i "$arrays/stored.npz"
try run two.onnxtxt -i x=x.npy -i g=g.npy --threads 1
try run net.onnxtxt --random-inputs --seed 7
echo '-- large outputs are cut'
cat >large.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
large () => (float[40,50] y, float[0,3] none, float one, bool[3] b, string[2] t)
<int64[2] shape = {40, 50}, int64[2] empty = {0, 3}, float[3] f = {0.1, nan, -inf}, string[2] words = {"one", "two\n"}>
{
    y = ConstantOfShape<value: tensor = float[1] {0.25}>(shape)
    none = ConstantOfShape(empty)
    one = Constant<value_float: float = 1e-8>()
    b = IsNaN(f)
    t = Identity(words)
}
END
try run large.onnxtxt
echo '-- explained and profiled'
"$CAMEO" run two.onnxtxt -i x=x.npy -i g=g.npy --backend reference --explain --profile p.json 2>said.txt >/dev/null
echo "[$?]"
sed -e '/^[A-Za-z-]* [0-9.]*, \//d' -e '/^without/d' -e 's/ *[0-9][0-9]*\.[0-9]/ TIME/' said.txt
grep -o '"name": "[A-Za-z]*"\|"ph": "."' p.json | sort | uniq -c | sed 's/^ *//'
