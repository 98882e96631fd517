#!/usr/bin/env python3
# How long it takes from a file of very many small nodes to its result, beside ONNX Runtime.
# SPDX-License-Identifier: Apache-2.0
"""usage: many_nodes.py CAMEO FOLDER [NODES...]

Writes chains of small nodes (constants among them) to FOLDER and runs each through CAMEO and ONNX Runtime, file to
result, each in a process of its own; ours best of five, the peer's once and for the shorter chains only, as its time
grows with the square of the nodes. Ours must stay linear: twice the nodes, twice the time.
"""

import pathlib
import subprocess
import sys
import time

import numpy
import onnx
from onnx import TensorProto, helper

REPEATS = 5
PEER_MOST = 20000

PEER = """
import sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, {"x": numpy.ones(8, numpy.float32)})
"""


def write_chain(path, nodes):
    made = []
    now = "x"
    for i in range(nodes):
        after = f"v{i}"
        if i % 4 == 3:
            made.append(helper.make_node("Constant", [], [f"c{i}"], value_float=0.5))
            now, after = now, now
            continue
        if i % 4 == 0:
            made.append(helper.make_node("Relu", [now], [after]))
        elif i % 4 == 1:
            made.append(helper.make_node("Add", [now, "x"], [after]))
        else:
            made.append(helper.make_node("Mul", [now, f"c{i - 3}" if i > 3 else "x"], [after]))
        now = after
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in ("x", now)]
    graph = helper.make_graph(made, "chain", value[:1], value[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def seconds(command, repeats=REPEATS):
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - began)
    return best


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cameo, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    numpy.save(folder / "x.npy", numpy.ones(8, numpy.float32))
    empty = seconds([sys.executable, "-c", "import numpy, onnxruntime"])
    for nodes in [int(n) for n in sys.argv[3:]] or [20000, 40000, 160000]:
        path = folder / f"chain_{nodes}.onnx"
        write_chain(path, nodes)
        ours = seconds([cameo, "run", "--threads", "1", "--input", f"x={folder / 'x.npy'}", str(path)])
        line = f"{nodes} nodes, file to result: {ours:.3f} s"
        if nodes <= PEER_MOST:
            peer = seconds([sys.executable, "-c", PEER, str(path)], 1) - empty
            line += f", onnxruntime {peer:.3f} s, {peer / ours:.1f}x"
        print(line, flush=True)


if __name__ == "__main__":
    main()
