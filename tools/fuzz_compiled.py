#!/usr/bin/env python3
# Random graphs of core operators, compiled against interpreted.
# SPDX-License-Identifier: Apache-2.0
"""usage: fuzz_compiled.py BUILD [--count N] [--seed S] [--keep FOLDER] [--pure]

Makes N models of 1 to 12 random nodes with random inputs, some of their sizes unknown or falsely declared, lets the
interpreter compute what comes out, and has `cameo test --backend compiled` compile and compare. A
model that differs, or cannot be compiled, stays in FOLDER. The last line is `N passed, N failed`.
Needs onnx and numpy.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

DTYPES = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.float16: TensorProto.FLOAT16,
          np.int32: TensorProto.INT32, np.int64: TensorProto.INT64, np.int8: TensorProto.INT8,
          np.uint8: TensorProto.UINT8, np.bool_: TensorProto.BOOL}
FLOATS = (np.float32, np.float64, np.float16)
INTS = (np.int32, np.int64, np.int8, np.uint8)


class Value:
    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, np.dtype(dtype).type, tuple(int(d) for d in shape)

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))


class Graph:
    """A graph that grows node by node; every maker returns False where it does not fit."""

    def __init__(self, rng):
        self.rng = rng
        self.nodes, self.inputs, self.constants, self.values = [], [], [], []

    def name(self):
        self.count = getattr(self, "count", 0) + 1
        return f"v{self.count}"

    def array(self, dtype, shape):
        bits = np.random.default_rng(self.rng.getrandbits(32))
        if dtype in FLOATS:
            return (bits.standard_normal(shape) * 2).astype(dtype)
        if dtype is np.bool_:
            return bits.integers(0, 2, shape).astype(np.bool_)
        low = 0 if dtype is np.uint8 else -9
        return bits.integers(low, 10, shape).astype(dtype)

    def input(self):
        rng = self.rng
        dtype = rng.choice([np.float32] * 6 + [np.float64, np.float16, np.int32, np.int64, np.int8,
                                               np.uint8, np.bool_])
        shape = [rng.choice([1, 2, 3, 4, 5, 7, 8]) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4]))]
        value = Value(self.name(), dtype, shape)
        self.inputs.append((value, self.array(dtype, shape)))
        self.values.append(value)
        return value

    def constant(self, array):
        array = np.asarray(array)
        value = Value(self.name(), array.dtype, array.shape)
        if self.rng.random() < 0.25:  # lists of sizes and axes too
            self.inputs.append((value, array))
        else:
            self.constants.append(numpy_helper.from_array(array, value.name))
        return value

    def pick(self, test=lambda v: True):
        fit = [v for v in self.values if test(v) and v.size <= 4096]
        return self.rng.choice(fit[-6:]) if fit else None

    def node(self, op, inputs, dtype, shape, **attrs):
        value = Value(self.name(), dtype, shape)
        names = [v.name if v else "" for v in inputs]
        self.nodes.append(helper.make_node(op, names, [value.name], **attrs))
        self.values.append(value)
        return True

    # ---- makers ----

    def unary(self):
        op, kinds = self.rng.choice([
            ("Abs", FLOATS + INTS), ("Neg", FLOATS + (np.int32, np.int64, np.int8)), ("Floor", FLOATS),
            ("Round", FLOATS), ("Sign", FLOATS + INTS), ("Tanh", FLOATS), ("Erf", FLOATS),
            ("Sin", FLOATS), ("Cos", FLOATS), ("Atan", FLOATS), ("Sigmoid", FLOATS), ("Relu", FLOATS),
            ("Softplus", FLOATS[:2]), ("Not", (np.bool_,)), ("BitwiseNot", INTS), ("Identity", FLOATS + INTS)])
        x = self.pick(lambda v: v.dtype in kinds)
        return x and self.node(op, [x], x.dtype, x.shape)

    def second(self, x):
        """Something that x can be broadcast with."""
        rng = self.rng
        other = self.pick(lambda v: v.dtype is x.dtype and v.shape == x.shape)
        if other and rng.random() < 0.5:
            return other
        shape = [1 if rng.random() < 0.3 else d for d in x.shape[rng.randint(0, x.rank):]]
        return self.constant(self.array(x.dtype, shape))

    def binary(self):
        x = self.pick()
        if not x:
            return False
        if x.dtype is np.bool_:
            op, out = self.rng.choice(["And", "Or", "Xor"]), np.bool_
        else:
            op = self.rng.choice(["Add", "Sub", "Mul", "Max", "Min", "Less", "Equal", "Greater"]
                                 + (["Div"] if x.dtype in FLOATS else ["BitwiseAnd", "BitwiseXor"]))
            out = np.bool_ if op in ("Less", "Equal", "Greater") else x.dtype
        y = self.second(x)
        pair = [x, y] if self.rng.random() < 0.5 else [y, x]
        return self.node(op, pair, out, x.shape)

    def where(self):
        condition = self.pick(lambda v: v.dtype is np.bool_)
        x = condition and self.pick(lambda v: v.shape == condition.shape)
        return x and self.node("Where", [condition, x, self.second(x)], x.dtype, x.shape)

    def cast(self):
        x = self.pick()
        to = self.rng.choice([np.float32, np.float64, np.float16, np.int32, np.int64, np.bool_])
        return x and self.node("Cast", [x], to, x.shape, to=DTYPES[to])

    def transpose(self):
        x = self.pick(lambda v: v.rank > 1)
        if not x:
            return False
        perm = self.rng.sample(range(x.rank), x.rank)
        return self.node("Transpose", [x], x.dtype, [x.shape[p] for p in perm], perm=perm)

    def reshape(self):
        x = self.pick(lambda v: v.rank)
        if not x:
            return False
        shape = list(x.shape)
        if self.rng.random() < 0.5 and x.rank > 1:
            i = self.rng.randrange(x.rank - 1)
            shape[i:i + 2] = [shape[i] * shape[i + 1]]
        else:
            i = self.rng.randrange(x.rank)
            d = self.rng.choice([k for k in range(1, shape[i] + 1) if shape[i] % k == 0])
            shape[i:i + 1] = [d, shape[i] // d]
        asked = list(shape)
        asked[self.rng.randrange(len(asked))] = -1
        return self.node("Reshape", [x, self.constant(np.array(asked, np.int64))], x.dtype, shape)

    def slice(self):
        x = self.pick(lambda v: v.rank)
        if not x:
            return False
        axis = self.rng.randrange(x.rank)
        step = self.rng.choice([1, 1, 2, -1, -2])
        n = x.shape[axis]
        a, b = sorted(self.rng.sample(range(n + 1), 2)) if n else (0, 0)
        if step < 0:
            a, b = b - 1, (a - 1 if a > 0 else -n - 1)
        shape = list(x.shape)
        shape[axis] = len(range(n)[slice(a, b if b >= -n else None, step)])
        ints = [self.constant(np.array([i], np.int64)) for i in (a, b, axis, step)]
        return self.node("Slice", [x] + ints, x.dtype, shape)

    def concat(self):
        x = self.pick(lambda v: v.rank)
        if not x:
            return False
        axis = self.rng.randrange(x.rank)
        shape = list(x.shape)
        shape[axis] = self.rng.randint(1, 3)
        y = self.constant(self.array(x.dtype, shape))
        shape[axis] += x.shape[axis]
        return self.node("Concat", [x, y], x.dtype, shape, axis=axis)

    def gather(self):
        x = self.pick(lambda v: v.rank and v.size)
        if not x:
            return False
        axis = self.rng.randrange(x.rank)
        n = x.shape[axis]
        many = [self.rng.randint(-n, n - 1) for _ in range(self.rng.randint(1, 4))]
        index = self.constant(np.array(many, np.int64))
        shape = x.shape[:axis] + (len(many),) + x.shape[axis + 1:]
        return self.node("Gather", [x, index], x.dtype, shape, axis=axis)

    def expand(self):
        x = self.pick(lambda v: v.size <= 256 and v.rank < 4)
        if not x:
            return False
        shape = (self.rng.randint(1, 3),) + x.shape
        return self.node("Expand", [x, self.constant(np.array(shape, np.int64))], x.dtype, shape)

    def pad(self):
        x = self.pick(lambda v: v.rank and v.dtype in FLOATS)
        if not x:
            return False
        pads = [self.rng.randint(0, 2) for _ in range(2 * x.rank)]
        shape = [d + pads[i] + pads[i + x.rank] for i, d in enumerate(x.shape)]
        return self.node("Pad", [x, self.constant(np.array(pads, np.int64))], x.dtype, shape)

    def reduce(self):
        x = self.pick(lambda v: v.rank and v.dtype in (np.float32, np.float64, np.int32, np.int64))
        if not x:
            return False
        op = self.rng.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL2"])
        if op == "ReduceL2" and x.dtype not in FLOATS:
            op = "ReduceSum"
        axes = self.rng.sample(range(x.rank), self.rng.randint(1, x.rank))
        keep = self.rng.randint(0, 1)
        shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
        return self.node(op, [x, self.constant(np.array(axes, np.int64))], x.dtype, shape, keepdims=keep)

    def arg_max(self):
        x = self.pick(lambda v: v.rank and v.size and v.dtype in (np.float32, np.int32))
        if not x:
            return False
        axis = self.rng.randrange(x.rank)
        return self.node("ArgMax", [x], np.int64, x.shape[:axis] + (1,) + x.shape[axis + 1:], axis=axis)

    def softmax(self):
        x = self.pick(lambda v: v.rank and v.dtype in FLOATS)
        return x and self.node(self.rng.choice(["Softmax", "LogSoftmax"]), [x], x.dtype, x.shape,
                               axis=self.rng.randrange(x.rank))

    def cum_sum(self):
        x = self.pick(lambda v: v.rank and v.dtype in (np.float32, np.float64, np.int32, np.int64))
        axis = x and self.constant(np.array(self.rng.randrange(x.rank), np.int64))
        return x and self.node("CumSum", [x, axis], x.dtype, x.shape,
                               exclusive=self.rng.randint(0, 1), reverse=self.rng.randint(0, 1))

    def matmul(self):
        x = self.pick(lambda v: v.rank > 1 and v.dtype in (np.float32, np.float64, np.int32))
        if not x:
            return False
        n = self.rng.randint(1, 9)
        y = self.constant(self.array(x.dtype, (x.shape[-1], n)))
        return self.node("MatMul", [x, y], x.dtype, x.shape[:-1] + (n,))

    def conv(self):
        x = self.pick(lambda v: v.rank == 4 and v.dtype is np.float32 and min(v.shape[2:]) >= 2)
        if not x:
            return False
        n, c, h, w = x.shape
        out, k = self.rng.randint(1, 6), self.rng.randint(1, 2)
        stride, pad = self.rng.randint(1, 2), self.rng.randint(0, 1)
        weight = self.constant(self.array(np.float32, (out, c, k, k)))
        size = [(d + 2 * pad - k) // stride + 1 for d in (h, w)]
        return self.node("Conv", [x, weight], np.float32, [n, out] + size, strides=[stride] * 2,
                         pads=[pad] * 4)

    def pool(self):
        x = self.pick(lambda v: v.rank == 4 and v.dtype is np.float32 and min(v.shape[2:]) >= 2)
        if not x:
            return False
        stride = self.rng.randint(1, 2)
        size = [(d - 2) // stride + 1 for d in x.shape[2:]]
        return self.node(self.rng.choice(["MaxPool", "AveragePool"]), [x], np.float32,
                         list(x.shape[:2]) + size, kernel_shape=[2, 2], strides=[stride] * 2)

    def scatter(self):
        x = self.pick(lambda v: v.rank and v.size and v.dtype in (np.float32, np.int32))
        if not x:
            return False
        axis = self.rng.randrange(x.rank)
        n = x.shape[axis]
        bits = np.random.default_rng(self.rng.getrandbits(32))
        shape = list(x.shape)
        shape[axis] = 1
        index = self.constant(bits.integers(-n, n, shape).astype(np.int64))
        update = self.constant(self.array(x.dtype, shape))
        return self.node("ScatterElements", [x, index, update], x.dtype, x.shape, axis=axis,
                         reduction=self.rng.choice(["none", "add"]))

    def squeeze(self):
        x = self.pick(lambda v: v.rank < 5)
        if not x:
            return False
        axis = self.rng.randint(0, x.rank)
        return self.node("Unsqueeze", [x, self.constant(np.array([axis], np.int64))], x.dtype,
                         x.shape[:axis] + (1,) + x.shape[axis:])

    def grow(self, count):
        makers = [self.unary] * 4 + [self.binary] * 5 + [
            self.where, self.cast, self.transpose, self.reshape, self.slice, self.concat, self.gather,
            self.expand, self.pad, self.reduce, self.reduce, self.arg_max, self.softmax, self.cum_sum,
            self.matmul, self.conv, self.pool, self.scatter, self.squeeze]
        for _ in range(self.rng.randint(1, 3)):
            self.input()
        while len(self.nodes) < count:
            if not self.rng.choice(makers)():
                self.input()

    def declared(self, value, axis):
        """A size of a result: seldom a false one, which nobody may rely on."""
        return value.shape[axis] + 3 if self.rng.random() < 0.02 else f"{value.name}_{axis}"

    def model(self):
        """Results that nobody reads are outputs. Sizes of inputs may be unknown."""
        read = {name for node in self.nodes for name in node.input}
        outputs = [v for v in self.values if v.name not in read and v.name.startswith("v")
                   and any(v.name in node.output for node in self.nodes)]
        used = [(v, a) for v, a in self.inputs if v.name in read]
        self.inputs = used
        hide = self.rng.random() < 0.4

        def info(value, known):
            known = known or (value.dtype is np.int64 and value.rank == 1)  # ranks come of their lengths
            shape = [d if known or self.rng.random() < 0.5 else f"{value.name}_{i}"
                     for i, d in enumerate(value.shape)]
            return helper.make_tensor_value_info(value.name, DTYPES[value.dtype], shape)

        graph = helper.make_graph(
            self.nodes, "random", [info(v, not hide) for v, _ in used],
            [helper.make_tensor_value_info(v.name, DTYPES[v.dtype], [self.declared(v, i) for i in range(v.rank)])
             for v in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def write_case(folder, model, inputs, program):
    """A test case whose expectation is what the interpreter computes; the reason where it refuses. model is
    an onnx.ModelProto."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    command = [str(program), "run", str(folder / "model.onnx"), "--output", str(folder / "out"), "--format", "pb"]
    for i, (name, array) in enumerate(inputs.items()):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
        command += ["--input", f"{name}={data / f'input_{i}.pb'}"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:  # a shape that the sizes at hand do not allow
        shutil.rmtree(folder)
        return done.stderr.strip()
    for i, output in enumerate(model.graph.output):
        (folder / "out" / f"{output.name}.pb").rename(data / f"output_{i}.pb")
    return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--pure", action="store_true")
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="cameo-fuzz-"))
    made = refused = 0
    for number in range(args.count):
        rng = random.Random(args.seed * 1000003 + number)
        graph = Graph(rng)
        graph.grow(rng.randint(1, 12))
        model = graph.model()
        checker.check_model(model)
        why = write_case(root / f"case_{args.seed}_{number}", model,
                         {value.name: array for value, array in graph.inputs}, args.build / "cameo")
        made += why is None
        refused += why is not None
    command = [str(args.build / "cameo"), "test", str(root), "--backend", "compiled"]
    done = subprocess.run(command + (["--pure"] if args.pure else []), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    print(done.stdout.rstrip())
    print(f"{made} models made, {refused} left out because the interpreter refused them too")
    if args.keep and done.returncode:
        shutil.copytree(root, args.keep, dirs_exist_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    return done.returncode


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    np.seterr(all="ignore")
    sys.exit(main())
