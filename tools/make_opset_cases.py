#!/usr/bin/env python3
# Writes one network as it is exported at different opsets, all with the same expected output.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_opset_cases.py FOLDER

Writes FOLDER/opset_N/{model.onnx,test_data_set_0/*.pb} for several opsets. The network uses operators whose form changed on the way: what were attributes became
inputs, Upsample became Resize, Softmax changed its meaning. The expected output is ONNX Runtime's for the middle one, and every other must agree with it.
"""

import pathlib
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSETS = (9, 11, 13, 17, 21)


def network(opset):
    rng = np.random.default_rng(11)
    nodes, weights = [], []

    def weight(name, *shape):
        weights.append(numpy_helper.from_array(rng.normal(0, 0.4, shape).astype(np.float32), name))
        return name

    def ints(name, values):
        weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def floats(name, values):
        weights.append(numpy_helper.from_array(np.array(values, np.float32), name))
        return name

    def node(op, inputs, outputs, **attributes):
        nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    # The weights come first, in one order, so that every opset has the same numbers.
    for name, shape in (("conv_w", (6, 3, 3, 3)), ("conv_b", (6,)), ("bn_s", (6,)), ("bn_b", (6,)),
                        ("bn_m", (6,)), ("fc_w", (24, 5)), ("fc_b", (5,))):
        weight(name, *shape)
    weights.append(numpy_helper.from_array(np.full(6, 1.5, np.float32), "bn_v"))

    node("Conv", ["x", "conv_w", "conv_b"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    node("BatchNormalization", ["c", "bn_s", "bn_b", "bn_m", "bn_v"], ["b"], epsilon=1e-3)
    if opset < 11:
        node("Clip", ["b"], ["r"], min=0.0, max=6.0)
        node("Pad", ["r"], ["p"], pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="constant", value=0.25)
    else:
        node("Clip", ["b", floats("lo", 0.0), floats("hi", 6.0)], ["r"])
        node("Pad", ["r", ints("pads", [0, 0, 1, 1, 0, 0, 1, 1]), floats("pad_value", 0.25)], ["p"])
    node("MaxPool", ["p"], ["m"], kernel_shape=[2, 2], strides=[2, 2])
    if opset < 10:
        node("Slice", ["m"], ["s"], starts=[0, 1], ends=[4, 5], axes=[2, 3])
        node("Upsample", ["s", floats("scales", [1, 1, 2, 2])], ["u"], mode="nearest")
    else:
        node("Slice", ["m", ints("starts", [0, 1]), ints("ends", [4, 5]), ints("axes", [2, 3])], ["s"])
        roi = "" if opset >= 13 else floats("roi", [])  # required at first
        node("Resize", ["s", roi, floats("scales", [1, 1, 2, 2])], ["u"], mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    node("AveragePool", ["u"], ["a"], kernel_shape=[4, 4], strides=[4, 4])
    node("Dropout", ["a"], ["d"])
    if opset < 13:
        node("Unsqueeze", ["d"], ["q"], axes=[0])
        node("ReduceSum", ["q"], ["z"], axes=[0], keepdims=0)
        node("Split", ["z"], ["h1", "h2"], axis=1, split=[2, 4])
    else:
        node("Unsqueeze", ["d", ints("zero", [0])], ["q"])
        node("ReduceSum", ["q", "zero"], ["z"], keepdims=0)
        node("Split", ["z", ints("parts", [2, 4])], ["h1", "h2"], axis=1)
    node("Concat", ["h2", "h1"], ["h"], axis=1)
    node("Flatten", ["h"], ["f"])
    node("Gemm", ["f", "fc_w", "fc_b"], ["g"])
    node("Softmax", ["g"], ["y"], axis=1)
    graph = helper.make_graph(
        nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=4 if opset < 11 else 8)


def main():
    folder = pathlib.Path(sys.argv[1])
    x = np.random.default_rng(5).normal(0, 1, (2, 3, 8, 8)).astype(np.float32)
    judge = onnxruntime.InferenceSession(network(13).SerializeToString(),
                                         providers=["CPUExecutionProvider"])
    (y,) = judge.run(None, {"x": x})
    for opset in OPSETS:
        data = folder / f"opset_{opset}" / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        (data.parent / "model.onnx").write_bytes(network(opset).SerializeToString())
        (data / "input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
        (data / "output_0.pb").write_bytes(numpy_helper.from_array(y, "y").SerializeToString())


if __name__ == "__main__":
    main()
