# The programs of examples/, as their first lines say to use them.
# SPDX-License-Identifier: Apache-2.0
examples=$(dirname "$CAMEO")/examples
try() {
    echo "\$ $*"
    program=$1
    shift
    "$examples/$program" "$@"
    echo "[$?]"
}

cp "$TESTS/models/linear.onnx" "$TESTS/models/functions.onnx" "$TESTS/models/external.onnx" \
    "$TESTS/models/training_linreg_sgd.onnx" "$TESTS/models/types.onnx" .
try describe
try describe linear.onnx
try describe functions.onnx
try describe external.onnx
try describe training_linreg_sgd.onnx
try describe none.onnx
try edit_initializer linear.onnx W out.onnx
try edit_initializer linear.onnx B out.onnx
try edit_initializer linear.onnx C out.onnx
try edit_initializer out.onnx W out.onnx
try from_memory
try check linear.onnx
try check types.onnx
try run linear.onnx
try run
try custom_operator
try custom_gradient
cp "$TESTS/models/training/linreg_sgd.npz" .
try evaluate
try evaluate training_linreg_sgd.onnx linreg_sgd.npz
try evaluate training_linreg_sgd.onnx linreg_sgd.npz mae,accuracy
try fine_tune
try fine_tune training_linreg_sgd.onnx linreg_sgd.npz tuned.onnx
try average_gradients
try average_gradients training_linreg_sgd.onnx linreg_sgd.npz tuned.onnx 5
try input_gradient
try walk_graph
try walk_graph functions.onnx none
try walk_graph linear.onnx W
try share_memory
try training_info
