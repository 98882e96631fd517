# Every subcommand with every class of failure: 1 no, 2 wrong usage, 3 the machine, 130 stopped.
# A line is the code and the command; what was said is looked at elsewhere.
# SPDX-License-Identifier: Apache-2.0
try() {
    "$CAMEO" "$@" >stdout.txt 2>stderr.txt </dev/null
    echo "$? cameo $*"
    [ -s stderr.txt ] || [ -s stdout.txt ] || echo "  and not a word"
}

cp "$TESTS/models/training_mlp_adam_initialized.onnx" trained.onnx
echo 'this is no model' >garbage.onnx
head -c 100 trained.onnx >cut.onnx
: >empty.onnx
mkdir folder.onnx folder
ln -s loop.onnx loop.onnx
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] y)
<float[3,2] w = {1, 2, 3, 4, 5, 6}>
{
    y = MatMul(x, w)
}
END
cat >unknown.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "some.where" : 1]>
unknown (float[N,3] x) => (float[N,3] y)
{
    y = some.where.Solve(x)
}
END
cat >data.csv <<'END'
a,b,c,d,e
1,2,3,4,5
2,3,4,5,6
END
losses='--loss mse --optimizer sgd'

# every COMMAND...: the command with each operand that no command can work with
every() {
    for model in none.onnx none/none.onnx folder.onnx loop.onnx garbage.onnx cut.onnx empty.onnx; do
        try "$@" "$model"
    done
    try "$@"
    try "$@" net.onnxtxt net.onnxtxt
    try "$@" net.onnxtxt --frobnicate
    try "$@" --help
}

echo '-- operands'
every info
every print
every copy -o out.onnx
every run --random-inputs
every gradcheck
every optimize -o out.onnx
every grad --of y --wrt w -o out.onnx
every step -o out.onnx
every strip -o out.onnx
# shellcheck disable=SC2086
every prepare $losses -o out.onnx
# shellcheck disable=SC2086
every train --data data.csv --columns 'x=a,b,c t=d,e' --target t $losses -o out.onnx
echo '-- some take several, or something else'
for operand in none.onnx folder.onnx loop.onnx garbage.onnx empty.onnx; do
    try check "$operand"
    try plot "$operand"
    try test "$operand"
done
try check
try plot
try test
try test folder
try demo extra

echo '-- outputs'
for where in none/out.onnx folder.onnx /dev/full ''; do
    try copy net.onnxtxt -o "$where"
    try optimize net.onnxtxt -o "$where"
    try grad net.onnxtxt --of y --wrt w -o "$where"
    try step trained.onnx -o "$where"
    try strip trained.onnx -o "$where"
    # shellcheck disable=SC2086
    try prepare net.onnxtxt $losses -o "$where"
    # shellcheck disable=SC2086
    try train net.onnxtxt --data data.csv --columns 'x=a,b,c t=d,e' --target t $losses -o "$where"
done
try copy net.onnxtxt
try copy net.onnxtxt -o
try print net.onnxtxt -o /dev/full
try run net.onnxtxt --random-inputs --profile /dev/full
try run net.onnxtxt --random-inputs --profile none/profile.json
try run net.onnxtxt --random-inputs --output net.onnxtxt
try run net.onnxtxt --random-inputs --output none/out
echo '-- standard output that is full'
for command in 'info net.onnxtxt' 'print net.onnxtxt' 'check net.onnxtxt' 'run net.onnxtxt --random-inputs' \
    'gradcheck net.onnxtxt' 'optimize --list' 'help' 'help run' '--version' '--generate man'; do
    # shellcheck disable=SC2086
    "$CAMEO" $command >/dev/full 2>stderr.txt
    echo "$? cameo $command"
done

echo '-- inputs and options'
try run net.onnxtxt
try run net.onnxtxt --input x=none.npy
try run net.onnxtxt --input x=folder.onnx
try run net.onnxtxt --input x=garbage.onnx
try run net.onnxtxt --input q=data.csv
try run net.onnxtxt --random-inputs --threads many
try run net.onnxtxt --random-inputs --backend none
try run net.onnxtxt --random-inputs --without none
try run net.onnxtxt --random-inputs --memory 1
try run unknown.onnxtxt --random-inputs
try gradcheck unknown.onnxtxt
try gradcheck net.onnxtxt --tolerance little
try optimize unknown.onnxtxt -o out.onnx
# shellcheck disable=SC2086
try prepare unknown.onnxtxt $losses -o out.onnx
try prepare net.onnxtxt --loss none --optimizer sgd -o out.onnx
try prepare net.onnxtxt --loss mse --optimizer none -o out.onnx
try prepare net.onnxtxt --loss mse -o out.onnx
# shellcheck disable=SC2086
try prepare net.onnxtxt $losses --freeze '(' -o out.onnx
# shellcheck disable=SC2086
try prepare net.onnxtxt $losses --lr fast -o out.onnx
try grad net.onnxtxt --of none --wrt w -o out.onnx
try grad net.onnxtxt --of y --wrt none -o out.onnx
try step net.onnxtxt -o out.onnx
# train OPTION...: with a model and a loss
train() {
    # shellcheck disable=SC2086
    try train net.onnxtxt $losses -o out.onnx "$@"
}
train
train --data none.csv
train --data folder
train --data garbage.onnx
train --data data.csv --columns 'x=a,b,q t=d,e' --target t
train --data data.csv --columns 'x=a,b,c t=d,e' --target q
train --data data.csv --columns 'x=a,b,c t=d,e' --target t --validate none.csv
train --data data.csv --columns 'x=a,b,c t=d,e' --target t --epochs none
train --data data.csv --columns 'x=a,b,c t=d,e' --target t --resume
train --data data.csv --columns 'x=a,b,c t=d,e' --target t --log /dev/full
train --data data.csv --columns 'x=a,b,c t=d,e' --target t --log none/log.jsonl
train --data data.csv --columns 'x=a,b,c t=d,e' --target t --checkpoint none/folder

echo '-- the program itself'
try
try help
try help run
try help none
try help run train
try none
try --none
try --version
try --version more
try --generate none

echo '-- stopped'
cat >long.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
long (float[1] x) => (float[1] y) <int64 n = {1000000000000}, bool go = {1}>
{
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t) {
        d = Identity(c) t = Neg(s) }>
}
END
# A signal to a program that has not begun to listen ends it as the shell would say: 128 + 2.
cat >stop.py <<'END'
import os, signal, subprocess, sys, time
program = subprocess.Popen([os.environ["CAMEO"], *sys.argv[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
time.sleep(0.5)
program.send_signal(signal.SIGINT)
code = program.wait(60)
print(128 - code if code < 0 else code, "cameo", *sys.argv[1:])
END
python3 stop.py run long.onnxtxt --random-inputs
# shellcheck disable=SC2086
python3 stop.py train net.onnxtxt $losses -o out.onnx --data data.csv --columns 'x=a,b,c t=d,e' --target t --steps 1000000000
