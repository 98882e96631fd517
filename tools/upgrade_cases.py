# The cases for old operator versions: which inputs and attributes show what a version means, and values worked out by hand.
# SPDX-License-Identifier: Apache-2.0
"""A table for make_upgrade_cases.py, which turns every row into one case for each old version of the operator in its range.

What is worked out by hand follows the operator's text in that version; where it is all a case has, the text says so without doubt.
"""

import math
import zlib

import numpy as np

ANY = (1, 99)
CASES = []


class Case:
    """One node. versions: first and last version of the operator it is legal in. attributes and inputs may be functions of the version.
    hand: what the outputs must be, from the inputs; trusted alone when judge is "hand". outputs: how many, or a list of names.
    before, after: an operator between input 0 and the node, between the node and output 0."""

    def __init__(
        self, op, inputs, versions=ANY, name="", attributes=None, outputs=1, hand=None, judge="", types=None, before="", after=""
    ):
        self.op, self.inputs, self.versions, self.name = op, inputs, versions, name
        self.before, self.after = before, after
        self.attributes, self.outputs, self.hand, self.judge, self.types = attributes, outputs, hand, judge, types


def case(op, *args, **kwargs):
    CASES.append(Case(op, *args, **kwargs))


def rng(*what):
    return np.random.default_rng(zlib.crc32(repr(what).encode()))


def f32(*shape, low=-2.0, high=2.0):
    return rng(shape, low, high).uniform(low, high, shape).astype(np.float32)


def pos(*shape):
    return f32(*shape, low=0.1, high=3.0)


def ints(*shape, low=0, high=10, dtype=np.int64):
    return rng(shape, low, high).integers(low, high, shape).astype(dtype)


def bools(*shape):
    return rng(shape, "bool").integers(0, 2, shape).astype(bool)


def i64(*values):
    return np.array(values, np.int64)


# ---- element by element ----

def consumed(version, **others):
    """Versions before 6 could carry a hint that means nothing."""
    return dict(others, consumed_inputs=[0]) if version < 6 else others


def unary(op, hand=None, x=None, **attributes):
    has_hint = op in HINTED
    case(
        op,
        [f32(2, 3, 4) if x is None else x],
        attributes=(lambda v: consumed(v, **attributes)) if has_hint else attributes,
        hand=hand,
    )


HINTED = {
    "Abs", "Ceil", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Neg", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Tanh",
}
unary("Abs", np.abs)
unary("Ceil", np.ceil)
unary("Elu", lambda x: np.where(x < 0, np.float32(0.7) * np.expm1(x), x), alpha=0.7)
unary("Exp", np.exp)
unary("Floor", np.floor)
unary("HardSigmoid", lambda x: np.clip(x * np.float32(0.3) + np.float32(0.4), 0, 1), alpha=0.3, beta=0.4)
unary("LeakyRelu", lambda x: np.where(x < 0, np.float32(0.3) * x, x), alpha=0.3)
unary("Log", np.log, x=pos(2, 3))
unary("Neg", np.negative)
unary("Reciprocal", np.reciprocal, x=pos(2, 3))
unary("Relu", lambda x: np.maximum(x, 0))
unary("Selu", lambda x: np.float32(3) * np.where(x < 0, np.float32(2) * np.expm1(x), x), alpha=2.0, gamma=3.0)
case(
    "Selu", [f32(2, 30)], (1, 1), "defaults",
    hand=lambda x: np.float32(1.0507) * np.where(x < 0, np.float32(1.6732) * np.expm1(x), x),
)
unary("Sigmoid", lambda x: 1 / (1 + np.exp(-x)))
unary("Sqrt", np.sqrt, x=pos(2, 3))
unary("Tanh", np.tanh)
for op in ("Acos", "Asin", "Atanh"):
    unary(op, x=f32(7, low=-0.9, high=0.9))
unary("Acosh", x=f32(7, low=1.1, high=4))
for op in ("Asinh", "Atan", "Cos", "Cosh", "Sin", "Sinh", "Tan", "Softplus", "Softsign", "Round", "Sign", "Mish", "HardSwish", "Identity"):
    unary(op)
unary("Celu", alpha=0.8)
unary("ThresholdedRelu", alpha=0.5)
unary("Erf")
case(
    "Erf", [np.array([-9, -1, 0, 1, 2, 7], np.int32)], (9, 9), "int",
    hand=lambda x: np.trunc([math.erf(v) for v in x]).astype(np.int32), judge="hand",
)
unary("IsNaN", x=np.array([1, np.nan, np.inf], np.float32))
unary("IsInf", x=np.array([1, -np.inf, np.inf, np.nan], np.float32), detect_negative=0)

ARITHMETIC = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract, "Pow": np.power}
COMPARE = {"Greater": np.greater, "Less": np.less, "Equal": np.equal}
LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


def operands(op, *shape):
    if op in LOGIC:
        return bools(*shape)
    if op == "Equal":
        return ints(*shape, high=3)
    return pos(*shape)


def hint(op, version):
    return consumed(version) if op in ("Add", "Div", "Mul", "Sub") else {}


for op, hand in {**ARITHMETIC, **COMPARE, **LOGIC}.items():
    types = None if op in ARITHMETIC else ["bool"]
    a = operands(op, 2, 3, 4)
    case(op, [a, operands(op, 2, 3, 4)[::-1].copy()], (1, 6), "same", hand=hand, types=types,
         attributes=lambda v, op=op: hint(op, v))
    case(op, [a, operands(op, 3, 4)], (1, 6), "suffix", attributes={"broadcast": 1}, hand=hand, types=types)
    case(op, [a, operands(op, 1)], (1, 6), "one", attributes={"broadcast": 1}, hand=hand, types=types)
    case(op, [a, operands(op, 3)], (1, 6), "axis", attributes={"broadcast": 1, "axis": 1},
         hand=lambda a, b, hand=hand: hand(a, b[:, None]), types=types)
    case(op, [a, operands(op, 2, 3)], (1, 6), "axis_0", attributes={"broadcast": 1, "axis": 0},
         hand=lambda a, b, hand=hand: hand(a, b[:, :, None]), types=types)
    case(op, [a, operands(op, 4, 1, 1, 1)], (7, 99), hand=hand, types=types)
for op in ("GreaterOrEqual", "LessOrEqual"):
    case(op, [f32(2, 3), f32(3)])
for op, hand in (
    ("Max", lambda *x: np.maximum.reduce(np.broadcast_arrays(*x))),
    ("Min", lambda *x: np.minimum.reduce(np.broadcast_arrays(*x))),
    ("Sum", lambda *x: sum(x)),
    ("Mean", lambda *x: (sum(x) / np.float32(len(x))).astype(np.float32)),
):
    case(op, [f32(2, 3), pos(2, 3), f32(2, 3, high=5)], (1, 7), hand=hand,
         attributes=lambda v: consumed(v))
    case(op, [f32(2, 3), pos(3), f32(4, 1, 3)], (8, 99), hand=hand)


def prelu(x, slope):
    return np.where(x < 0, x * slope, x)


case("PRelu", [f32(2, 3, 4, 5), pos(3)], (1, 6), "channels", attributes=lambda v: consumed(v),
     hand=lambda x, s: prelu(x, s[:, None, None]))
case("PRelu", [f32(2, 3, 4), pos(1)], (1, 6), "one", hand=prelu)
case("PRelu", [f32(4, 3), pos(3)], (1, 6), "matrix", hand=prelu)
case("PRelu", [f32(2, 3, 4), pos(3, 1)], (7, 99), hand=prelu)
case("Mod", [ints(2, 3, low=-9, high=9), i64(3, -4, 5)])
case("BitShift", [ints(4, dtype=np.uint8), np.array([1, 2, 3, 0], np.uint8)], attributes={"direction": "LEFT"})
case("Where", [bools(2, 3), f32(2, 3), f32(3)])
case("Clip", [f32(3, 4)], (1, 10), attributes=lambda v: consumed(v, min=-0.5, max=1.25), hand=lambda x: np.clip(x, -0.5, 1.25))
case("Clip", [f32(3, 4)], (1, 10), "max", attributes={"max": 1.25}, hand=lambda x: np.minimum(x, 1.25))
case("Clip", [f32(3, 4)], (1, 10), "none", hand=lambda x: x)
case("Clip", [f32(3, 4), np.float32(-0.5), np.float32(1.25)], (11, 99), hand=np.clip)
case("Cast", [f32(7)], (1, 1), "int", attributes={"to": "INT32"}, hand=lambda x: x.astype(np.int32), types=["int32"])
case("Cast", [f32(7)], (1, 1), "half", attributes={"to": "FLOAT16"}, hand=lambda x: x.astype(np.float16), types=["float16"])
case("Cast", [f32(7)], (6, 99), attributes={"to": 6}, hand=lambda x: x.astype(np.int32))
case("CastLike", [f32(7), i64(1)], hand=lambda x, y: x.astype(np.int64))

# ---- matrices and reductions ----

case("Gemm", [f32(3, 4), f32(4, 5), f32(3, 5)], hand=lambda a, b, c: a @ b + c)
case("Gemm", [f32(4, 3), f32(5, 4), f32(5)], (1, 6), "broadcast",
     attributes={"broadcast": 1, "transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
     hand=lambda a, b, c: np.float32(0.5) * (a.T @ b.T) + 2 * c)
case("Gemm", [f32(3, 4), f32(4, 5), f32(1)], (7, 99), "broadcast")
case("MatMul", [f32(2, 3, 4), f32(4, 5)], hand=np.matmul)
case("Einsum", [f32(2, 3), f32(3, 4)], attributes={"equation": "ij,jk->ik"})
REDUCE = {
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}
for op, hand in REDUCE.items():
    last = 12 if op == "ReduceSum" else 17
    case(op, [pos(2, 3, 4)], (1, last), "axes", attributes={"axes": [0, 2], "keepdims": 0},
         hand=lambda x, hand=hand: hand(x, axis=(0, 2)))
    case(op, [pos(2, 3, 4)], (1, last), "all", hand=lambda x, hand=hand: hand(x, axis=(0, 1, 2), keepdims=True))
    case(op, [pos(2, 3, 4)], (11, last), "negative", attributes={"axes": [-1]},
         hand=lambda x, hand=hand: hand(x, axis=-1, keepdims=True))
    case(op, [pos(2, 3, 4), i64(1)], (last + 1, 99), hand=lambda x, a, hand=hand: hand(x, axis=1, keepdims=True))
for op in ("ReduceLogSum", "ReduceLogSumExp"):
    case(op, [ints(3, 4, low=1, dtype=np.int32), i64(1)], (18, 18), "int", judge="hand",
         hand=lambda x, a, hand=REDUCE[op]: np.trunc(hand(x.astype(np.float64), axis=1, keepdims=True)).astype(np.int32))
for op, hand in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
    case(op, [ints(3, 5, high=4).astype(np.float32)], attributes={"axis": 1}, hand=lambda x, hand=hand: hand(x, axis=1)[:, None].astype(np.int64))
    case(op, [f32(3, 5)], (1, 99), "flat", attributes={"axis": 0, "keepdims": 0}, hand=lambda x, hand=hand: hand(x, axis=0).astype(np.int64))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def hardmax(x):
    return np.eye(x.shape[1], dtype=x.dtype)[x.argmax(axis=1)]


for op, rows in (("Softmax", softmax), ("LogSoftmax", lambda x: np.log(softmax(x))), ("Hardmax", hardmax)):
    def halves(x, axis, rows=rows):
        return rows(x.reshape(int(np.prod(x.shape[:axis])), -1)).reshape(x.shape)

    case(op, [f32(2, 3, 4)], hand=lambda x, halves=halves: halves(x, 1))
    case(op, [f32(2, 3, 4)], ANY, "axis_0", attributes={"axis": 0}, hand=lambda x, halves=halves: halves(x, 0))
    case(op, [f32(2, 3, 4)], ANY, "axis_2", attributes={"axis": 2}, hand=lambda x, halves=halves: halves(x, 2))
    case(op, [f32(2, 3, 4)], (11, 99), "axis_minus_2", attributes={"axis": -2}, hand=lambda x, halves=halves: halves(x, 1))
case("CumSum", [f32(2, 5), np.array(1, np.int32)], attributes={"reverse": 1})


def topk(x, k=2):
    at = np.argsort(-x, axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(x, at, -1), at.astype(np.int64)]


case("TopK", [f32(3, 5)], (1, 9), attributes={"k": 2}, outputs=2, hand=topk, types=[None, "int64"])
case("TopK", [f32(3, 5), i64(2)], (10, 99), outputs=2, hand=lambda x, k: topk(x))
case("TopK", [f32(3, 5), i64(2)], (11, 99), "smallest", attributes={"largest": 0}, outputs=2)

# ---- moving, cutting, indexing ----

case("Concat", [f32(2, 3), f32(2, 1)], (1, 3), "default", hand=lambda *x: np.concatenate(x, 1))
case("Concat", [f32(2, 3), f32(1, 3)], attributes={"axis": 0}, hand=lambda *x: np.concatenate(x, 0))
case("Concat", [f32(2, 3), f32(2, 1)], (11, 99), "negative", attributes={"axis": -1}, hand=lambda *x: np.concatenate(x, 1))
case("Split", [f32(6, 2)], (1, 12), "lengths", attributes={"axis": 0, "split": [1, 3, 2]}, outputs=3,
     hand=lambda x: np.split(x, [1, 4]))
case("Split", [f32(6, 2), np.array([1, 3, 2], np.float32)], (1, 1), "input", attributes={"axis": 0}, outputs=3,
     hand=lambda x, s: np.split(x, [1, 4]))
case("Split", [f32(2, 6)], (1, 17), "equal", attributes={"axis": 1}, outputs=3, hand=lambda x: np.split(x, 3, 1))
case("Split", [f32(6, 2)], (2, 17), "default", outputs=2, hand=lambda x: np.split(x, 2))
case("Split", [f32(6, 2), i64(1, 3, 2)], (13, 17), "lengths", outputs=3, hand=lambda x, s: np.split(x, [1, 4]))
case("Slice", [f32(4, 5)], (1, 9), attributes={"starts": [1, -3], "ends": [1000, -1], "axes": [0, 1]}, hand=lambda x: x[1:, -3:-1])
case("Slice", [f32(4, 5)], (1, 9), "no_axes", attributes={"starts": [1], "ends": [3]}, hand=lambda x: x[1:3])
case("Slice", [f32(4, 5), i64(1, 4), i64(3, 0), i64(0, 1), i64(1, -2)], (10, 99), hand=lambda x, *_: x[1:3, 4:0:-2])
case("Squeeze", [f32(1, 3, 1, 2)], (1, 12), attributes={"axes": [0, 2]}, hand=lambda x: x.reshape(3, 2))
case("Squeeze", [f32(1, 3, 1, 2)], (1, 12), "all", hand=lambda x: x.reshape(3, 2))
case("Squeeze", [f32(1, 3, 1, 2)], (11, 12), "negative", attributes={"axes": [-2]}, hand=lambda x: x.reshape(1, 3, 2))
case("Squeeze", [f32(1, 3, 1, 2), i64(2)], (13, 99), hand=lambda x, a: x.reshape(1, 3, 2))
case("Unsqueeze", [f32(3, 2)], (1, 12), attributes={"axes": [0, 3]}, hand=lambda x: x.reshape(1, 3, 2, 1))
case("Unsqueeze", [f32(3, 2)], (11, 12), "negative", attributes={"axes": [-1]}, hand=lambda x: x.reshape(3, 2, 1))
case("Unsqueeze", [f32(3, 2), i64(1)], (13, 99), hand=lambda x, a: x.reshape(3, 1, 2))
case("Reshape", [f32(2, 3, 4)], (1, 4), attributes={"shape": [0, -1], "consumed_inputs": [0]}, hand=lambda x: x.reshape(2, 12))
case("Reshape", [f32(2, 3, 4), i64(4, 0, -1)], (5, 99), hand=lambda x, s: x.reshape(4, 3, 2))
case("Flatten", [f32(2, 3, 4)], attributes={"axis": 2}, hand=lambda x: x.reshape(6, 4))
case("Flatten", [f32(2, 3, 4)], ANY, "default", hand=lambda x: x.reshape(2, 12))
case("Transpose", [f32(2, 3, 4)], attributes={"perm": [2, 0, 1]}, hand=lambda x: x.transpose(2, 0, 1))
case("Tile", [f32(2, 3), np.float32(2), np.float32(1)], (1, 1), hand=lambda x, n, a: np.tile(x, (1, 2)))
case("Tile", [f32(2, 3), i64(2, 1)], (6, 99), hand=lambda x, n: np.tile(x, (2, 1)))
case("Expand", [f32(3, 1), i64(2, 1, 4)])
PADS = ((1, 0), (2, 1))
case("Pad", [f32(2, 3)], (1, 1), attributes={"paddings": [1, 2, 0, 1], "value": 1.5},
     hand=lambda x: np.pad(x, PADS, constant_values=1.5))
case("Pad", [f32(2, 3)], (2, 10), attributes={"pads": [1, 2, 0, 1], "value": 1.5}, hand=lambda x: np.pad(x, PADS, constant_values=1.5))
case("Pad", [f32(3, 4)], (2, 10), "reflect", attributes={"pads": [1, 2, 0, 1], "mode": "reflect"}, hand=lambda x: np.pad(x, PADS, mode="reflect"))
case("Pad", [f32(3, 4)], (2, 10), "edge", attributes={"pads": [1, 2, 0, 1], "mode": "edge"}, hand=lambda x: np.pad(x, PADS, mode="edge"))
case("Pad", [f32(3, 4)], (2, 10), "negative", attributes={"pads": [0, -1, 1, -1]}, hand=lambda x: np.pad(x[:, 1:-1], ((0, 1), (0, 0))))
case("Pad", [f32(2, 3), i64(1, 2, 0, 1), np.float32(1.5)], (11, 99), hand=lambda x, p, v: np.pad(x, PADS, constant_values=1.5))
case("Gather", [f32(4, 3), ints(2, 2, high=4)], attributes={"axis": 0}, hand=lambda x, i: x[i])
case("GatherElements", [f32(3, 3), ints(2, 3, high=3)], attributes={"axis": 0})
case("GatherND", [f32(2, 3, 4), ints(5, 2, high=2)])
for op in ("Scatter", "ScatterElements"):
    case(op, [f32(3, 4), i64(1, 0).reshape(1, 2), f32(1, 2)], attributes={"axis": 1})
    case(op, [f32(3, 4), i64(1, 0).reshape(1, 2), f32(1, 2)], ANY, "default")
case("ScatterND", [f32(4, 3), i64(2, 0).reshape(2, 1), f32(2, 3)])
case("OneHot", [ints(2, 3, high=6), i64(5), np.array([-1, 4], np.float32)])
case("OneHot", [i64(-1, 0, 7), i64(3), np.array([2, 5], np.float32)], (9, 9), "negative",
     hand=lambda i, d, v: np.array([[2, 2, 2], [5, 2, 2], [2, 2, 2]], np.float32), judge="hand")
case("NonZero", [ints(3, 4, high=2).astype(np.float32)])
case("Compress", [f32(3, 4), np.array([1, 0, 1], bool)], attributes={"axis": 0})
case("Compress", [f32(3, 4), np.array([0, 1, 0, 1, 1], bool)], ANY, "flat")
case("DepthToSpace", [f32(1, 8, 2, 3)], attributes={"blocksize": 2},
     hand=lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6))
case("DepthToSpace", [f32(1, 8, 2, 3)], (11, 99), "crd", attributes={"blocksize": 2, "mode": "CRD"})
case("SpaceToDepth", [f32(1, 2, 4, 6)], attributes={"blocksize": 2},
     hand=lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3))
case("ReverseSequence", [f32(4, 3), i64(2, 4, 1)])
case("Unique", [ints(9, high=4).astype(np.float32)], outputs=4)
case("EyeLike", [f32(3, 4)], attributes={"k": 1})
case("ConstantOfShape", [i64(2, 3)], types=["float"])
case("Constant", [], attributes=lambda v: {"value": f32(2, 3)}, hand=lambda: f32(2, 3), types=["float"])
case("Shape", [f32(2, 3)], hand=lambda x: i64(2, 3), types=["int64"])
case("Size", [f32(2, 3)], hand=lambda x: np.array(6, np.int64), types=["int64"])
case("Range", [np.float32(1), np.float32(4), np.float32(0.75)])
