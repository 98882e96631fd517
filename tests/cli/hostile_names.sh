# Names can hold anything: terminals see no control characters, JSON stays JSON.
# SPDX-License-Identifier: Apache-2.0
printf '\010\010\022\006\033[31m\377\032\005a"\\\n\303\072\006\022\004\302\233\t\177' >names.onnx
"$CAMEO" info names.onnx | od -An -c | tr -s ' ' | head -12
"$CAMEO" info --json names.onnx | grep -E '"(producer|graph)'
"$CAMEO" info --json names.onnx | python3 -m json.tool >parsed.txt && echo 'valid JSON'

# A name goes to standard error in pieces, not in a write for each character.
long=$(printf '%01000d' 0)
if command -v strace >/dev/null; then
    strace -f -e trace=write -o writes.txt "$CAMEO" info "$long" 2>/dev/null
    [ ! -s writes.txt ] || [ "$(grep -c '^[0-9]* *write(2' writes.txt)" -lt 20 ] || echo "$(wc -l <writes.txt) writes"
fi

echo '-- no listing and no message sends a name as it is'
cat >names.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17], producer_name: "p\x1b[2J">
"g\x1b]0;t\x07" (float["N\x1b[1m",3] "x\x1b[31m") => (float[N,3] "y\xc2\x9b", string[2] s) <float[3] "w\x1b[31m" = {1, 2, 3}, string[2] t = {"\x1b[5m", "\x9b\xff\r"}>
{
    ["n\x1b[31m"] "y\xc2\x9b" = Mul ("x\x1b[31m", "w\x1b[31m")
    s = Identity (t)
}
END
sed 's/Mul/"Mul\\x1b[31m"/' names.onnxtxt >unknown.onnxtxt
sed 's/, "w/, "nothing\\x1b[31m/' names.onnxtxt >undefined.onnxtxt
for model in names unknown undefined; do
    for command in info print check run 'run --random-inputs' 'run --random-inputs --explain' 'run --input z=z.npy' \
        'optimize -o out.onnx' 'prepare --loss mse --optimizer sgd --list' 'prepare --loss mse --optimizer sgd -o out.onnx' \
        gradcheck 'copy -o out.onnx'; do
        # shellcheck disable=SC2086
        "$CAMEO" ${command%% *} $model.onnxtxt $(echo "$command " | cut -s -d' ' -f2-) >said.txt 2>&1
        if LC_ALL=C tr -d '\n\t\040-\176' <said.txt | LC_ALL=C grep -q "$(printf '[\001-\037\177\233\377]')"; then
            echo "$command $model: a control character came through"
        fi
    done
done
"$CAMEO" print names.onnxtxt | tee again.onnxtxt
"$CAMEO" print again.onnxtxt | cmp - again.onnxtxt && echo 'reads back'

echo '-- nor what turns the direction of writing, has no width, or draws nothing'
cat >names.onnxtxt <<'TEXT'
<ir_version: 8, opset_import: ["" : 17], producer_name: "p\xe2\x80\xae", metadata_props: ["k\xe2\x80\x8b" : "v\xef\xbb\xbf"]>
"g\xe2\x81\xa6" (float["N\xe2\x80\xae",3] "x\xe2\x80\xae") => (float["N\xe2\x80\xae",3] "y\xf3\xa0\x80\xa1", string[1] s) <float[3] "w\xc2\xad" = {1, 2, 3}, string[1] t = {"\xe2\x80\xaegnp"}>
{
    ["n\xe2\x80\xa8"] "y\xf3\xa0\x80\xa1" = Mul ("x\xe2\x80\xae", "w\xc2\xad")
    s = Identity (t)
}
TEXT
sed 's/Mul/"Mul\\xe2\\x80\\xae"/' names.onnxtxt >unknown.onnxtxt
sed 's/, "w/, "nothing\\xe2\\x80\\xae/' names.onnxtxt >undefined.onnxtxt
mkdir data
ran=0
for model in names unknown undefined; do
    for command in info 'info --json' print check 'check --json' 'check --sarif check.sarif' run 'run --random-inputs' \
        'run --random-inputs --explain' 'run --random-inputs --json' 'run --input z=z.npy' 'optimize -o out.onnx' \
        'prepare --loss mse --optimizer sgd --list' 'prepare --loss mse --optimizer sgd -o out.onnx' \
        'train --loss mse --optimizer sgd --data none.npz -o out.onnx' gradcheck 'grad -o out.onnx' 'copy -o out.onnx' infer \
        'infer --json' 'expand -o out.onnx' 'upgrade -o out.onnx' 'downgrade --opset 15 -o out.onnx' 'step -o out.onnx' \
        'strip -o out.onnx' 'extract --outputs nothing -o out.onnx' 'rename --json' 'set-shape -o out.onnx' graph \
        'compile -o out.so' 'compile --emit onnx -o -' 'bench --runs 1' 'evaluate --data none.npz' 'predict --data none.npz -o y.npz' \
        "compare $model.onnxtxt" 'export --to pytorch -o out.pt' "merge $model.onnxtxt -o out.onnx" "import $model.onnxtxt --list"; do
        # shellcheck disable=SC2086
        "$CAMEO" ${command%% *} $model.onnxtxt $(echo "$command " | cut -s -d' ' -f2-) >said.txt 2>&1
        ran=$((ran + 1))
        if LC_ALL=C grep -q "$(printf '\342\200[\213-\217\250-\256]\|\342\201[\240-\257]\|\303\240\|\363\240\|\357\273\277\|\302\255')" said.txt; then
            echo "$command $model: a character that hides came through"
        fi
    done
done
echo "$ran outputs read"
"$CAMEO" info names.onnxtxt | head -n 3
"$CAMEO" info --json names.onnxtxt | grep -E '"(producer|graph)'
