#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes and run times of models before and after `cameo optimize`, beside other optimizers: the table of
docs/optimize.md.

usage: optimized.py [--onnxsim PYTHON] [--rounds N] MODEL...
MODEL is a file, or a folder that holds model.onnx. Nodes in bodies of control flow count; Constant nodes do not, as
they compute nothing. PYTHON is a Python that has the package onnxsim; without one its column is empty. ONNX Runtime
writes its optimized graph at the level that fuses nodes but keeps to layouts others know (extended). The
last columns are medians of build/bench/run_model on one thread without any pass and with all of them, measured
in turns; inputs are numbers between 0 and 1, unknown sizes are 1.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAMEO = os.path.join(ROOT, "build", "cameo")
RUN_MODEL = os.path.join(ROOT, "build", "bench", "run_model")
SIMPLIFY = """
import sys, onnx, onnxsim
model, good = onnxsim.simplify(onnx.load(sys.argv[1]))
onnx.save(model, sys.argv[2])
"""


def count_graph(graph):
    count = 0
    for node in graph.node:
        count += node.op_type != "Constant"
        count += sum(count_graph(a.g) for a in node.attribute if a.HasField("g"))
    return count


def count_file(path):
    return count_graph(onnx.load(path, load_external_data=False).graph)


def optimize(path, folder):
    """Nodes with fused groups as one, and as --portable writes them."""
    out = os.path.join(folder, "optimized.onnx")
    done = subprocess.run([CAMEO, "optimize", path, "-o", out, "--json", "--portable"],
                          capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return told["nodes"], told["nodes_inlined"]


def simplify(python, path, folder):
    out = os.path.join(folder, "simplified.onnx")
    try:
        subprocess.run([python, "-c", SIMPLIFY, path, out], capture_output=True, check=True,
                       timeout=600)
        return count_file(out)
    except (subprocess.SubprocessError, OSError):
        return None


def peer(path, folder):
    out = os.path.join(folder, "peer.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = out
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return count_file(out)


def all_passes():
    listed = subprocess.run([CAMEO, "optimize", "--list"], capture_output=True, text=True, check=True)
    return ",".join(sorted({line.split()[0] for line in listed.stdout.splitlines()
                            if "cannot be left out" not in line}))


class Runner:
    def __init__(self, path, without):
        command = [RUN_MODEL, "--serve", "--threads", "1"] + (["--without", without] if without else [])
        self.process = subprocess.Popen([*command, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.ready = self.process.stdout.readline() == "ready\n"

    def run(self, count):
        print(count, file=self.process.stdin, flush=True)
        return [float(word) for word in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def times(path, rounds):
    """Median milliseconds without passes and with them; None where it does not run."""
    sides = [Runner(path, all_passes()), Runner(path, None)]
    found = [[], []]
    if all(side.ready for side in sides):
        once = max(statistics.median(side.run(3)) for side in sides)
        count = max(1, min(200, int(100 / max(once, 1e-3))))
        for _ in range(rounds):
            for side, list_ in zip(sides, found):
                list_ += side.run(count)
    for side in sides:
        side.close()
    return [statistics.median(list_) if list_ else None for list_ in found]


def show(number, digits=None):
    if number is None:
        return "-"
    return str(number) if digits is None else f"{number:.{digits}f}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--onnxsim")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    print("| network | nodes | optimized | inlined | onnxsim | ONNX Runtime | ms without passes | ms | ratio |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: |")
    for model in args.models:
        path = os.path.join(model, "model.onnx") if os.path.isdir(model) else model
        name = os.path.splitext(os.path.basename(model.rstrip("/")))[0]
        with tempfile.TemporaryDirectory() as folder:
            nodes, inlined = optimize(path, folder)
            others = [simplify(args.onnxsim, path, folder) if args.onnxsim else None, peer(path, folder)]
        before, after = times(path, args.rounds)
        ratio = before / after if before and after else None
        print(f"| {name} | {count_file(path)} | {nodes} | {inlined} | {show(others[0])} | {show(others[1])} | "
              f"{show(before, 2)} | {show(after, 2)} | {show(ratio, 2)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
