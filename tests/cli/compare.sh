# cameo compare, and cameo run --dump: values of a model, of two, and recorded ones.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17], metadata_props: ["k": "v"]>
net (float[N,4] x, bool b) => (float[N,2] y)
<float[4,3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3,2] V = {1, 0, 0, 1, 1, 1}>
{
    [first] "a/m" = MatMul(x, W)
    [act] h = Clip("a/m")
    [choice] c = If(b) <then_branch = yes () => (float[N,3] t) { [inner] t = LeakyRelu<alpha = 0.5>(h) },
                        else_branch = no () => (float[N,3] e) { e = Identity(h) }>
    [second] y = MatMul(c, V)
}
END
sed -e 's/alpha = 0.5/alpha = 0.25/' -e 's/1, 1, 1}/1, 1, 2}/' -e 's/"k": "v"/"k": "w", "n": "m"/' \
    -e 's/\[second\] y = MatMul(c, V)/s = MatMul(c, V) [third] y = Neg(s)/' -e 's/: 17/: 18/' net.onnxtxt >other.onnxtxt
sed -e 's/Clip/Relu/' net.onnxtxt >relu.onnxtxt

echo '-- the same'
try compare net.onnxtxt net.onnxtxt
echo '-- not the same'
try compare net.onnxtxt other.onnxtxt
try compare net.onnxtxt other.onnxtxt --json --only weights
try compare net.onnxtxt relu.onnxtxt --only results # Clip without bounds lets all pass, inputs are above 0
try compare net.onnxtxt other.onnxtxt --only weights --atol 1
echo '-- intermediate values'
try run net.onnxtxt --random-inputs --seed 3 --dump all -o out
ls all
cat all/index.json
try run net.onnxtxt --random-inputs --dump some --only h,W -o out
ls some
try run net.onnxtxt --random-inputs --dump some --only hh
try run net.onnxtxt --random-inputs --only h
echo '-- recorded values'
try compare net.onnxtxt --expected all --seed 3
try compare net.onnxtxt --expected all --seed 4
try compare other.onnxtxt --expected all --seed 3 --rtol 0.1
try compare net.onnxtxt --expected none.npz
echo '-- wrong usage'
try compare net.onnxtxt
try compare net.onnxtxt net.onnxtxt --expected all
try compare net.onnxtxt net.onnxtxt --only colours
try compare net.onnxtxt net.onnxtxt --rtol much
