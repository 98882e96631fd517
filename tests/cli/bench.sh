# How fast a model runs and trains: what is told; the figures differ each time.
# SPDX-License-Identifier: Apache-2.0
numbers() {
    sed -E 's/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/N/g; s/ +/ /g; s/Ki?B|Mi?B|Gi?B|bytes/B/g'
}
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" >stdout.txt 2>stderr.txt
    echo "[$?]"
    numbers <stdout.txt
    cat stderr.txt
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[batch,4] x) => (float[batch,3] y)
<float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}, float[3] b = {0,1,0}>
{
    z = MatMul(x, w)
    y = Add(z, b)
}
END

try bench net.onnxtxt --runs 7 --threads 1 --without regions --dim batch=2 |
    grep -v -e reference -e onednn -e cpu
echo "--- a training step, as JSON"
try bench net.onnxtxt --train --loss cross-entropy --optimizer adam --runs 3 --threads 1 \
    --batch-size 5 --json
grep -E '"(training|runs|batch|flops)"' stdout.txt
echo "--- in turns"
printf '2\n1\n' | "$CAMEO" bench net.onnxtxt --on-request --threads 1 2>stderr.txt |
    numbers | head -3
cat stderr.txt
echo "--- what is wrong"
try bench net.onnxtxt --loss mse
try bench net.onnxtxt --train
try bench net.onnxtxt --dim batch=x
try bench missing.onnx
echo "--- where the time of a training goes"
printf 'a,b,c,d,t\n1,2,3,4,0\n2,3,4,5,1\n3,4,5,6,2\n' >data.csv
"$CAMEO" train net.onnxtxt --data data.csv --columns 'x=a..d target=t' --loss cross-entropy --optimizer sgd \
    --steps 3 -b 3 -o out.onnx --profile trace.json --threads 1 2>stderr.txt >stdout.txt
echo "[$?]"
numbers <stderr.txt | grep -q ' N N N' && echo 'a table'
grep -c '"ph": "X"' trace.json | sed 's/[1-9][0-9]*/some/'
