#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tensor_forms.onnx: the same values of every element type in its typed field and in raw_data, as ONNX's own helpers
store them. usage: make_tensor_forms.py (needs the onnx package)"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Five elements: an odd number for every packed type. All types hold the first row exactly.
SMALL = [0, 1, 1, 0, 1]
VALUES = {
    "INT2": [-2, 1, -1, 0, 1],
    "UINT2": [3, 1, 2, 0, 3],
    "INT4": [-8, 7, -1, 0, 5],
    "UINT4": [15, 7, 1, 0, 9],
    "FLOAT4E2M1": [6, -0.5, 1.5, 0, -6],
    "FLOAT6E2M3": [7.5, -0.125, 1.5, 0, -6],
    "FLOAT6E3M2": [28, -0.0625, 1.5, 0, -6],
    "FLOAT8E8M0": [1, 2, 0.5, 2.0**-100, 2.0**127],
    "BOOL": SMALL,
}
SIGNED = [-100, 100, -1, 0, 27]
UNSIGNED = [200, 100, 1, 0, 27]
FLOATS = [1.5, -0.25, 1024, 0, -3]


def values(name):
    if name in VALUES:
        return VALUES[name]
    if name.startswith("COMPLEX"):
        return [1 + 2j, -0.5j, 3, 0, -1 - 1j]
    if name.startswith("UINT"):
        return UNSIGNED
    if name.startswith("INT"):
        return SIGNED
    return [16, -0.25, 1.5, 0, -3] if name.startswith("FLOAT8") else FLOATS


def main():
    tensors = []
    for name, code in TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            continue
        array = np.array(values(name)).astype(helper.tensor_dtype_to_np_dtype(code))
        raw = numpy_helper.from_array(array, name.lower() + "_raw")
        typed = helper.make_tensor(name.lower() + "_typed", code, [5], array)
        assert raw.data_type == typed.data_type == code
        assert numpy_helper.to_array(raw).tobytes() == numpy_helper.to_array(typed).tobytes()
        assert len(raw.raw_data) > 0 and len(typed.raw_data) == 0
        tensors += [raw, typed]
    graph = helper.make_graph([], "forms", [], [], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensor_forms.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
