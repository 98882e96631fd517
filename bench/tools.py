#!/usr/bin/env python3
# How long checking, inferring and converting take for many nodes, beside onnx's own tools, and how much memory for
# weights that are not in the file.
# SPDX-License-Identifier: Apache-2.0
"""usage: tools.py CAMEO FOLDER [NODES...]

Writes chains of small nodes to FOLDER and times each tool of ROWS on them, file to file, in a process of its own:
processor time, best of three, the peer less what it takes to start Python. Twice the nodes shall take twice the time.
Then the same for a model with 2.5 GB of external data, in a sparse file: there the peak of memory counts.
"""

import os
import pathlib
import sys

import onnx
from onnx import TensorProto, helper
from many_nodes import write_chain

REPEATS = 3
START = "import onnx, onnx.shape_inference, onnx.version_converter"
LOAD = START + "; import sys; model = onnx.load(sys.argv[1], load_external_data=False); "

# A tool: its name, our arguments (IN and OUT are files), and Python for the peer, after LOAD.
ROWS = [
    ("check", ["check", "IN"], "onnx.checker.check_model(model, full_check=True)"),
    ("infer", ["infer", "IN", "-o", "OUT"],
     "onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), sys.argv[2])"),
    ("upgrade", ["upgrade", "IN", "--opset", "21", "-o", "OUT"],
     "onnx.save(onnx.version_converter.convert_version(model, 21), sys.argv[2])"),
]


def measure(command, repeats=REPEATS):
    """Processor seconds; None where it fails."""
    best = float("inf")
    for _ in range(repeats):
        if command[-1].endswith("out.onnx"):  # what is there would be read, to see which files it uses
            pathlib.Path(command[-1]).unlink(missing_ok=True)
        child = os.fork()
        if not child:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.execvp(command[0], command)
        _, status, used = os.wait4(child, 0)
        if status:
            return None
        best = min(best, used.ru_utime + used.ru_stime)
    return best


def measure_memory(command, folder):
    """The peak of resident memory in MB, by GNU time: what a fork of ours begins with would count too."""
    note = folder / "peak.txt"
    failed = measure(["time", "-f", "%M", "-o", str(note), *command], 1) is None
    return None if failed else int(note.read_text().split()[-1]) / 1024


def write_large(folder):
    """A model whose weights are 2.5 GB of holes in a file."""
    path, data = folder / "large.onnx", folder / "large.data"
    rows, columns, layers = 25000, 5000, 5
    with open(data, "wb") as file:
        file.truncate(4 * rows * columns * layers)
    weights = []
    for i in range(layers):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        tensor.dims.extend([rows, columns] if i % 2 == 0 else [columns, rows])
        for key, value in (("location", data.name), ("offset", 4 * rows * columns * i), ("length", 4 * rows * columns)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(layers)]
    ends = [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N", rows]),
            helper.make_tensor_value_info(f"v{layers}", TensorProto.FLOAT, ["N", columns])]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cameo, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    out = str(folder / "out.onnx")
    empty = measure([sys.executable, "-c", START])
    for nodes in [int(n) for n in sys.argv[3:]] or [10000, 40000, 160000]:
        path = str(folder / f"chain_{nodes}.onnx")
        write_chain(path, nodes)
        for name, arguments, code in ROWS:
            ours = measure([cameo, *(path if a == "IN" else out if a == "OUT" else a for a in arguments)])
            peer = measure([sys.executable, "-c", LOAD + code, path, out], 1)
            line = f"{nodes:7} nodes  {name:8} {ours:.3f} s" if ours is not None else f"{nodes:7} nodes  {name:8} failed"
            if peer is not None and ours is not None:
                line += f"  onnx {peer - empty:.3f} s  {(peer - empty) / ours:.1f}x"
            print(line + ("" if peer is not None else "  onnx failed"), flush=True)
    path = str(write_large(folder))
    for name, arguments, _ in ROWS:
        peak = measure_memory([cameo, *(path if a == "IN" else out if a == "OUT" else a for a in arguments)], folder)
        print(f"2.5 GB outside the file  {name:8} " + (f"{peak:.1f} MB" if peak is not None else "failed"))


if __name__ == "__main__":
    main()
