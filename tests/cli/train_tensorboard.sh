# cameo train --tensorboard: event files beside the same training. python/tests reads such with TensorBoard's own reader.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>stderr.txt
    echo "[$?]"
    cat stderr.txt
}

# the tags of a file, each as often as it has points; check sums and lengths are bytes that may look like anything
tags() {
    for file in "$1"/events.out.tfevents.*.cameo; do
        strings -n 4 "$file" | grep -oE '(train|epoch|val)/[a-z0-9_]+|brain.Event:2|^. setting .*' | sort | uniq -c
    done
}

s=softmax_momentum_standard
cp "$TESTS/models/training_$s.onnx" $s.onnx
cp "$TESTS/models/training/$s.npz" .
common="--threads 1 --backend reference --batch-size 16 --validate $s.npz"

# the same bytes with and without, and points every second step and at the end
try train $s.onnx -d $s.npz $common --epochs 3 -o plain.onnx
try train $s.onnx -d $s.npz $common --epochs 3 -o watched.onnx --tensorboard runs/a --tensorboard-every 2
cmp plain.onnx watched.onnx && echo "the same"
tags runs/a

# a run that goes on has a second file, behind the first
try train $s.onnx -d $s.npz $common --epochs 1 -o part.onnx --checkpoint ck --tensorboard runs/b
try train $s.onnx -d $s.npz $common --epochs 3 -o part.onnx --checkpoint ck --resume --tensorboard runs/b
cmp plain.onnx part.onnx && echo "the same"
tags runs/b

# refused before the first step
echo >file
try train $s.onnx -d $s.npz $common --epochs 1 -o never.onnx --tensorboard file/x
try train $s.onnx -d $s.npz $common --epochs 1 -o never.onnx --tensorboard-every 3
ls never.onnx 2>/dev/null
