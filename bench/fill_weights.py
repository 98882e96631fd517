#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies of models whose weights are made in the graph (ONNX's light models), with weights in the file.

usage: fill_weights.py OUT-FOLDER MODEL...
MODEL is a file, or a folder that holds model.onnx. Weights are small random numbers, the same in
every copy; those that only shape a result are left alone.
"""

import os
import sys

import numpy
import onnx
from onnx import numpy_helper


def fill(model):
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    random = numpy.random.default_rng(1)
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in constants:
            kept.append(node)
            continue
        shape = [int(size) for size in numpy_helper.to_array(constants[node.input[0]])]
        # Positive, as variances must be; small, so that deep sums stay finite.
        weights = random.random(shape, dtype=numpy.float32) * numpy.float32(0.04) + 0.001
        graph.initializer.append(numpy_helper.from_array(weights.astype(numpy.float32),
                                                         node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    used = {name for node in kept for name in node.input}
    for values in (graph.initializer, graph.input):
        left = [value for value in values if value.name in used]
        del values[:]
        values.extend(left)
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    for path in sys.argv[2:]:
        name = os.path.basename(os.path.normpath(path)).removeprefix("light_")
        if os.path.isdir(path):
            path = os.path.join(path, "model.onnx")
        model = onnx.load(path)
        fill(model)
        onnx.save(model, os.path.join(sys.argv[1], os.path.splitext(name)[0] + ".onnx"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
