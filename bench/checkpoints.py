#!/usr/bin/env python3
# How fast a large sharded checkpoint is imported, and in how much memory, beside copying its files and beside
# PyTorch loading and saving the same.
# SPDX-License-Identifier: Apache-2.0
"""usage: checkpoints.py CAMEO FOLDER [--layers N] [--shards N] [--peer PYTHON] [--keep]

Writes to FOLDER a network of residual blocks with the sizes of GPT-2 XL (42 layers: 1.6 billion parameters), its first
weights as a sparse file, and a checkpoint of random weights in safetensors files with an index. Half of the matrices
lie transposed in the network, as exporters leave them. Then, best of three, each in a process of its own, written to
the disk and synced: the files copied; `cameo import --weights-only`; PyTorch (PYTHON has torch and safetensors) loading
all files and saving one. The last line says how many bytes a second each moved, and its peak of memory.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import time

import numpy
import onnx
from onnx import TensorProto, helper

WIDTH, INNER, MIDDLE, VOCABULARY = 1600, 6400, 4800, 50257
REPEATS = 3
PEER = """
import glob, sys, torch
from safetensors.torch import load_file
weights = {}
for name in sorted(glob.glob(sys.argv[1] + '/*.safetensors')):
    weights.update(load_file(name))
with open(sys.argv[2], 'wb') as file:
    torch.save(weights, file)
    file.flush()
    import os
    os.fsync(file.fileno())
"""


def weights_of(layers):
    """(name, shape in the checkpoint, transposed in the network)"""
    yield "embedding.weight", (VOCABULARY, WIDTH), False
    for i in range(layers):
        yield f"blocks.{i}.up.weight", (INNER, WIDTH), True
        yield f"blocks.{i}.up.bias", (INNER,), False
        yield f"blocks.{i}.down.weight", (INNER, WIDTH), False
        yield f"blocks.{i}.mix.weight", (MIDDLE, WIDTH), True
        yield f"blocks.{i}.join.weight", (MIDDLE, WIDTH), False


def write_network(folder, layers):
    """The first weights are zeros, in a file that takes no room."""
    initializers, nodes, offset = [], [helper.make_node("Gather", ["embedding.weight", "tokens"], ["x0"])], 0
    for name, shape, turned in weights_of(layers):
        dims = tuple(reversed(shape)) if turned else shape
        tensor = TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        size = 4 * int(numpy.prod(dims))
        for key, value in (("location", "network.data"), ("offset", str(offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        initializers.append(tensor)
        offset += -(-size // 4096) * 4096
    for i in range(layers):
        b, x = f"blocks.{i}.", f"x{i}"
        nodes += [
            helper.make_node("MatMul", [x, b + "up.weight"], [b + "u"]),
            helper.make_node("Add", [b + "u", b + "up.bias"], [b + "v"]),
            helper.make_node("Relu", [b + "v"], [b + "w"]),
            helper.make_node("MatMul", [b + "w", b + "down.weight"], [b + "d"]),
            helper.make_node("MatMul", [x, b + "mix.weight"], [b + "m"]),
            helper.make_node("Tanh", [b + "m"], [b + "n"]),
            helper.make_node("MatMul", [b + "n", b + "join.weight"], [b + "j"]),
            helper.make_node("Sum", [x, b + "d", b + "j"], [f"x{i + 1}"]),
        ]
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "time"])
    out = helper.make_tensor_value_info(f"x{layers}", TensorProto.FLOAT, ["batch", "time", WIDTH])
    graph = helper.make_graph(nodes, "blocks", [tokens], [out], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "network.onnx").write_bytes(model.SerializeToString())
    with open(folder / "network.data", "wb") as data:
        data.truncate(offset)


def write_shard(path, rows):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _ in rows:
        size = 4 * int(numpy.prod(shape))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = numpy.random.default_rng(len(text))
    piece = draw.standard_normal(1 << 22, dtype=numpy.float32) / 50  # repeated: drawing takes longer than writing
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, shape, _ in rows:
            count = int(numpy.prod(shape))
            for start in range(0, count, piece.size):
                file.write(piece[:min(piece.size, count - start)].tobytes())


def write_checkpoint(folder, layers, shards):
    folder.mkdir()
    rows = list(weights_of(layers))
    cut = [rows[i * len(rows) // shards:(i + 1) * len(rows) // shards] for i in range(shards)]
    places = {}
    for i, part in enumerate(cut):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        write_shard(folder / name, part)
        places.update({row[0]: name for row in part})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return sum(4 * int(numpy.prod(row[1])) for row in rows)


def measure(command, folder, made):
    """Seconds and the peak of memory in MB: the best of some; what was made goes each time."""
    best, peak = float("inf"), float("inf")
    for _ in range(REPEATS):
        note = folder / "peak.txt"
        os.sync()
        start = time.monotonic()
        done = subprocess.run(["time", "-f", "%M", "-o", str(note), *command], capture_output=True, check=False)
        os.sync()
        took = time.monotonic() - start
        if done.returncode:
            raise SystemExit(f"{command[0]} failed: {done.stderr.decode()[-800:]}")
        best, peak = min(best, took), min(peak, int(note.read_text().split()[-1]) / 1024)
        for path in made:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return best, peak


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", 1)[0].removeprefix("usage: "))
    parser.add_argument("cameo")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=42)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--peer")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    folder = given.folder
    folder.mkdir(parents=True)
    write_network(folder, given.layers)
    size = write_checkpoint(folder / "checkpoint", given.layers, given.shards)
    out = folder / "out.onnx"
    copy, saved = folder / "copy", folder / "peer.pt"
    rows = [("cp", ["cp", "-r", str(folder / "checkpoint"), str(copy)], [copy]),
            ("cameo import", [given.cameo, "import", str(folder / "network.onnx"), str(folder / "checkpoint"),
                              "--weights-only", "-o", str(out)], [out, folder / "out.onnx.data"])]
    if given.peer:
        rows.append(("PyTorch", [given.peer, "-c", PEER, str(folder / "checkpoint"), str(saved)], [saved]))
    print(f"{size / 4e9:.2f} billion parameters, {size / 1e9:.2f} GB in {given.shards} files", flush=True)
    for name, command, made in rows:
        took, peak = measure(command, folder, made)
        print(f"{name}: {took:.2f} s, {size / took / 1e9:.2f} GB/s, {peak:.0f} MB", flush=True)
    if not given.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
