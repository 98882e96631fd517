# The example that trains LeNet on an emulated machine; the build leaves this out where a part of it is missing.
# SPDX-License-Identifier: Apache-2.0
CAMEO=$CAMEO sh "$TESTS/../examples/board/run.sh" "$TESTS/models/train/lenet/model.onnx" board >told.txt 2>&1
echo "[$?]"
grep 'wrote lenet' told.txt
grep -c '^loss' told.txt
