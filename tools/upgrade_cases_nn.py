# More cases for old operator versions: network layers, resizing, quantization, random numbers, control flow.
# SPDX-License-Identifier: Apache-2.0
"""Rows for make_upgrade_cases.py, added to those of upgrade_cases.py."""

import numpy as np
from onnx import TensorProto, helper

from upgrade_cases import ANY, case, consumed, f32, i64, ints, pos

# Old versions that no case shows, and why. Their rows say that nothing changes.
UNSHOWN = {}

# ---- pooling and convolution ----

IMAGE = f32(1, 2, 5, 6)


def windows(x, kernel, stride=1):
    """The spatial windows of x: (.., H', W', kernel, kernel)."""
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))
    return view[:, :, ::stride, ::stride]


case("MaxPool", [IMAGE], attributes={"kernel_shape": [2, 2], "strides": [2, 2]}, hand=lambda x: windows(x, 2, 2).max((-1, -2)))
case("MaxPool", [IMAGE], ANY, "same", attributes={"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"})
case("MaxPool", [IMAGE], (8, 99), "indices", attributes={"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}, outputs=2)
case("MaxPool", [IMAGE], (10, 99), "ceil", attributes={"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1})
case("AveragePool", [IMAGE], attributes={"kernel_shape": [2, 2], "strides": [2, 2]}, hand=lambda x: windows(x, 2, 2).mean((-1, -2)))


def counted_average(x):
    """Padding by one on all sides, which does not count."""
    sums = [windows(np.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1))), 3).sum((-1, -2)) for v in (x, np.ones_like(x))]
    return sums[0] / sums[1]


# the reference evaluator's class for version 1 counts the padding, which its text excludes
case("AveragePool", [IMAGE], (1, 1), "pads", attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, hand=counted_average, judge="hand")
case("AveragePool", [IMAGE], (7, 99), "pads", attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, hand=counted_average)
case("AveragePool", [IMAGE], (7, 99), "counted", attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1})
case("LpPool", [IMAGE], (1, 1), attributes={"kernel_shape": [2, 2], "p": 3.0},
     hand=lambda x: (np.abs(windows(x, 2)) ** 3).sum((-1, -2)) ** (1 / 3))
case("LpPool", [IMAGE], (2, 99), attributes={"kernel_shape": [2, 2], "p": 3})
case("GlobalLpPool", [IMAGE], (1, 1), attributes={"p": 3.0}, hand=lambda x: (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** (1 / 3))
case("GlobalLpPool", [IMAGE], (2, 99), attributes={"p": 3})
for op in ("GlobalAveragePool", "GlobalMaxPool"):
    case(op, [IMAGE])
case("MaxUnpool", [f32(1, 1, 2, 2), i64(0, 3, 9, 14).reshape(1, 1, 2, 2)], attributes={"kernel_shape": [2, 2], "strides": [2, 2]})
case("MaxRoiPool", [pos(1, 2, 6, 6), np.array([[0, 1, 1, 4, 4]], np.float32)], attributes={"pooled_shape": [2, 2]})
case("Conv", [IMAGE, f32(3, 2, 3, 3), f32(3)], attributes={"pads": [1, 0, 0, 1], "strides": [2, 1]})
case("ConvTranspose", [IMAGE, f32(2, 3, 3, 3)], attributes={"strides": [2, 2], "pads": [1, 0, 0, 1]})
case("ConvTranspose", [IMAGE, f32(2, 1, 3, 3)], ANY, "output_shape", attributes={"strides": [2, 2], "output_shape": [10, 12]})
case("DeformConv", [f32(1, 1, 4, 4), f32(1, 1, 2, 2), f32(1, 8, 3, 3, low=-0.5, high=0.5)])

# ---- normalization ----

SAMPLES = [f32(4, 3, 5), pos(3), f32(3), f32(3), pos(3)]


def over_channels(x, *parameters):
    return [p[:, None] for p in parameters]


def normalized(x, scale, bias, mean, variance, epsilon=1e-5):
    scale, bias, mean, variance = over_channels(x, scale, bias, mean, variance)
    return (x - mean) / np.sqrt(variance + np.float32(epsilon)) * scale + bias


def trained(x, scale, bias, mean, variance, momentum=0.8):
    """Y, the running statistics, those of the batch."""
    m, v = x.mean((0, 2)), x.var((0, 2))
    return [
        normalized(x, scale, bias, m, v), mean * momentum + m * (1 - momentum), variance * momentum + v * (1 - momentum), m, v,
    ]


def per_element(x, scale, bias, mean, variance):
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + bias


ELEMENTS = [f32(4, 3, 5), pos(3, 5), f32(3, 5), f32(3, 5), pos(3, 5)]
case("BatchNormalization", SAMPLES, (1, 6), "test", attributes=lambda v: consumed(v, is_test=1), hand=normalized)
case("BatchNormalization", SAMPLES, (1, 6), "train", attributes=lambda v: consumed(v, momentum=0.8), outputs=5, hand=trained)
case("BatchNormalization", SAMPLES, (7, 99), "test", hand=normalized)
case("BatchNormalization", SAMPLES, (7, 9), "train", attributes={"momentum": 0.8}, outputs=5, hand=trained, judge="hand")
case("BatchNormalization", SAMPLES, (14, 99), "train", attributes={"momentum": 0.8, "training_mode": 1}, outputs=3,
     hand=lambda *x: trained(*x)[:3])
case("BatchNormalization", ELEMENTS, (1, 6), "elements", attributes=lambda v: consumed(v, is_test=1, spatial=0), hand=per_element)
case("BatchNormalization", ELEMENTS, (7, 7), "elements", attributes={"spatial": 0}, hand=per_element)
case("InstanceNormalization", [f32(2, 3, 5), pos(3), f32(3)], attributes=lambda v: consumed(v, epsilon=0.01),
     hand=lambda x, s, b: (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + np.float32(0.01)) * s[:, None] + b[:, None])


def group_norm(x, scale, bias):
    g = x.reshape(2, 3, -1)
    y = (g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + np.float32(1e-5))
    return (y * scale[:, None] + bias[:, None]).reshape(x.shape)


case("GroupNormalization", [f32(2, 6, 4), pos(3), f32(3)], attributes={"num_groups": 3}, hand=group_norm)
case("LpNormalization", [f32(3, 4)], attributes={"p": 1, "axis": 0})
case("LRN", [f32(1, 5, 2, 2)], attributes={"size": 3, "alpha": 0.1})
case("MeanVarianceNormalization", [f32(2, 3, 2, 2)])

# ---- dropout and other random operators, where chance has no say ----

case("Dropout", [f32(3, 4)], (1, 6), attributes=lambda v: consumed(v, is_test=1, ratio=0.3), hand=lambda x: x)
case("Dropout", [f32(3, 4)], (7, 10), attributes={"ratio": 0.3}, hand=lambda x: x)
case("Dropout", [f32(3, 4)], (7, 9), "mask", outputs=2, hand=lambda x: [x, np.ones_like(x)], judge="hand")
case("Dropout", [f32(3, 4)], (10, 10), "mask", outputs=2, hand=lambda x: [x, np.ones(x.shape, bool)], judge="hand", types=["float", "bool"])
case("Dropout", [f32(3, 4)], (12, 99), outputs=2, hand=lambda x: [x, np.ones(x.shape, bool)])
case("Dropout", [f32(3, 4)], (1, 6), "train", attributes={"ratio": 0.0}, hand=lambda x: x)
case("RandomUniform", [], attributes={"low": 2.0, "high": 2.0, "shape": [2, 3]}, hand=lambda: np.full((2, 3), 2.0), types=["float"], judge="hand")
case("RandomNormal", [], attributes={"mean": 3.0, "scale": 1e-30, "shape": [2, 3]}, hand=lambda: np.full((2, 3), 3.0), types=["float"], judge="hand")
case("RandomUniformLike", [f32(2, 3)], attributes={"low": 2.0, "high": 2.0}, hand=lambda x: np.full((2, 3), 2.0), judge="hand")
case("RandomNormalLike", [f32(2, 3)], attributes={"mean": 3.0, "scale": 1e-30}, hand=lambda x: np.full((2, 3), 3.0), judge="hand")
case("Bernoulli", [np.array([0, 1, 1, 0], np.float32)], hand=lambda x: x, judge="hand")  # ONNX Runtime runs ONNX's body, which is inverted
case("Multinomial", [np.array([[-1e9, 0, -1e9]], np.float32)], attributes={"sample_size": 4}, hand=lambda x: np.full((1, 4), 1, np.int32), types=["int32"])

# ---- recurrent cells ----

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recur(op, x, w, r):
    """Y and Y_h of a forward cell with no biases; W and R are stacked by gate: i o f c, z r h."""
    n = r.shape[2]
    h = c = np.zeros((x.shape[1], n))
    steps = []
    for xt in x:
        a, b = xt @ w[0].T, h @ r[0].T
        part = lambda m, k: m[:, k * n:(k + 1) * n]  # noqa: E731
        if op == "RNN":
            h = np.tanh(a + b)
        elif op == "GRU":
            z, s = sigmoid(part(a + b, 0)), sigmoid(part(a + b, 1))
            h = (1 - z) * np.tanh(part(a, 2) + (s * h) @ r[0][2 * n:].T) + z * h
        else:
            i, o, f, g = (part(a + b, k) for k in range(4))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return [np.stack(steps)[:, None], h[None]]


for op, gates in GATES.items():
    operands = [f32(4, 2, 3), f32(1, gates * 5, 3, low=-1, high=1), f32(1, gates * 5, 5, low=-0.9, high=0.9)]
    case(op, operands, attributes=lambda v: {"hidden_size": 5, **({"output_sequence": 1} if v < 7 else {})}, outputs=2,
         hand=lambda x, w, r, op=op: recur(op, x, w, r))
    case(op, operands, (7, 99), "state", attributes={"hidden_size": 5}, outputs=["", "h"],
         hand=lambda x, w, r, op=op: recur(op, x, w, r)[1])

# ---- resizing and sampling ----


def nearest(x, scales, up):
    """x / scale; the element below where an axis grows, above where it shrinks."""
    for axis, scale in enumerate(scales):
        at = np.arange(int(np.floor(x.shape[axis] * scale))) / np.float32(scale)
        at = np.floor(at) if scale >= 1 else np.ceil(at)
        x = np.take(x, np.minimum(at.astype(int), x.shape[axis] - 1), axis)
    return x


def linear(x, scales):
    for axis, scale in enumerate(scales):
        n = x.shape[axis]
        at = np.arange(int(np.floor(n * scale))) / np.float32(scale)
        low = np.floor(at).astype(int)
        part = (at - low).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        x = np.take(x, np.minimum(low, n - 1), axis) * (1 - part) + np.take(x, np.minimum(low + 1, n - 1), axis) * part
    return x


PICTURE = f32(1, 2, 3, 4)
GROW, SHRINK, BOTH = [1, 1, 2, 1.5], [1, 1, 0.7, 0.6], [1, 1, 0.7, 2]
for mode, name in (("nearest", "nearest"), ("bilinear", "linear")):
    how = (lambda x: nearest(x, GROW, True)) if mode == "nearest" else (lambda x: linear(x, GROW))
    case("Upsample", [PICTURE], (1, 1), name, attributes={"height_scale": 2.0, "width_scale": 1.5, "mode": mode}, hand=how)
    case("Upsample", [PICTURE], (7, 7), name, attributes={"scales": [float(s) for s in GROW], "mode": name}, hand=how)
    case("Upsample", [PICTURE, np.array(GROW, np.float32)], (9, 9), name, attributes={"mode": name}, hand=lambda x, s, how=how: how(x))
for scales, name in ((GROW, "grow"), (SHRINK, "shrink"), (BOTH, "both")):
    case("Resize", [PICTURE, np.array(scales, np.float32)], (10, 10), name, hand=lambda x, s: nearest(x, s, True))
    case("Resize", [PICTURE, np.array(scales, np.float32)], (10, 10), "linear_" + name, attributes={"mode": "linear"},
         hand=lambda x, s: linear(x, s))
NOTHING = np.array([], np.float32)
for mode in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
    case("Resize", [PICTURE, NOTHING, np.array(GROW, np.float32)], (11, 99), "nearest_" + mode,
         attributes={"coordinate_transformation_mode": mode})
    # where the length is not whole, ONNX Runtime rounds it before it maps the corners, ONNX's own cases after
    scales = [1, 1, 1, 0.5] if mode == "align_corners" else SHRINK
    case("Resize", [PICTURE, NOTHING, np.array(scales, np.float32)], (11, 99), "linear_" + mode,
         attributes={"coordinate_transformation_mode": mode, "mode": "linear"})
case("Resize", [PICTURE, NOTHING, NOTHING, i64(1, 2, 5, 3)], (11, 11), "sizes")
case("Resize", [PICTURE, None, None, i64(1, 2, 5, 3)], (13, 99), "sizes")
case("Resize", [PICTURE, np.array([0, 0, 0.2, 0.3, 1, 1, 0.9, 0.8], np.float32), NOTHING, i64(1, 2, 5, 3)], (11, 11), "crop",
     attributes={"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"})
for rounding in ("floor", "round_prefer_floor"):
    case("Resize", [PICTURE, NOTHING, np.array(GROW, np.float32)], (11, 11), "for_nn_" + rounding,
         attributes={"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding})
case("RoiAlign", [pos(1, 2, 6, 6), np.array([[1, 1, 4.5, 4]], np.float32), i64(0)],
     attributes={"output_height": 2, "output_width": 2, "sampling_ratio": 2})
GRID = f32(1, 3, 3, 2, low=-0.9, high=0.9)
for mode, since in (("bilinear", (16, 16)), ("bicubic", (16, 16)), ("nearest", ANY), ("linear", (20, 99)), ("cubic", (20, 99))):
    case("GridSample", [f32(1, 1, 4, 4), GRID], since, mode, attributes={"mode": mode})
case("GridSample", [f32(1, 1, 4, 4), GRID], ANY, "default")
case("DFT", [f32(1, 4, 3, 1)], ANY, "default")
case("DFT", [f32(1, 4, 3, 1)], ANY, "axis", attributes={"axis": 2})
case("Det", [f32(2, 3, 3)])

# ---- losses, selection, attention, quantization ----

case("NegativeLogLikelihoodLoss", [f32(3, 4), ints(3, high=4)], attributes={"reduction": "sum"})
case("SoftmaxCrossEntropyLoss", [f32(3, 4), ints(3, high=4)])
BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32)
case("NonMaxSuppression", [BOXES, np.array([[[0.9, 0.75, 0.6]]], np.float32), i64(3), np.array([0.5], np.float32)])
case("Attention", [f32(1, 2, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4)])
case("Attention", [f32(1, 2, 3, 4), f32(1, 2, 3, 4), f32(1, 2, 3, 4)], ANY, "causal", attributes={"is_causal": 1})
case("QuantizeLinear", [f32(3, 4), np.float32(0.05), np.uint8(100)], types=["uint8"])
case("QuantizeLinear", [f32(3, 4), pos(4), np.zeros(4, np.int8)], (13, 99), "axis", types=["int8"])
case("DequantizeLinear", [ints(3, 4, dtype=np.uint8), np.float32(0.05), np.uint8(3)], types=["float"])
case("DequantizeLinear", [ints(3, 4, dtype=np.int8), pos(4)], (13, 99), "axis", types=["float"])
case("QLinearMatMul",
     [ints(2, 3, dtype=np.uint8), np.float32(0.1), np.uint8(2), ints(3, 4, dtype=np.uint8), np.float32(0.2), np.uint8(3), np.float32(0.3), np.uint8(9)],
     types=["uint8"])

# ---- control flow, sequences, optionals ----


def graph(name, nodes, inputs, outputs):
    def info(n, kind=TensorProto.FLOAT, shape=None):
        return helper.make_tensor_value_info(n, kind, shape)

    return helper.make_graph(nodes, name, [info(*i) for i in inputs], [info(*o) for o in outputs])


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def branches():
    one = helper.make_tensor("c", TensorProto.FLOAT, [2], [1, 2])
    two = helper.make_tensor("c", TensorProto.FLOAT, [2], [3, 4])
    return {
        "then_branch": graph("yes", [node("Constant", [], ["a"], value=one)], [], [("a", TensorProto.FLOAT, [2])]),
        "else_branch": graph("no", [node("Constant", [], ["b"], value=two)], [], [("b", TensorProto.FLOAT, [2])]),
    }


for answer in (True, False):
    case("If", [np.array(answer)], ANY, str(answer).lower(), attributes=lambda v: branches(), types=["float"],
         hand=lambda c: np.array([1, 2] if c else [3, 4]))
BODY = graph(
    "body", [node("Identity", ["go"], ["on"]), node("Mul", ["v", "v"], ["w"]), node("Identity", ["w"], ["s"])],
    [("n", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", TensorProto.FLOAT, [2])],
    [("on", TensorProto.BOOL, []), ("w", TensorProto.FLOAT, [2]), ("s", TensorProto.FLOAT, [2])],
)
case("Loop", [np.array(3, np.int64), np.array(True), f32(2)], attributes=lambda v: {"body": BODY}, outputs=2, types=["float", "float"],
     hand=lambda n, go, v: [v**8, np.stack([v**2, v**4, v**8])])
STEP = graph(
    "step", [node("Mul", ["a", "b"], ["p"]), node("Sub", ["p", "b"], ["c"]), node("Identity", ["c"], ["d"])],
    [("a", TensorProto.FLOAT, [2]), ("b", TensorProto.FLOAT, [2])], [("c", TensorProto.FLOAT, [2]), ("d", TensorProto.FLOAT, [2])],
)


def scan(state, xs):
    states = []
    for x in xs:
        state = state * x - x
        states.append(state)
    return state, np.stack(states)


def scan_batch(order, states, xs, lengths=None):
    ends, rows = [], []
    for k, (state, x) in enumerate(zip(states, xs)):
        n = len(x) if lengths is None else lengths[k]
        end, row = scan(state, x[:n][::order])
        ends.append(end)
        rows.append(np.concatenate([row, np.zeros((len(x) - n, 2), row.dtype)]))
    return [np.stack(ends), np.stack(rows)]


STATES, ROWS = f32(3, 2), f32(3, 4, 2)
for order, flag in ((1, 0), (-1, 1)):
    name = "backward" if flag else "forward"
    case("Scan", [None, STATES, ROWS], (8, 8), name, attributes={"num_scan_inputs": 1, "body": STEP, "directions": [flag]}, outputs=2,
         types=["float", "float"], hand=lambda s, x, order=order: scan_batch(order, s, x))
    case("Scan", [i64(4, 2, 3), STATES, ROWS], (8, 8), "lengths_" + name, outputs=2, types=["float", "float"],
         attributes={"num_scan_inputs": 1, "body": STEP, "directions": [flag]},
         hand=lambda n, s, x, order=order: scan_batch(order, s, x, n))
case("Scan", [STATES[0], ROWS[0]], (9, 99), attributes={"num_scan_inputs": 1, "body": STEP}, outputs=2, types=["float", "float"],
     hand=lambda s, x: list(scan(s, x)))
SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
case("SplitToSequence", [f32(5, 2), i64(2, 3)], types=[SEQUENCE])
case("Optional", [f32(2)], after="OptionalGetElement", hand=lambda x: x)
case("OptionalGetElement", [f32(2)], before="Optional", hand=lambda x: x)
case("OptionalHasElement", [f32(2)], before="Optional", hand=lambda x: np.array(True), types=["bool"])
