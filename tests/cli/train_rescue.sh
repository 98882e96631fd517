# What a run trained is not lost: full disks, folders that vanish, two runs on one folder, Ctrl-C.
# SPDX-License-Identifier: Apache-2.0
cp "$TESTS/models/training_linreg_sgd.onnx" net.onnx
cp "$TESTS/models/training/linreg_sgd.npz" data.npz
export TMPDIR="$PWD"
train() {
    "$CAMEO" train net.onnx --data data.npz --batch-size 16 --threads 1 --backend reference "$@"
}
start() { # in the background: $! is the trainer
    exec "$CAMEO" train net.onnx --data data.npz --batch-size 16 --threads 1 --backend reference "$@"
}
# What differs from run to run is left out.
plain() {
    grep -v '^epoch\|^step .* left' | sed 's/rescued-[A-Za-z0-9]*/rescued-X/; s/process [0-9]*/process N/
        s/after step [0-9]*/after step N/; s/[0-9]* checkpoints/N checkpoints/; s/[0-9]* models/N models/; s/[0-9]* lines/N lines/; s/[0-9]* points/N points/
        s/step-[0-9]*/step-N/g; s/events.out.tfevents[^ ]*cameo/EVENTS/; s/loss [0-9.e-]* -> [0-9.e-]*/loss/'
}

echo '-- a log and curves that cannot grow'
(
    ulimit -f 4
    train --steps 200 --log run.jsonl --tensorboard curves -o out.onnx
    echo "[$?]"
) 2>&1 | plain
"$CAMEO" check out.onnx
tail -c 1 run.jsonl | od -An -c

echo '-- folders that are removed while it runs'
mkdir gone
mkfifo pipe
# The run locks its folder, then waits for a reader of its log.
locked() {
    while kill -0 $trainer 2>/dev/null && ! [ -e "$1/.lock" ]; do sleep 0.05; done
}
start --steps 40 --validate data.npz --best gone/best.onnx --checkpoint gone --checkpoint-every 20 \
    --log pipe -o gone/out.onnx >said.txt 2>&1 &
trainer=$!
locked gone
rm -r gone
cat pipe >/dev/null
wait $trainer
echo "[$?]"
plain <said.txt
ls -d cameo-rescued-*/* | sed 's/.*[/]//' | sort
"$CAMEO" check cameo-rescued-*/out.onnx cameo-rescued-*/best.onnx
rm -r cameo-rescued-*

echo '-- Ctrl-C, when the checkpoint cannot be written'
start --steps 100000000 --checkpoint ck --log pipe -o stopped.onnx >said.txt 2>&1 &
trainer=$!
locked ck
rm -r ck
{
    read -r line
    kill -INT $trainer
    cat >/dev/null
} <pipe
wait $trainer
echo "[$?]"
plain <said.txt
"$CAMEO" check stopped.onnx

echo '-- a terminal that is closed'
start --steps 100000000 --log pipe -o hung.onnx >said.txt 2>&1 &
trainer=$!
{
    read -r line
    kill -HUP $trainer
    cat >/dev/null
} <pipe
wait $trainer
echo "[$?]"
plain <said.txt
"$CAMEO" check hung.onnx

echo '-- a sample that the model refuses, in the middle'
cat >table.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
net (int64[N] x) => (float[N,1] y)
<float[4,1] table = {1, 2, 3, 4}>
{ y = Gather(table, x) }
END
{
    echo x,target
    for i in 1 2 3 1 2 3 1 2 3 7; do echo $i,$i; done
} >table.csv
"$CAMEO" prepare table.onnxtxt --loss mse --optimizer adam -o table.onnx 2>/dev/null
for flags in '' '--checkpoint middle'; do
    "$CAMEO" train table.onnx --data table.csv --columns 'x=x target=target' --no-shuffle -b 2 $flags -o half.onnx 2>&1
    echo "[$?]"
done
"$CAMEO" check half.onnx
ls middle

echo '-- two runs on one folder'
start --steps 6000 --checkpoint ck --checkpoint-every 100 --log pipe -o one.onnx >said.txt 2>&1 &
trainer=$!
locked ck
for flag in --resume --init; do
    train --steps 10 --checkpoint ck $flag -o two.onnx 2>error.txt
    echo "[$?]"
    grep -q "process $trainer" error.txt && echo 'it names the process'
    plain <error.txt
done
{
    head -n 200 >/dev/null
    kill -9 $trainer
    cat >/dev/null
} <pipe
wait $trainer 2>/dev/null
train --steps 6000 --checkpoint ck --resume -o one.onnx 2>&1 | plain
train --steps 6000 -o whole.onnx >/dev/null 2>&1
cmp one.onnx whole.onnx && echo 'the bits of one run'
ls -A ck | grep lock

echo '-- fewer steps than an epoch: validated at the end'
train --steps 3 --validate data.npz --best best.onnx --log run.jsonl -o last.onnx 2>&1 | sed 's/[0-9]\.[0-9e.-]*/F/g; s/, r2.*//'
grep -c validation run.jsonl
cmp last.onnx best.onnx && echo 'the same'
train --steps 3 --validate data.npz --best best.onnx --json -o last.onnx 2>/dev/null | sed 's/[0-9]\.[0-9e.-]*/F/g'
