# cameo compile where its module, clang and lld are installed; the build leaves this out elsewhere.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1 | sed 's/ [0-9,]* bytes/ N bytes/'
}

# same FILE.so MODEL OPTIONS: do both give the same output for the same inputs?
same() {
    so=$1
    model=$2
    shift 2
    "$CAMEO" run "$so" --random-inputs --seed 1 "$@" >compiled.txt 2>&1
    "$CAMEO" run "$model" --random-inputs --seed 1 "$@" >interpreted.txt 2>&1
    cmp compiled.txt interpreted.txt && echo "$so: same"
}

cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,8] x) => (float[N,8] y)
<float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}>
{
    t = Add(x, w)
    y = Add(t, x)
}
END
cat >fixed.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
fixed (float[16,8] x) => (float[16,8] y)
<float[16,8] v = {
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}>
{
    y = Add(x, v)
}
END
cat >trained.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}>
{ y = Add(x, w) }
training {
  algorithm: step (float[3] t) => (float[3] out, float[3] w_new)
  { d = Add(w, t) w_new = Add(d, d) out = Add(d, t) },
  update_binding: ["w": "w_new"]
}
END

echo '-- a program that is missing'
CAMEO_LLVM_DIR=/nowhere "$CAMEO" compile net.onnxtxt -o none.so

echo '-- targets and processors that are none'
refused() {
    try "$@" | sed 's/; there are .* and others/; there are ... and others/'
    "$CAMEO" "$@" 2>/dev/null
    echo "[$?]"
}
refused compile net.onnxtxt -o none.o --target z80-sinclair
refused compile net.onnxtxt -o none.o --target aarch64-linux-gnu --cpu cortex-a73a
refused compile net.onnxtxt --emit buffers --target riscv64-linux-gnu --cpu haswell
refused compile net.onnxtxt -o none.o --target wasm32 --cpu native
refused compile net.onnxtxt -o none.o --target s390x-linux-gnu
refused compile net.onnxtxt -o none.o --target avr
ls none.o none.h 2>&1 | grep -c 'No such file'

echo '-- what objects of 32 bits call'
"$CAMEO" compile net.onnxtxt -o small.o --target thumbv7em-none-eabi 2>&1 | grep -o 'it calls.*__aeabi_fadd'

echo '-- stopped'
mkdir slow temporary
printf '#!/bin/sh\n: >%s/started\nexec sleep 100\n' "$PWD" >slow/clang
chmod +x slow/clang
cp slow/clang slow/ld.lld
TMPDIR=$PWD/temporary CAMEO_LLVM_DIR=$PWD/slow "$CAMEO" compile net.onnxtxt -o stopped.so 2>said.txt &
process=$!
while [ ! -e started ] && kill -0 $process; do sleep 0.1; done
kill -TERM $process
wait $process
echo "[$?]"
grep -c 'was stopped' said.txt
ls temporary
ls stopped.* 2>&1 | grep -c 'No such file'

echo '-- libraries'
try compile net.onnxtxt -o net.so
same net.so net.onnxtxt --dim N=3
try compile fixed.onnxtxt -o beside.so --weights beside
same beside.so fixed.onnxtxt
echo wrong >beside.weights
try run beside.so --random-inputs
try compile fixed.onnxtxt -o caller.so --weights caller --name weightless
try run caller.so --random-inputs
grep ' at 0:' caller.h
rm beside.weights
try run beside.so --random-inputs
try run net.so --random-inputs --explain
"$CAMEO" bench net.so --runs 1 2>/dev/null | grep -o 'net  *compiled'
try compile net.onnxtxt -o far.so --target riscv64-linux-gnu | head -n 1
try run far.so | sed 's/this machine is .*/this machine is .../'

echo '-- inputs that do not fit'
try run net.so --shape x=2,7

echo '-- checks that fail name the node of the model'
cat >checked.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]>
checked (float[4,3] x, int64[k] i, int64[4] t) => (float[k,3] y, float[k,3] z, float l)
{
    [pick] y = Gather(x, i)
    [called] z = my.own.Pick(x, i)
    l = SoftmaxCrossEntropyLoss(x, t)
}
<domain: "my.own", opset_import: ["" : 17]>
Pick (a, b) => (c)
{
    two = Constant<value = int64 {2}>()
    twice = Mul(b, two)
    [inner] c = Gather(a, twice)
}
END
try compile checked.onnxtxt -o checked.so >/dev/null
cat >numbers.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
numbers () => (int64[1] one, int64[1] three, int64[1] nine, int64[4] classes, int64[4] beyond, float[4,3] x)
{
    one = Constant<value = int64[1] {1}>()
    three = Constant<value = int64[1] {3}>()
    nine = Constant<value = int64[1] {9}>()
    classes = Constant<value = int64[4] {0, 1, 2, 0}>()
    beyond = Constant<value = int64[4] {0, 1, 7, 0}>()
    x = Constant<value = float[4,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>()
}
END
"$CAMEO" run numbers.onnxtxt -o numbers 2>/dev/null
try run checked.so -i x=numbers/x.npy -i i=numbers/nine.npy -i t=numbers/classes.npy
try run checked.so -i x=numbers/x.npy -i i=numbers/three.npy -i t=numbers/classes.npy
try run checked.so -i x=numbers/x.npy -i i=numbers/one.npy -i t=numbers/beyond.npy
try run checked.so -i x=numbers/x.npy -i i=numbers/one.npy -i t=numbers/classes.npy | head -n 1

echo '-- stages'
for stage in buffers llvm assembly; do
    "$CAMEO" compile fixed.onnxtxt --emit $stage | grep -o '@cm_main\|define.*@fixed_run\|^fixed_run:' | head -n 1
done

echo '-- an archive, called from C'
try compile fixed.onnxtxt -o fixed.a
cat >main.c <<'END'
#include "fixed.h"
#include <stdio.h>

int main(void)
{
    static float x[128], y[128];
    static char arena[FIXED_ARENA_BYTES];
    const struct fixed_tensor inputs[] = {{x, 0, sizeof x}};
    struct fixed_tensor outputs[] = {{y, 0, sizeof y}};

    printf("%s\n", fixed_error(fixed_run(inputs, outputs, arena, sizeof arena)));
    printf("%g %g\n", y[0], y[127]);
    outputs[0].size--;
    printf("%s\n", fixed_error(fixed_run(inputs, outputs, arena, sizeof arena)));
    return 0;
}
END
clang-19 -Wall -Wextra -Werror main.c fixed.a -o main && ./main

echo '-- a training step'
try compile trained.onnxtxt -o line.o --name line --train-step
try compile trained.onnxtxt -o step.so --train-step
try run step.so
cat >train.c <<'END'
#include "line.h"
#include <stdio.h>
#include <string.h>

int main(void)
{
    static _Alignas(64) unsigned char state[LINE_STATE_BYTES];
    static char arena[LINE_ARENA_BYTES];
    float t[3] = {10, 10, 10}, out[3], w[3];
    const struct line_tensor inputs[] = {{t, 0, sizeof t}};
    struct line_tensor outputs[] = {{out, 0, sizeof out}};

    line_initialize(state);
    for (int i = 0; i < 2; i++) {
        printf("%s, ", line_error(line_step(state, inputs, outputs, arena, sizeof arena)));
        memcpy(w, state + line_state[0].offset, sizeof w);
        printf("%s is %g %g %g\n", line_state[0].name, w[0], w[1], w[2]);
    }
    printf("%s, ", line_error(line_step(state, inputs, outputs, arena, 1)));
    memcpy(w, state + line_state[0].offset, sizeof w);
    printf("%s is %g\n", line_state[0].name, w[0]);
    return 0;
}
END
clang-19 -Wall -Wextra -Werror train.c line.o -o train && ./train

echo '-- test cases'
# make_case NAME TYPE EXPRESSION: its output is what the interpreter gives.
make_case() {
    mkdir -p "cases/$1/test_data_set_0"
    cat >case.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 17]>
g ($2[2,3] x) => ($2[2,3] y)
{
    y = $3
}
END
    "$CAMEO" copy case.onnxtxt -o "cases/$1/model.onnx" 2>/dev/null
    cp "$4" "cases/$1/test_data_set_0/input_0.pb"
    cp "$5" "cases/$1/test_data_set_0/output_0.pb"
}
cat >pb.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] same, float[2,3] twice, string[2,3] words)
{
    same = Identity(x)
    twice = Add(x, x)
    words = Cast<to = 8>(x)
}
END
"$CAMEO" run pb.onnxtxt -i "$TESTS/models/arrays/f4.npy" -o pb --format pb 2>/dev/null
make_case right float 'Add(x, x)' pb/same.pb pb/twice.pb
make_case wrong float 'Add(x, x)' pb/same.pb pb/same.pb
make_case words string 'Identity(x)' pb/words.pb pb/words.pb
"$CAMEO" test cases --backend compiled
echo "[$?]"
try test cases --backend compiled --core
echo '-- code is for inference'
cat >modes.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y)
<float ratio = {0.5}, bool mode = {1}>
{
    [drop] y = Dropout(x, ratio, mode)
}
END
"$CAMEO" compile modes.onnxtxt -o modes.so 2>&1 | grep training
"$CAMEO" run modes.so -i x="$TESTS/models/arrays/f4.npy" | tee whole.txt
"$CAMEO" compile modes.onnxtxt -o masked.so --as-is 2>&1 | grep training
"$CAMEO" run masked.so -i x="$TESTS/models/arrays/f4.npy" >masked.txt
cmp -s whole.txt masked.txt || echo 'a mask is drawn as is'

echo '-- all reasons as JSON'
cat >plain.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 17, "my.own" : 1]>
plain (float[2] x) => (float[2] y, float[2] z) { y = my.own.Thing(x) z = my.own.Other(x) }
END
"$CAMEO" compile plain.onnxtxt -o refused.so --json >out.json 2>/dev/null
echo "[$?]"
python3 - <<'END'
import json
told = json.load(open("out.json"))
print(told["violations"], told["warnings"], told["cut"])
for row in told["findings"]:
    print(" ", row["severity"], row["rule"], "|", row["place"], "|", row["reason"])
END
ls refused.so 2>&1 | grep -c 'No such file'
