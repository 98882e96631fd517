# The example that trains LeNet on emulated machines; the build leaves this out where a part of it is missing.
# SPDX-License-Identifier: Apache-2.0
for processor in aarch64 riscv64; do
    CAMEO=$CAMEO sh "$TESTS/../examples/board/run.sh" "$TESTS/models/train/lenet/model.onnx" $processor $processor >told.txt 2>&1
    echo "$processor [$?]"
    grep 'wrote lenet' told.txt
    grep -c '^loss' told.txt
done
