# Inputs made up: sizes that are open are guessed, told and set; integers stay in range.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" >stdout.txt 2>stderr.txt
    echo "[$?]"
    grep -e '^[a-z]*: ' stdout.txt # names and types
    cat stderr.txt
}

cat >image.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
image (float[batch,C,H,W] x) => (float[batch,2,H2,W2] y)
<float[2,1,3,3] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>
{
    y = Conv(x, w)
}
END
cat >text.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
text (int64[N,seq] ids, int64[N,seq] mask, float[N,seq,D] bias) => (float[N,seq,2] y)
<float[5,2] table = {1,2,3,4,5,6,7,8,9,10}, int64[1] last = {2}>
{
    e = Gather(table, ids)
    b = Add(e, bias)
    m = Cast<to: int = 1>(mask)
    u = Unsqueeze(m, last)
    y = Mul(b, u)
}
END
cat >unnamed.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
unnamed (float[?,?] x, string[?] words) => (float[?,?] y, string[?] same)
{
    y = Neg(x)
    same = Identity(words)
}
END
# Only a run knows how many elements Compress leaves, so only a run refuses too few.
cat >late.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
late (float[N] x) => (float[1,1,M] y)
<float zero = {0}, int64[3] row = {1, 1, -1}, int64[3] window = {1, 1, 40}>
{
    c = GreaterOrEqual(x, zero)
    k = Compress(x, c)
    r = Reshape(k, row)
    w = ConstantOfShape(window)
    y = Conv(r, w)
}
END
cat >never.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
never (float[2,N] x, float[3,2] a, float[4,2] b) => (float[2,2] y)
{
    p = MatMul(x, a)
    q = MatMul(x, b)
    y = Add(p, q)
}
END

try run image.onnxtxt --random-inputs
try run image.onnxtxt --random-inputs --dim batch=2 --dim H=32
try run image.onnxtxt --shape x=1,1,5,6
try run image.onnxtxt --shape x=1x1x5x6
try run text.onnxtxt --random-inputs
try run text.onnxtxt --dim seq=3
try run unnamed.onnxtxt --random-inputs
try run late.onnxtxt --random-inputs
try run late.onnxtxt --dim N=39
try run never.onnxtxt --random-inputs
echo '-- what is given decides the rest'
"$CAMEO" run unnamed.onnxtxt --shape x=2,3 --shape words=1 -o out 2>/dev/null
cat >pair.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
pair (float[N,M] a, float[M,N] b) => (float[N,N] y)
{
    y = MatMul(a, b)
}
END
try run pair.onnxtxt --input a=out/y.npy --random-inputs
echo '-- wrong settings'
try run image.onnxtxt --dim bacth=2
try run image.onnxtxt --dim batch
try run image.onnxtxt --dim batch=0
try run image.onnxtxt --shape y=1,1,5,6
try run image.onnxtxt --shape x=1,1,5
try run image.onnxtxt --shape x=1,1,five
try run image.onnxtxt --shape x=1,1,5,6 --dim H=7
try run text.onnxtxt --shape mask=1,2 --shape ids=1,3
echo '-- gradcheck takes the same'
try gradcheck pair.onnxtxt --dim N=3 --dim M=2
cat >kink.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
kink () => (float[3] y, float[2] z)
<float[3] w = {0, 1, -1}, float[2] v = {0, 0}>
{
    y = Relu(w)
    z = Abs(v)
}
END
try gradcheck kink.onnxtxt
sed 's/by [0-9.e+-]* at/by TINY at/' stdout.txt
