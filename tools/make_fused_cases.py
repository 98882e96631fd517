#!/usr/bin/env python3
# Writes networks as ONNX Runtime's optimizer fuses them, with the outputs of the plain ones.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_fused_cases.py FOLDER

Writes FOLDER/NAME/{model.onnx,test_data_set_0/*.pb}: networks spelled out in standard operators, optimized by ONNX Runtime at its
extended level. The expected outputs are those of the networks as they were before. Fails when a fused operator that is meant to be
there is not.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, WORDS, PLACES, INNER = 16, 4, 20, 12, 32


class Network:
    """Nodes and weights as they are added; every method that adds a node gives its output."""

    def __init__(self, opset):
        self.opset, self.nodes, self.weights, self.inputs = opset, [], [], []
        self.rng = np.random.default_rng(3)

    def input(self, name, kind, shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value, kind=np.float32):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def weight(self, *shape, mean=0.0):
        return self.constant(self.rng.normal(mean, 0.3, shape))

    def node(self, op, *inputs, **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def model(self, output):
        self.nodes.append(helper.make_node("Identity", [output], ["y"]))
        graph = helper.make_graph(
            self.nodes, "network", self.inputs,
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=7)

    def linear(self, x, inner, outer):
        return self.node("Add", self.node("MatMul", x, self.weight(inner, outer)),
                         self.weight(outer))

    def mean(self, x):
        return self.node("ReduceMean", x, axes=[-1])

    def layer_norm(self, x):
        off = self.node("Sub", x, self.mean(x))
        variance = self.mean(self.node("Pow", off, self.constant(2)))
        root = self.node("Sqrt", self.node("Add", variance, self.constant(1e-5)))
        scaled = self.node("Mul", self.node("Div", off, root), self.weight(HIDDEN, mean=1.0))
        return self.node("Add", scaled, self.weight(HIDDEN))

    def rms_norm(self, x):
        square = self.mean(self.node("Pow", x, self.constant(2)))
        root = self.node("Sqrt", self.node("Add", square, self.constant(1e-5)))
        return self.node("Mul", self.node("Div", x, root), self.weight(HIDDEN, mean=1.0))

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        product = self.node("Mul", x, self.node("Add", erf, self.constant(1)))
        return self.node("Mul", product, self.constant(0.5))

    def heads(self, x, perm):
        apart = self.node("Reshape", self.linear(x, HIDDEN, HIDDEN),
                          self.constant([0, 0, HEADS, HIDDEN // HEADS], np.int64))
        return self.node("Transpose", apart, perm=perm)

    def attention(self, x, mask):
        query, key = self.heads(x, [0, 2, 1, 3]), self.heads(x, [0, 2, 3, 1])
        value = self.heads(x, [0, 2, 1, 3])
        scores = self.node("Div", self.node("MatMul", query, key),
                           self.constant(np.sqrt(HIDDEN // HEADS)))
        weights = self.node("Softmax", self.node("Add", scores, mask), axis=3)
        together = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = self.node("Reshape", together, self.constant([0, 0, HIDDEN], np.int64))
        return self.linear(joined, HIDDEN, HIDDEN)


def encoder():
    """A small BERT as exporters wrote it at opset 11."""
    net = Network(11)
    words, segments, mask = (net.input(name, TensorProto.INT64, ["batch", "length"])
                             for name in ("words", "segments", "mask"))
    unseen = net.node("Unsqueeze", net.node("Unsqueeze", mask, axes=[1]), axes=[2])
    unseen = net.node("Sub", net.constant(1), net.node("Cast", unseen, to=TensorProto.FLOAT))
    unseen = net.node("Mul", unseen, net.constant(-10000))
    x = net.node("Add", net.node("Gather", net.weight(WORDS, HIDDEN), words),
                 net.node("Gather", net.weight(2, HIDDEN), segments))
    x = net.layer_norm(x)
    for _ in range(2):
        x = net.layer_norm(net.node("Add", net.attention(x, unseen), x))
        wide = net.gelu(net.linear(x, HIDDEN, INNER))
        x = net.layer_norm(net.node("Add", net.linear(wide, INNER, HIDDEN), x))
    feeds = {
        "words": net.rng.integers(0, WORDS, (2, 6)),
        "segments": net.rng.integers(0, 2, (2, 6)),
        "mask": np.array([[1] * 6, [1] * 4 + [0] * 2]),
    }
    return net.model(x), feeds, {"Attention", "BiasGelu", "SkipLayerNormalization"}


def convolutions():
    """Convolutions with each activation that is fused, and a residual."""
    net = Network(13)
    x = net.input("x", TensorProto.FLOAT, [1, 3, 8, 8])

    def conv(x, inner=4):
        return net.node("Conv", x, net.weight(4, inner, 3, 3), net.weight(4), pads=[1, 1, 1, 1])

    y = net.node("Relu", conv(x, 3))
    y = net.node("Relu", net.node("Add", conv(y), y))
    y = net.node("LeakyRelu", conv(y), alpha=0.25)
    y = net.node("Clip", conv(y), net.constant(-0.5), net.constant(0.75))
    y = net.node("Tanh", conv(net.node("Sigmoid", conv(y))))
    flat = net.node("Flatten", y)
    y = net.node("Relu", net.node("Gemm", flat, net.weight(256, 5), net.weight(5)))
    return net.model(y), {"x": net.rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)}, {
        "FusedConv", "FusedGemm"}


def products():
    """Scaled products of transposed operands, gates and norms of language models."""
    net = Network(13)
    x = net.input("x", TensorProto.FLOAT, ["batch", "length", HIDDEN])
    y = net.rms_norm(x)
    gate = net.node("Mul", net.node("Sigmoid", net.node("Mul", y, net.constant(1.702))), y)
    scores = net.node("Mul", net.node("MatMul", gate, net.node("Transpose", y, perm=[0, 2, 1])),
                      net.constant(0.25))
    y = net.node("MatMul", net.node("Softmax", scores, axis=-1), gate)
    y = net.layer_norm(net.node("Mul", net.layer_norm(net.node("Add", y, x)), gate))
    return net.model(y), {"x": net.rng.normal(0, 1, (2, 5, HIDDEN)).astype(np.float32)}, {
        "SimplifiedLayerNormalization", "LayerNormalization", "QuickGelu", "FusedMatMul",
        "SkipLayerNormalization"}


def optimized(model, path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(model.SerializeToString(), options,
                                 providers=["CPUExecutionProvider"])
    return {node.op_type for node in onnx.load(path).graph.node}


def plain_output(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def main():
    root = pathlib.Path(sys.argv[1])
    for network in (encoder, convolutions, products):
        model, feeds, fused = network()
        folder = root / network.__name__
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        missing = fused - optimized(model, folder / "model.onnx")
        if missing:
            print(f"{network.__name__}: ONNX Runtime did not write {', '.join(sorted(missing))}",
                  file=sys.stderr)
            return 1
        for i, (name, value) in enumerate(feeds.items()):
            tensor = numpy_helper.from_array(value, name)
            (data / f"input_{i}.pb").write_bytes(tensor.SerializeToString())
        tensor = numpy_helper.from_array(plain_output(model, feeds), "y")
        (data / "output_0.pb").write_bytes(tensor.SerializeToString())
    return 0


if __name__ == "__main__":
    sys.exit(main())
