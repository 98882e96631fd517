# Checkpoints of JAX and of ONNX Runtime Training, made by those: listed, and their bytes summed.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*" | sed "s:$TESTS:TESTS:g"
    "$CAMEO" "$@" 2>&1 | sed "s:$TESTS:TESTS:g"
}

for name in jax-orbax-sharded-mlp-adamw jax-msgpack-cnn-sgd ort-mlp-adamw; do
    try checkpoint info "$TESTS/checkpoints/$name"
    "$CAMEO" checkpoint info "$TESTS/checkpoints/$name" --dump "$name" >dump.txt 2>&1
    cat "$name"/*.npy | cksum
done

# What is damaged is said.
folder=$TESTS/checkpoints/jax-orbax-sharded-mlp-adamw/state
cp -r "$folder" damaged
chmod -R u+w damaged
printf 'x' | dd of=damaged/manifest.ocdbt bs=1 seek=40 conv=notrunc 2>dd.txt
try checkpoint info damaged
cp "$folder/manifest.ocdbt" damaged/
for node in damaged/d/*; do
    head -c 1000 "$node" >short
    cp short "$node"
done
try checkpoint info damaged | sed 's:d/[0-9a-f]*:d/NODE:'
rm damaged/d/*
try checkpoint info damaged | sed 's:d/[0-9a-f]*:d/NODE:'
head -c 500 "$TESTS/checkpoints/ort-mlp-adamw/checkpoint" >cut
try checkpoint info cut
head -c 500 "$TESTS"/checkpoints/jax-msgpack-cnn-sgd/*.msgpack >cut.msgpack
try checkpoint info cut.msgpack
CAMEO_ZSTD=off try checkpoint info "$folder"
