#!/usr/bin/env python3
# Compiled networks beside interpreted ones: speed, size, time to compile and to the first result.
# SPDX-License-Identifier: Apache-2.0
"""usage: compiled.py CAMEO MODELS [--pure] [--rounds N] [--runs N] [--json FILE] [NAME...]

Compiles networks of the benchmark (MODELS holds NAME.onnx and NAME.npz) for this machine, checks that results agree
with the interpreter's, and measures both in turns on one thread: the best time of each. The ratio is compiled over
interpreted: above 1 the compiled one is slower. Code is what the library holds beside weights, the peer's the size of
ONNX Runtime's own library where it is installed. A network that fails is a row with the reason, and the exit code is 1.
"""

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from side import Side

NETWORKS = ["mlp_b64", "lenet_b64", "resnet18", "resnet50", "mobilenet_v2", "shufflenet_v2", "efficientnet_b0",
            "bert_mini_b1", "gpt2_1", "lstm_b1"]


def start(cameo, path, inputs):
    command = [cameo, "bench", str(path), "--threads", "1", "--on-request", "--json"]
    for name, file in inputs.items():
        command += ["--input", f"{name}={file}"]
    return Side(command)


def results(cameo, path, inputs, folder):
    command = [cameo, "run", str(path), "--threads", "1", "--output", str(folder)]
    for name, file in inputs.items():
        command += ["--input", f"{name}={file}"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return {file.name: np.load(file) for file in folder.glob("*.npy")}


def worst_difference(a, b):
    """Of all outputs, relative to the largest element."""
    worst = 0.0
    for name, x in a.items():
        y = b[name].astype(np.float64)
        worst = max(worst, float(np.abs(x - y).max() / (np.abs(x).max() + 1e-30)) if x.size else 0)
    return worst


def measure(args, name, folder):
    model = args.models / f"{name}.onnx"
    library = folder / f"{name}.so"
    inputs = {}
    for key, array in np.load(args.models / f"{name}.npz").items():
        inputs[key] = folder / f"{name}_{len(inputs)}.npy"
        np.save(inputs[key], array)
    began = time.perf_counter()
    done = subprocess.run([args.cameo, "compile", str(model), "-o", str(library), "--cpu", "native"]
                          + (["--pure"] if args.pure else []), capture_output=True, text=True, check=False)
    row = {"network": name, "compile_s": time.perf_counter() - began}
    if done.returncode:
        return row | {"failed": done.stderr.strip().splitlines()[-1]}
    for line in done.stdout.splitlines() + done.stderr.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in ("code", "weights", "arena") and words[2] == "bytes":
            row[words[0]] = int(words[1].replace(",", ""))
    (folder / "a").mkdir(exist_ok=True)
    (folder / "b").mkdir(exist_ok=True)
    row["difference"] = worst_difference(results(args.cameo, model, inputs, folder / "a"),
                                         results(args.cameo, library, inputs, folder / "b"))
    pair = [start(args.cameo, library, inputs), start(args.cameo, model, inputs)]
    for _ in range(args.rounds):
        for side in pair:
            side.run(args.runs)
    row["compiled_ms"], row["interpreted_ms"] = (min(side.times) for side in pair)
    row["ratio"] = row["compiled_ms"] / row["interpreted_ms"]
    ends = [side.close() for side in pair]
    row["first_ms"], row["interpreted_first_ms"] = (end["first_result_ms"] for end in ends)
    return row


def peer_bytes():
    found = importlib.util.find_spec("onnxruntime")
    if not found:
        return None
    files = Path(found.origin).parent.glob("capi/*pybind11_state*.so")
    return max((file.stat().st_size for file in files), default=None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("cameo")
    parser.add_argument("models", type=Path)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    rows = []
    print("| network | compiled | interpreted | ratio | difference | compile | code | first result, interpreted |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in args.names or NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = measure(args, name, Path(folder))
            except (RuntimeError, subprocess.CalledProcessError, KeyError) as error:
                row = {"network": name, "failed": str(getattr(error, "stderr", None) or error).strip()}
        rows.append(row)
        if "failed" in row:
            print(f"| {name} | {row['failed']} | | | | | | |", flush=True)
            continue
        print(f"| {name} | {row['compiled_ms']:.2f} ms | {row['interpreted_ms']:.2f} ms | {row['ratio']:.2f} | "
              f"{row['difference']:.0e} | {row['compile_s']:.1f} s | {row['code'] / 1e3:,.0f} kB | "
              f"{row['first_ms']:.1f} ms, {row['interpreted_first_ms']:.1f} |", flush=True)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"\ngeometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, worst {max(ratios):.2f}, "
              f"{len(ratios)} of {len(rows)} networks")
    if peer_bytes():
        print(f"ONNX Runtime's library: {peer_bytes() / 1e6:.1f} MB")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if len(ratios) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
