#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single operators that move, reduce or convert elements, beside ONNX Runtime.

usage: operators.py [--program FILE] [--threads N[,N]] [--rounds N] [--seconds S] [NAME...]
Each row is a model of one node (a few of two or three), measured as peers.py measures; a NAME picks
the rows whose name contains it. The ratio is ONNX Runtime's time over ours: above 1 we are faster.
"""

import argparse
import os
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import peers

TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
         "i8": TensorProto.INT8, "u8": TensorProto.UINT8, "i32": TensorProto.INT32,
         "i64": TensorProto.INT64, "bool": TensorProto.BOOL, "f64": TensorProto.DOUBLE}
ROWS = {}


def ints(*values):
    return numpy.array(values, numpy.int64)


def indices(limit, *shape):
    return numpy.random.default_rng(2).integers(0, limit, shape)


def row(name, op, *inputs, outputs=1, **attributes):
    """inputs: (type, shape) of operands, arrays of constants, None where absent."""
    ROWS[name] = (op, inputs, outputs, attributes)


def build(name):
    op, inputs, outputs, attributes = ROWS[name]
    values, constants, names = [], [], []
    for i, operand in enumerate(inputs):
        names.append("" if operand is None else f"x{i}")
        if isinstance(operand, tuple):
            values.append(helper.make_tensor_value_info(f"x{i}", TYPES[operand[0]], operand[1]))
        elif operand is not None:
            constants.append(numpy_helper.from_array(numpy.asarray(operand), f"x{i}"))
    results = [f"y{i}" for i in range(outputs)]
    nodes, at = [], names
    ops = op.split(">")  # one after the other, the last with the attributes
    for k, one in enumerate(ops):
        last = k + 1 == len(ops)
        given = attributes if last else {}
        if ":" in one:  # Cast:f16
            one, to = one.split(":")
            given = {"to": TYPES[to]}
        nodes.append(helper.make_node(one, at, results if last else [f"t{k}"], **given))
        at = [f"t{k}"]
    graph = helper.make_graph(nodes, name, values,
                              [onnx.ValueInfoProto(name=result) for result in results], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 9
    shaped = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return shaped


F = "f32"
row("transpose 2d 1024x1024", "Transpose", (F, [1024, 1024]))
row("transpose 2d 768x3072", "Transpose", (F, [768, 3072]))
row("transpose heads split", "Transpose", (F, [1, 256, 12, 64]), perm=[0, 2, 1, 3])
row("transpose heads keys", "Transpose", (F, [1, 256, 12, 64]), perm=[0, 2, 3, 1])
row("transpose heads b16", "Transpose", (F, [16, 128, 4, 64]), perm=[0, 2, 1, 3])
row("transpose nchw-nhwc 64x56", "Transpose", (F, [1, 64, 56, 56]), perm=[0, 2, 3, 1])
row("transpose nhwc-nchw 64x56", "Transpose", (F, [1, 56, 56, 64]), perm=[0, 3, 1, 2])
row("transpose nhwc-nchw 3x224", "Transpose", (F, [1, 224, 224, 3]), perm=[0, 3, 1, 2])
row("transpose nchw-nhwc 3x224", "Transpose", (F, [1, 3, 224, 224]), perm=[0, 2, 3, 1])
row("transpose u8 1024x1024", "Transpose", ("u8", [1024, 1024]))
row("transpose shuffle 2x58", "Transpose", (F, [1, 2, 58, 28, 28]), perm=[0, 2, 1, 3, 4])
row("concat channels", "Concat", (F, [1, 64, 56, 56]), (F, [1, 32, 56, 56]), axis=1)
row("concat last", "Concat", (F, [512, 96]), (F, [512, 160]), axis=1)
row("concat small last", "Concat", (F, [65536, 4]), (F, [65536, 4]), axis=1)
row("split channels", "Split", (F, [1, 116, 28, 28]), ints(58, 58), outputs=2, axis=1)
row("split last", "Split", (F, [256, 2304]), ints(768, 768, 768), outputs=3, axis=1)
row("slice rows", "Slice", (F, [1024, 768]), ints(100), ints(900), ints(0))
row("slice columns", "Slice", (F, [1024, 768]), ints(100), ints(700), ints(1))
row("slice step 2", "Slice", (F, [1, 64, 112, 112]), ints(0, 0), ints(112, 112), ints(2, 3), ints(2, 2))
row("slice reversed", "Slice", (F, [512, 1024]), ints(-1), ints(-2000), ints(1), ints(-1))
row("pad images", "Pad", (F, [1, 64, 56, 56]), ints(0, 0, 1, 1, 0, 0, 1, 1))
row("pad reflect", "Pad", (F, [1, 64, 56, 56]), ints(0, 0, 3, 3, 0, 0, 3, 3), mode="reflect")
row("expand rows", "Expand", (F, [1, 768]), ints(512, 768))
row("expand columns", "Expand", (F, [512, 1]), ints(512, 768))
row("expand middle", "Expand", (F, [16, 1, 1024]), ints(16, 64, 1024))
row("tile", "Tile", (F, [64, 1, 256]), ints(1, 16, 4))
row("gather rows", "Gather", (F, [30000, 256]), indices(30000, 16, 128))
row("gather elements axis 1", "Gather", (F, [1024, 1024]), indices(1024, 512), axis=1)
row("gather nd", "GatherND", (F, [1000, 1000]), numpy.stack([indices(1000, 100000)] * 2, 1))
row("gather nd slices", "GatherND", (F, [1000, 64]), indices(1000, 5000, 1))
row("gatherelements 0", "GatherElements", (F, [512, 512]), indices(512, 512, 512), axis=0)
row("gatherelements 1", "GatherElements", (F, [512, 512]), indices(512, 512, 512), axis=1)
row("scatterelements 1", "ScatterElements", (F, [512, 512]), indices(512, 512, 512), (F, [512, 512]), axis=1)
row("scatterelements add 0", "ScatterElements", (F, [512, 512]), indices(512, 512, 512), (F, [512, 512]), axis=0, reduction="add")
row("scatternd rows", "ScatterND", (F, [4096, 256]), indices(4096, 2048, 1), (F, [2048, 256]))
row("scatternd rows add", "ScatterND", (F, [4096, 256]), indices(4096, 2048, 1), (F, [2048, 256]), reduction="add")
row("scatternd elements add", "ScatterND", (F, [65536]), indices(65536, 65536, 1), (F, [65536]), reduction="add")
row("where", "Where", ("bool", [512, 1024]), (F, [512, 1024]), (F, [512, 1024]))
row("where scalar", "Where", ("bool", [512, 1024]), (F, [512, 1024]), numpy.float32(-1e9))
row("where mask rows", "Where", ("bool", [1, 1024]), (F, [512, 1024]), numpy.float32(-1e9))
for one, other in [("f32", "f16"), ("f16", "f32"), ("f32", "i8"), ("i8", "f32"), ("f32", "i64"),
                   ("i64", "f32"), ("f32", "bool"), ("bool", "f32"), ("f32", "f64"), ("f64", "f32"),
                   ("i64", "i32"), ("i32", "i64"), ("i64", "bool"), ("bool", "i64"), ("f32", "u8"),
                   ("u8", "f32"), ("f32", "i32"), ("i32", "f32"), ("f16", "i64")]:
    row(f"cast {one} {other}", "Cast", (one, [512, 1024]), to=TYPES[other])
row("cast f32 bf16 f32", "Cast:bf16>Cast:f32", (F, [512, 1024]))
for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"]:
    def reduce(name, shape, *axes):
        row(f"{op} {name}", op, (F, shape), ints(*axes))
    reduce("last", [1024, 768], 1)
    reduce("first", [1024, 768], 0)
    if op in ("ReduceSum", "ReduceMean", "ReduceMax"):
        reduce("middle", [16, 128, 256], 1)
        reduce("spatial", [16, 64, 56, 56], 2, 3)
        reduce("batch+spatial", [16, 64, 56, 56], 0, 2, 3)
        reduce("all", [1024, 1024], 0, 1)
        reduce("short", [65536, 4], 1)
row("argmax last", "ArgMax", (F, [1024, 1000]), axis=1)
row("argmax first", "ArgMax", (F, [1000, 1024]), axis=0)
row("softmax last", "Softmax", (F, [512, 1024]), axis=1)
row("softmax short rows", "Softmax", (F, [4096, 50]), axis=1)
row("softmax middle", "Softmax", (F, [4, 64, 56, 56]), axis=1)
row("logsoftmax last", "LogSoftmax", (F, [512, 1024]), axis=1)
row("logsoftmax middle", "LogSoftmax", (F, [4, 64, 56, 56]), axis=1)
row("topk 5 of 1000", "TopK", (F, [256, 1000]), ints(5), outputs=2)
row("topk 100 of 10000", "TopK", (F, [16, 10000]), ints(100), outputs=2)
row("cumsum last", "CumSum", (F, [512, 1024]), numpy.int64(1))
row("cumsum first", "CumSum", (F, [1024, 512]), numpy.int64(0))
row("onehot", "OneHot", ("i64", [1024]), ints(1000), numpy.array([0, 1], numpy.float32))
row("trilu", "Trilu", (F, [12, 256, 256]), upper=0)
row("nonzero", "NonZero", (F, [512, 512]))
row("depth to space", "DepthToSpace", (F, [1, 64, 64, 64]), blocksize=2)
row("space to depth", "SpaceToDepth", (F, [1, 16, 128, 128]), blocksize=2)


def scales(value):
    return numpy.array([1, 1, value, value], numpy.float32)


SMALL, LARGE = (F, [1, 64, 56, 56]), (F, [1, 32, 112, 112])
for mode in ["nearest", "linear", "cubic"]:
    row(f"resize {mode} up", "Resize", SMALL, None, scales(2), mode=mode)
    row(f"resize {mode} down", "Resize", LARGE, None, scales(0.5), mode=mode)
row("resize linear corners", "Resize", SMALL, None, scales(2), mode="linear", coordinate_transformation_mode="align_corners")
row("resize nearest asymmetric", "Resize", SMALL, None, scales(2), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
BIG = [512, 1024]
for op in ["Greater", "Equal", "LessOrEqual", "Min", "Max", "Pow", "Add", "Mul", "Div", "PRelu"]:
    row(op.lower(), op, (F, BIG), (F, BIG))
for op in ["Sin", "Cos", "Sqrt", "Floor", "Ceil", "Round", "Abs", "Neg", "Sign", "Reciprocal", "Relu", "Exp", "Log", "Tan", "Atan"]:
    row(op.lower(), op, (F, BIG))
row("greater scalar", "Greater", (F, BIG), numpy.float32(0.5))
row("equal i64", "Equal", ("i64", BIG), ("i64", BIG))
row("less i32", "Less", ("i32", BIG), ("i32", BIG))
row("and", "And", ("bool", BIG), ("bool", BIG))
row("not", "Not", ("bool", BIG))
row("pow 0.5", "Pow", (F, BIG), numpy.float32(0.5))
row("pow 3", "Pow", (F, BIG), numpy.float32(3))
row("clip", "Clip", (F, BIG), numpy.float32(0.1), numpy.float32(0.9))
row("leakyrelu", "LeakyRelu", (F, BIG))
row("add f16", "Add", ("f16", BIG), ("f16", BIG))
row("mul f16", "Mul", ("f16", BIG), ("f16", BIG))
row("matmul f16", "MatMul", ("f16", [128, 256]), ("f16", [256, 256]))
for op in ["Add", "Sub", "Mul", "Div", "Mod"]:
    row(f"{op.lower()} i64", op, ("i64", BIG), ints(7))
row("add i32", "Add", ("i32", BIG), ("i32", BIG))
row("mul i32", "Mul", ("i32", BIG), ("i32", BIG))
row("add i8", "Add", ("i32", BIG), ("i32", BIG))
row("add bias rows", "Add", (F, BIG), (F, [1024]))
row("add bias channels", "Add", (F, [1, 64, 56, 56]), (F, [64, 1, 1]))


class Peer(peers.Peer):
    """With memory for the results bound beforehand, as ours is."""

    def run(self, count):
        if not hasattr(self, "binding"):
            import onnxruntime
            self.binding = self.session.io_binding()
            for name, value in self.feeds.items():
                self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
            for output in self.session.get_outputs():
                self.binding.bind_output(output.name)
        times = []
        for _ in range(count):
            began = peers.time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append((peers.time.perf_counter() - began) * 1e3)
        return times


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", default=os.path.join(peers.ROOT, "build", "bench", "run_model"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    peers.TYPES.update({"tensor(float16)": numpy.float16, "tensor(int8)": numpy.int8,
                        "tensor(uint8)": numpy.uint8})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "operator.onnx")
        for name in ROWS:
            if arguments.names and not any(part in name for part in arguments.names):
                continue
            line = f"{name:26}"
            try:
                onnx.save(build(name), path)
                for threads in [int(word) for word in arguments.threads.split(",")]:
                    sides = [peers.Ours(arguments.program, path, threads), Peer(path, threads)]
                    ours, peer = peers.measure(sides, arguments.rounds, arguments.seconds)
                    for side in sides:
                        side.close()
                    line += (f"  {threads}T {min(ours):8.4f} {min(peer):8.4f} ms"
                             f" {min(peer) / min(ours):6.2f}")
            except Exception as error:
                line += f"  {str(error).splitlines()[0][:90]}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
