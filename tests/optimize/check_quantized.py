#!/usr/bin/env python3
# Judges what `cameo optimize` makes of quantized models: weights stay quantized, and so do ONNX Runtime's results.
# SPDX-License-Identifier: Apache-2.0
"""usage: check_quantized.py

Makes quantized models: with onnxruntime.quantization, static and dynamic, by tensor and by channel; by hand what
others write: 4-bit weights in blocks, MatMulNBits, weights dequantized by Cast, Sub and Mul. CAMEO, the command,
optimizes each with and without --portable. The file must not grow by more than a twentieth and 2 KiB, and ONNX
Runtime, with its own optimizations and without, must give for it what it gives for the original, up to 1e-5 of the
largest value. The last line is `N passed, N failed`.
"""

import logging
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

CAMEO = os.environ.get("CAMEO", "build/cameo")
SHAPE = (2, 3, 8, 8)


def random(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def save(path, nodes, values, inputs, outputs, opset=17, microsoft=False):
    initializers = [v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(v, n) for n, v in values.items()]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs], initializers)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid("com.microsoft", 1)] * microsoft
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10 if opset > 20 else 8), path)


def make_network(path):
    node = helper.make_node
    save(path, [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["a", "s", "o", "m", "v"], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("Conv", ["c", "w2", "b2"], ["d"], pads=[1, 1, 1, 1]),
        node("Add", ["d", "c"], ["e"]),
        node("Relu", ["e"], ["f"]),
        node("GlobalAveragePool", ["f"], ["g"]),
        node("Flatten", ["g"], ["h"]),
        node("MatMul", ["h", "w3"], ["i"]),
        node("Add", ["i", "b3"], ["j"]),
        node("Gemm", ["j", "w4", "b4"], ["y"], transB=1),
    ], {
        "w1": random(1, 32, 3, 3, 3, scale=0.2), "b1": random(2, 32), "s": random(3, 32), "o": random(4, 32),
        "m": random(5, 32), "v": np.abs(random(6, 32)) + 0.5, "w2": random(7, 32, 32, 3, 3, scale=0.05),
        "b2": random(8, 32), "w3": random(9, 32, 256, scale=0.1), "b3": random(10, 256),
        "w4": random(11, 10, 256, scale=0.1), "b4": random(12, 10),
    }, [("x", ["N", *SHAPE[1:]])], [("y", ["N", 10])])


class Reader(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": random(100 + i, *SHAPE)} for i in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


def make_by_runtime(folder):
    network = os.path.join(folder, "network.onnx")
    make_network(network)
    for per_channel in (False, True):
        for kind in (QuantType.QInt8, QuantType.QUInt8):
            path = os.path.join(folder, f"static_{'channel' if per_channel else 'tensor'}_{kind}.onnx")
            quantize_static(network, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=per_channel,
                            weight_type=kind, activation_type=QuantType.QUInt8)
            yield path
        path = os.path.join(folder, f"dynamic_{per_channel}.onnx")
        quantize_dynamic(network, path, per_channel=per_channel, reduce_range=True)
        yield path
    path = os.path.join(folder, "operators.onnx")
    quantize_static(network, path, Reader(), quant_format=QuantFormat.QOperator)
    yield path


def make_by_hand(folder):
    node = helper.make_node
    random_codes = np.random.default_rng(20)
    ends = {"inputs": [("x", ["N", 128])], "outputs": [("y", ["N", 256])]}
    codes = random_codes.integers(-128, 128, (128, 256)).astype(np.int8)

    path = os.path.join(folder, "blocks_of_4_bits.onnx")  # also in a Transpose's way
    nibbles = helper.make_tensor("w", TensorProto.INT4, (256, 128), random_codes.integers(0, 256, 256 * 64, np.uint8).tobytes(),
                                 raw=True)
    save(path, [node("DequantizeLinear", ["w", "s"], ["f"], axis=1, block_size=32),
                node("Transpose", ["f"], ["t"], perm=[1, 0]), node("MatMul", ["x", "t"], ["y"])],
         {"w": nibbles, "s": np.abs(random(21, 256, 4, scale=0.1))}, opset=21, **ends)
    yield path

    path = os.path.join(folder, "nbits.onnx")
    save(path, [node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=128, N=256, bits=4, block_size=32)],
         {"w": random_codes.integers(0, 256, (256, 4, 16), np.uint8), "s": np.abs(random(22, 1024, scale=0.1))},
         microsoft=True, **ends)
    yield path

    path = os.path.join(folder, "cast.onnx")
    save(path, [node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), node("Sub", ["f", "z"], ["g"]),
                node("Mul", ["g", "s"], ["h"]), node("MatMul", ["x", "h"], ["y"])],
         {"w": codes, "z": np.float32([3]), "s": np.abs(random(23, 256, scale=0.1))}, **ends)
    yield path

    path = os.path.join(folder, "scaled_after.onnx")  # scales behind the product, which passes like to move into weights
    save(path, [node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=1), node("MatMul", ["x", "f"], ["a"]),
                node("Mul", ["a", "k"], ["b"]), node("Add", ["b", "k"], ["y"])],
         {"w": codes, "s": np.abs(random(24, 256, scale=0.1)), "z": np.zeros(256, np.int8), "k": random(25, 256)}, **ends)
    yield path


def run(path, level):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    info = session.get_inputs()[0]
    return session.run(None, {info.name: random(200, *(SHAPE if len(info.shape) == 4 else (2, 128)))})[0]


def judge(path, flags):
    """What is wrong with the optimized model, or None."""
    made = path + ".optimized.onnx"
    done = subprocess.run([CAMEO, "optimize", path, "-o", made, *flags], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    before, after = os.path.getsize(path), os.path.getsize(made)
    if after > before * 1.05 + 2048:
        return f"grew from {before} to {after} bytes"
    for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
        wanted, got = run(path, level), run(made, level)
        if not np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max():
            return f"results differ by {np.abs(got - wanted).max() / np.abs(wanted).max():.2g} of the largest, {level}"
    return None


def main():
    logging.disable(logging.WARNING)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in [*make_by_runtime(folder), *make_by_hand(folder)]:
            for flags in ([], ["--portable"]):
                found = judge(path, flags)
                passed, failed = passed + (not found), failed + bool(found)
                if found:
                    print(f"{os.path.basename(path)} {' '.join(flags)}: {found}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
