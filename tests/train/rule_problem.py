"""A small problem on which losses and optimizers are compared with their references."""
# SPDX-License-Identifier: Apache-2.0
import numpy as np

STEPS, BATCH, ROWS = 24, 8, 24
NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
rules (float[n,5] x) => (float[n,3] y)
<{weights}>
{{
  a = Gemm (x, w1, b1)
  h = Tanh (a)
  s = Gemm (h, w2, b2)
  y = {last} (s)
}}
"""


def weights():
    random = np.random.RandomState(24)
    shapes = {"w1": (5, 4), "b1": (4,), "w2": (4, 3), "b2": (3,)}
    return {name: np.round(random.uniform(-0.9, 0.9, shape), 3).astype(np.float32)
            for name, shape in shapes.items()}


FRAMES = """<ir_version: 8, opset_import: ["" : 17]>
rules (float[n,6,5] x) => (float[n,6,3] y)
<{weights}>
{{
  a = MatMul (x, w1)
  b = Add (a, b1)
  h = Tanh (b)
  s = MatMul (h, w2)
  y = Add (s, b2)
}}
"""


def text(last):
    """The network in ONNX's text form; last: the operator before the output, or "frames": six frames a row."""
    tensors = ", ".join(
        f"float[{','.join(map(str, value.shape))}] {name} = {{{', '.join(repr(float(v)) for v in value.ravel())}}}"
        for name, value in weights().items())
    return (FRAMES if last == "frames" else NETWORK).format(weights=tensors, last=last)


def data(target):
    """Inputs, and targets of a kind: numbers, labels, labels_or_none, distributions, sides, sequences."""
    random = np.random.RandomState(7)
    x = np.round(random.uniform(-1, 1, (ROWS, 5)), 3).astype(np.float32)
    y = np.round(random.uniform(-2, 2, (ROWS, 3)), 3).astype(np.float32)
    if target == "sequences":
        x = np.round(random.uniform(-1, 1, (ROWS, 6, 5)), 3).astype(np.float32)
        y = random.randint(1, 3, (ROWS, 2)).astype(np.int64)
        y[::4, 1] = -1
        y[5] = -1
    if target.startswith("labels"):
        y = random.randint(0, 3, ROWS).astype(np.int64)
    if target == "labels_or_none":
        y[::5] = -100
    if target == "distributions":
        y = np.exp(y) * (np.abs(y) > 0.3)
        y = (y / y.sum(axis=1, keepdims=True)).astype(np.float32)
    if target == "sides":
        y = np.where(y > 0, 1, -1).astype(np.float32)
    return x, y


def validation():
    """Inputs and numbers to measure on after each pass over the data."""
    random = np.random.RandomState(11)
    return (np.round(random.uniform(-1, 1, (BATCH, 5)), 3).astype(np.float32),
            np.round(random.uniform(-2, 2, (BATCH, 3)), 3).astype(np.float32))


def batch(array, step):
    first = step * BATCH % ROWS
    return array[first:first + BATCH]
