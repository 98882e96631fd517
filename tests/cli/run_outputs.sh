# What cameo run prints and writes: numbers as people write them, one file for each output.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cat >numbers.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
numbers () => (float one, float[3] tens, float[6] f, double[6] d, float16[2] h)
<float one = {80}, float[3] tens = {100, 200, 3000},
 float[6] f = {0, 0.1, 1e-4, 12345678, 1e-5, 1e16},
 double[6] d = {-0.0, 0.1, 123456789012345678, 1e15, 2.5e-7, 1e300}, float[2] halves = {60000, 0.333}>
{
    h = Cast<to: int = 10>(halves)
}
END
try run numbers.onnxtxt

echo '-- names of files that would be the same'
cat >names.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
names (float[1] x) => (float[1] "a/b", float[1] a_b, float[1] a_b_1)
<float[1] one = {1}, float[1] two = {2}, float[1] three = {3}>
{
    "a/b" = Identity(one)
    a_b = Identity(two)
    a_b_1 = Identity(three)
}
END
"$CAMEO" run names.onnxtxt --random-inputs -o out 2>said.txt
echo "[$?]"
sed 's/^wrote //' said.txt
ls out

echo '-- files that cannot be written are found before the work'
mkdir folder
try run numbers.onnxtxt --profile none/p.json
try run numbers.onnxtxt --profile folder
try run numbers.onnxtxt --profile numbers.onnxtxt/p.json
