#!/bin/sh
# Trains LeNet on an emulated machine from a bare object: examples/board/run.sh MODEL [FOLDER [PROCESSOR]]
# SPDX-License-Identifier: Apache-2.0
#
# MODEL is LeNet for pictures of 28 x 28, such as tests/models/train/lenet/model.onnx. PROCESSOR is
# aarch64 or riscv64. CAMEO is the command (cameo), and clang-19, lld-19 and qemu-PROCESSOR must be
# there.
set -eu
cameo=${CAMEO:-cameo}
here=$(cd "$(dirname "$0")" && pwd)
model=$(realpath "$1")
processor=${3:-aarch64}
mkdir -p "${2:-board}"
cd "${2:-board}"

"$cameo" set-shape "$model" x=16,1,28,28 -o batch.onnx >/dev/null
"$cameo" prepare batch.onnx --loss cross-entropy --optimizer momentum --lr 0.02 --momentum 0.9 \
    -o trainable.onnx >/dev/null
"$cameo" compile trainable.onnx -o lenet.o --name lenet --train-step --target "$processor-linux-gnu"
clang-19 --target="$processor-linux-gnu" -O2 -ffreestanding -nostdlib -static -fuse-ld=lld -I. \
    "$here/train.c" lenet.o -o train
echo "the whole program: $(wc -c <train) bytes"
"qemu-$processor" ./train
