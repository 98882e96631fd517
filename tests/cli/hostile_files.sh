# Small files that broke the program once, or asked for gigabytes: each gets the right result or one sentence, in
# seconds and within the memory limit.
# SPDX-License-Identifier: Apache-2.0
run() {
    echo "\$ cameo run $*"
    timeout 60 "$CAMEO" run "$@" --threads 1 >run.out 2>&1
    status=$?
    sed 's/the [0-9]* in use/what is in use/' run.out # which depends on the build
    echo "[$status]"
}

python3 - <<'END'
import struct, zipfile, zlib

def npy(descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data

def write(name, data):
    with open(name, "wb") as file:
        file.write(data)

write("ones64.npy", npy("<i8", "(64,)", struct.pack("<64q", *[1] * 64)))
write("none.npy", npy("<i8", "(0,)", b""))
write("rank64.npy", npy("<f4", "(" + "1, " * 64 + ")", struct.pack("<f", 1)))
write("rank65.npy", npy("<f4", "(" + "1, " * 65 + ")", struct.pack("<f", 1)))
# 2**24 strings of no length each: 238 bytes ask for half a gigabyte
empty = npy("<U0", "(16777216,)", b"")
for count in 1, 200:
    with zipfile.ZipFile("strings%d.npz" % count, "w", zipfile.ZIP_DEFLATED) as file:
        for i in range(count):
            file.writestr("a%d.npy" % i, empty)
# a gigabyte of zeros in a megabyte
with zipfile.ZipFile("zeros.npz", "w", zipfile.ZIP_DEFLATED) as file, file.open("x.npy", "w") as out:
    out.write(npy("<f4", "(67108864,)", b""))
    for _ in range(64):
        out.write(bytes(1 << 22))
END

echo '-- ranks past the limit'
cat >rank.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 21]>
g (int64[64] s) => (float[] out) <int64 n = {2}, bool c = {1}>
{
    out = Loop (n, c) <body = b (int64 i, bool ci) => (bool co, float[] y) {
        y = ConstantOfShape (s) co = Identity (ci) }>
}
END
run rank.onnxtxt --input s=ones64.npy
cat >identity.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 21]>
g (float[] x) => (float[] y) { y = Identity (x) }
END
run identity.onnxtxt --input x=rank65.npy

echo '-- a trip count without a number'
cat >trips.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 21]>
g (int64[N] n) => (float[M,1] out) <bool c = {1}, float[1] x = {1}>
{
    out = Loop (n, c) <body = b (int64 i, bool ci) => (bool co, float[1] y) { y = Identity (x) co = Identity (ci) }>
}
END
run trips.onnxtxt --input n=none.npy

echo '-- element types that an operator does not have'
for type in float16 complex128 int4; do
    zeros=0,0,0
    [ $type = complex128 ] && zeros=0,0,0,0,0,0
    cat >labels.onnxtxt <<END
<ir_version: 10, opset_import: ["ai.onnx.ml" : 4]>
g (int64[4] X) => (Y)
{
    Y = ai.onnx.ml.LabelEncoder <keys_tensor = int64[3] {1, 2, 3}, values_tensor = $type[3] {$zeros}> (X)
}
END
    run labels.onnxtxt --random-inputs
done

echo '-- sparse constants that stand for much'
sparse() { # DIM COUNT
    echo '<ir_version: 8, opset_import: ["" : 17]>'
    echo 'g () => (float y) {'
    names=
    for i in $(seq "$2"); do
        echo "w$i = Constant <sparse_value = sparse_tensor[$1] {float[1] {1}, int64[1] {0}}> ()"
        names="$names${names:+, }w$i"
    done
    echo "s = Sum($names) y = ReduceSum <keepdims = 0> (s) }"
}
sparse 1000 2 >few.onnxtxt
run few.onnxtxt
sparse 536870912 1 >much.onnxtxt
run much.onnxtxt --memory 64M
sparse 17592186044416 1 >more.onnxtxt
run more.onnxtxt --memory 64M
sparse 268435456 40 >many.onnxtxt
run many.onnxtxt --memory 64M
"$CAMEO" check many.onnxtxt
"$CAMEO" optimize many.onnxtxt -o optimized.onnx >/dev/null 2>&1
[ "$(wc -c <optimized.onnx)" -lt 10000 ] || echo 'optimize spread out a sparse constant'

echo '-- array files that stand for much'
run identity.onnxtxt --input strings200.npz | tail -2
run identity.onnxtxt --input strings1.npz --memory 64M
run identity.onnxtxt --input x=strings1.npz --memory 64M
run identity.onnxtxt --input zeros.npz --memory 64M

echo '-- functions that double with every line'
{
    echo '<ir_version: 8, opset_import: ["" : 17, "l" : 1]> g (float[1] x) => (float[1] y) { y = l.f40(x) }'
    echo '<domain: "l", opset_import: ["" : 17]> f0 (x) => (y) { y = Neg(x) }'
    for i in $(seq 40); do
        echo "<domain: \"l\", opset_import: [\"l\" : 1]> f$i (x) => (y) { a = l.f$((i - 1))(x) y = l.f$((i - 1))(a) }"
    done
} >chain.onnxtxt
run chain.onnxtxt --random-inputs

echo '-- a pattern whose repeats multiply'
class=$(python3 -c 'print("".join(chr(0x4e00 + 2 * i) for i in range(8000)))')
open=$(printf '(%.0s' $(seq 18))
close=$(printf '){1}%.0s' $(seq 18))
cat >pattern.onnxtxt <<END
<ir_version: 9, opset_import: ["" : 20]>
g () => (bool[1] y) <string[1] x = {"a"}> { y = RegexFullMatch <pattern = "$open[$class]$close"> (x) }
END
run pattern.onnxtxt

echo '-- files as they came: attributes of another kind, or of none; sets without members; sparse initializers'
for model in "$TESTS"/models/hostile/*.onnx; do
    cp "$model" .
    # so much is free everywhere; what is held is said with the machine's own numbers
    run "${model##*/}" --random-inputs --seed 1 --memory 1G
done
