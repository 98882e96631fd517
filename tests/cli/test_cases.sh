# cameo test: folders of cases, judged as ONNX's own runner judges them.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

# make_case NAME EXPRESSION EXPECTED-FILE: the model runs EXPRESSION on x.npy.
arrays=$TESTS/models/arrays
make_case() {
    mkdir -p "$1/test_data_set_0"
    cat >model.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y)
<float one = {1}>
{
    y = $2
}
END
    "$CAMEO" copy model.onnxtxt -o "$1/model.onnx" 2>/dev/null
    cp "$x" "$1/test_data_set_0/input_0.pb"
    cp "$3" "$1/test_data_set_0/output_0.pb"
}

# pb FILE.npy NAME: the array as a message.
pb() {
    cat >same.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 17]>
g ($3[2,3] $2) => ($3[2,3] y)
{
    y = Identity($2)
}
END
    "$CAMEO" run same.onnxtxt -i "$2=$1" -o "$2" --format pb 2>/dev/null
}
pb "$arrays/f4.npy" x float
pb "$arrays/f8.npy" d double
x=x/y.pb
make_case suite/abs 'Abs(x)' x/y.pb
make_case suite/neg 'Neg(x)' x/y.pb
make_case suite/type 'Abs(x)' d/y.pb
make_case suite/deep/relu 'Relu(x)' x/y.pb
make_case suite/loose 'Add(x, one)' x/y.pb
echo '{"rtol": 10, "atol": 1.5}' >suite/loose/data.json
mkdir -p suite/odd suite/nothing suite/bare
cp suite/abs/model.onnx suite/bare/model.onnx
echo broken >suite/odd/model.onnx

try test suite
try test suite --list
try test suite --filter 'a*' --junit out.xml --threads 1
sed 's/time="[0-9.]*"/time="T"/' out.xml
try test suite/abs suite/deep --backend plain --expanded
try test suite/neg --tolerance-scaled 2 --filter '*'
echo '-- zero but for rounding, and past that'
for small in 0 1e-6 3e-6 -3e-6; do
    mkdir -p "sums/is$small/test_data_set_0"
    cat >sum.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 17]>
g () => (float[2] y)
{
    y = Constant<value_floats: floats = [8.0, $small]>()
}
END
    "$CAMEO" copy sum.onnxtxt -o "sums/is$small/model.onnx" 2>/dev/null
    [ -d zero ] || "$CAMEO" run sum.onnxtxt -o zero --format pb 2>/dev/null
    cp zero/y.pb "sums/is$small/test_data_set_0/output_0.pb"
done
try test sums
echo '-- wrong uses'
try test
try test none
try test suite/nothing
try test suite --filter 'zzz*'
try test suite --tolerance-scaled much
try test suite --junit none/out.xml --filter abs
