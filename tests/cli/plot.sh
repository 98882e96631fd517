# cameo plot: curves of training logs, in the terminal and as SVG.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

awk 'BEGIN {
    for (s = 1; s <= 200; s++) {
        printf "{\"step\": %d, \"epoch\": %d, \"loss\": %.6f, \"lr\": 0.1, \"norm\": 2}\n",
               s, (s - 1) / 50, 3 / (1 + s / 20)
        if (s % 50 == 0)
            printf "{\"step\": %d, \"validation_loss\": %.6f, \"validation_accuracy\": %.4f}\n",
                   s, 3.2 / (1 + s / 20), s / 250
    }
}' >run.jsonl
awk 'BEGIN { for (s = 1; s <= 40; s++) printf "{\"step\":%d,\"loss\":%d}\n", s, 40 - s }' >other.jsonl
printf '{"step": 41, "lo' >>other.jsonl

try plot run.jsonl
try plot other.jsonl
echo '-- as a picture'
try plot run.jsonl -o curve.svg
grep -c '<svg xmlns' curve.svg
grep -c 'class="panel"' curve.svg
grep -c '<circle' curve.svg
grep -o '<tspan[^>]*>[^<]*' curve.svg
try plot run.jsonl other.jsonl --only loss --log-scale --title 'a < b' -o both.svg
grep -o 'a &#60; b\|[a-z]*\.jsonl:[a-z]*' both.svg
try plot run.jsonl --only norm,epoch --smooth 1 -o norm.svg
grep -c 'stroke-opacity="0.22"' curve.svg norm.svg
echo '-- a stopped run may have no number, or one'
printf '{"step": 1, "loss": null, "note": {"a": ["}", 1]}}\n{"step": 2, "loss": 0.5}\n' >one.jsonl
try plot one.jsonl -o one.svg
grep -c '<circle' one.svg
echo '-- wrong uses'
try plot none.jsonl
try plot run.jsonl --only nrom
try plot run.jsonl --smooth much
try plot run.jsonl -o run.jsonl
try plot run.jsonl -o none/curve.svg
printf '{"step": 1, "loss": 2}\n{"step": 2 "loss": 3}\n' >broken.jsonl
try plot broken.jsonl
: >empty.jsonl
try plot empty.jsonl
printf '{"step": 1, "accuracy_of": "x", "norm": 3}\n' >lossless.jsonl
try plot lossless.jsonl
printf '{"step": 1, "loss": 2}\0{}\n' >zero.jsonl
try plot zero.jsonl
