# cameo train: models that carry their training, from data to a model with new values.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>stderr.txt
    echo "[$?]"
    cat stderr.txt
}

models=$TESTS/models
for name in linreg_sgd softmax_momentum_standard mlp_adam_initialized; do
    cp "$models/training_$name.onnx" $name.onnx
    cp "$models/training/$name.npz" .
done
common="--threads 1 --backend reference --batch-size 16"

try train linreg_sgd.onnx --data linreg_sgd.npz $common --no-shuffle --steps 14 -o out.onnx \
    --log run.jsonl
# the last digits are the machine's own
sed -n '1,2p;14p' run.jsonl | sed 's/\(\.[0-9]\{5\}\)[0-9]*/\1/'
echo "bytes that differ: $(cmp -l linreg_sgd.onnx out.onnx | wc -l)"
try train mlp_adam_initialized.onnx --data mlp_adam_initialized.npz $common --no-shuffle --init \
    --steps 14 -o out.onnx

try train linreg_sgd.onnx --data linreg_sgd.npz $common --init --steps 1 -o out.onnx

# what a step will hold is told before it begins
try train linreg_sgd.onnx --data linreg_sgd.npz $common --steps 1 -o out.onnx --memory |
    sed 's/^\(  work\|    .*at most\|  together\) .*/\1 .../'

# an epoch at a time, measured on other data, the best kept
try train softmax_momentum_standard.onnx -d softmax_momentum_standard.npz $common --epochs 3 \
    --validate softmax_momentum_standard.npz --best best.onnx -o out.onnx --log val.jsonl
grep validation val.jsonl | sed 's/validation_loss":[0-9.]*/validation_loss":X/'
cmp best.onnx out.onnx && echo "the last was the best"

try train linreg_sgd.onnx -d linreg_sgd.npz $common --epochs 2 --validate linreg_sgd.npz \
    -o out.onnx

# stopped and gone on with: the same bytes as in one go
s=softmax_momentum_standard
try train $s.onnx -d $s.npz $common --epochs 6 -o whole.onnx --log whole.jsonl
try train $s.onnx -d $s.npz $common --epochs 2 -o part.onnx --checkpoint ck --log part.jsonl
echo '{"step":9,"epoch":3,"loss":1}' >>part.jsonl
printf '{"step":9,"ep' >>part.jsonl
try train $s.onnx -d $s.npz $common --epochs 6 -o part.onnx --checkpoint ck --resume \
    --log part.jsonl --checkpoint-every 3 --keep 2
cmp whole.onnx part.onnx && cmp whole.jsonl part.jsonl && echo "the same"
ls ck
try train $s.onnx -d $s.npz $common --epochs 6 -o part.onnx --checkpoint ck
try train $s.onnx -d $s.npz $common --epochs 6 -o part.onnx --checkpoint ck --resume --seed 5 \
    --no-shuffle
try train linreg_sgd.onnx -d linreg_sgd.npz $common --epochs 6 -o x.onnx --checkpoint ck \
    --resume
try train $s.onnx -d $s.npz $common --epochs 1 -o new.onnx --checkpoint fresh --resume

# Ctrl-C: the step is finished, a checkpoint written, and the same command goes on
"$CAMEO" train $s.onnx -d $s.npz $common --steps 100000000 -o never.onnx --checkpoint stop \
    --log stop.jsonl 2>stderr.txt &
while ! grep -q '"step":20,' stop.jsonl 2>/dev/null; do sleep 0.05; done
kill -INT $!
wait $!
echo "[$?]"
sed 's/step [0-9]*/step N/' stderr.txt
ls stop | sed 's/[0-9][0-9]*/N/'
ls never.onnx 2>&1 | sed 's/.*No such/No such/'

# on a full disk the run goes to its end; the last good checkpoint stays, and is gone on from
"$CAMEO" train $s.onnx -d $s.npz $common --epochs 2 -o part.onnx --checkpoint full >stdout.txt
(
    trap '' XFSZ
    ulimit -f 1
    "$CAMEO" train $s.onnx -d $s.npz $common --epochs 6 -o part.onnx --checkpoint full --resume \
        --checkpoint-every 2
    echo "[$?]"
) 2>&1 | cat
ls full
"$CAMEO" train $s.onnx -d $s.npz $common --epochs 6 -o part.onnx --checkpoint full --resume
cmp whole.onnx part.onnx && echo "the same"

# labels that no class has
cat >far.csv <<'END'
a,b,c,label
1,2,3,0
1,2,3,77
END
try train $s.onnx -d far.csv --columns "x=a,b,c label=label" -o x.onnx $common

# a model for inference only
cp "$models/linear.onnx" .
try train linear.onnx -d linreg_sgd.npz -o x.onnx

# what is wrong is said, all of it
try train linreg_sgd.onnx
try train linreg_sgd.onnx -d linreg_sgd.npz -o x.onnx --lr 0.1 --loss mse --optimizer adam
try train linreg_sgd.onnx -d linreg_sgd.npz -o x.onnx --epochs 1 --steps 2 --resume --best b \
    --last-batch some
try train linreg_sgd.onnx -d none.npz -o x.onnx
try train linreg_sgd.onnx -d linreg_sgd.npz -o none/x.onnx $common
cat >data.csv <<'END'
a,b,q
1,2,3
4,5,6
END
try train linreg_sgd.onnx -d data.csv --columns "x=a,b q=q" -o x.onnx $common
try train linreg_sgd.onnx -d data.csv --columns "x=a,b,q one=a two=b" -o x.onnx $common

# a loss that is not finite stops the run, with the step and the node
cat >boom.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
boom (float[N] x) => (float[N] y) <float w = {1}>
{ y = Mul(x, w) }
training {
    algorithm: step (float[N] t) => (float loss, float w_new) <float large = {1e15}>
    {
        w_new = Mul(w, large)
        [squares] s = Mul(w_new, w_new)
        loss = Log(s)
    },
    update_binding: ["w": "w_new"]
}
END
cat >boom.csv <<'END'
x,y
1,1
2,2
3,3
END
try train boom.onnxtxt -d boom.csv -b 1 -o x.onnx --threads 1
ls x.onnx 2>&1 | sed 's/.*No such/No such/'
