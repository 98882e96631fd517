#!/usr/bin/env python3
# What a call from Python costs, beside ONNX Runtime in the same process: bench/python.py
# SPDX-License-Identifier: Apache-2.0
"""usage: PYTHONPATH=build/python build/venv/bin/python3 bench/python.py [--rounds N]

Calls of a model with one node, feeding and fetching 100 MB, and importing the package. Both sides take turns, and the best
of many counts: a time is as good as the machine was at its quietest. A ratio below 1 means that Cameo is quicker.
"""

import argparse
import os
import subprocess
import sys
import time

import numpy
import onnxruntime

import cameo

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
one (float[{size}] x) => (float[{size}] y) {{ y = {op}(x) }}"""
BIG = 25_000_000  # floats: 100 MB


def sessions(size, op):
    """The same model on both sides, on one thread."""
    data = cameo.load(TEXT.format(size=size, op=op)).to_bytes()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return (cameo.Session(data, threads=1),
            onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]))


def best(calls, rounds, repeat):
    """Seconds of one call of each, taking turns."""
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            for _ in range(repeat):
                call()
            found[i] = min(found[i], (time.perf_counter() - begin) / repeat)
    return found


def show(what, ours, theirs, unit, scale):
    print(f"{what:40} {ours * scale:8.2f} {unit:2}  onnxruntime {theirs * scale:8.2f} {unit:2}  ratio {ours / theirs:.2f}")


def call_cost(rounds):
    for size in (1, 1000):
        ours, theirs = sessions(size, "Relu")
        feeds = {"x": numpy.ones(size, numpy.float32)}
        seconds = best([lambda: ours.run(None, feeds), lambda: theirs.run(None, feeds)], rounds, 200)
        show(f"a call, one node, {size} float{'s' * (size > 1)}", *seconds, "us", 1e6)


def large_arrays(rounds):
    """Of a model that does the least that can be done with so much: what both compute is the same. Then without computing:
    an input that is an output of Reshape or Identity need not be copied."""
    for op in ("Neg", "Identity"):
        ours, theirs = sessions(BIG, op)
        feeds = {"x": numpy.ones(BIG, numpy.float32)}
        seconds = best([lambda: ours.run(None, feeds), lambda: theirs.run(None, feeds)], max(rounds // 5, 3), 1)
        show(f"100 MB in and out, {op}", *seconds, "ms", 1e3)
    # Results written where the caller wants them.
    ours, theirs = sessions(BIG, "Neg")
    room = numpy.empty(BIG, numpy.float32)
    binding = theirs.io_binding()
    binding.bind_input("x", "cpu", 0, numpy.float32, [BIG], feeds["x"].ctypes.data)
    binding.bind_output("y", "cpu", 0, numpy.float32, [BIG], room.ctypes.data)
    seconds = best([lambda: ours.run_into({"y": room}, feeds), lambda: theirs.run_with_iobinding(binding)],
                   max(rounds // 5, 3), 1)
    show("100 MB into the caller's array, Neg", *seconds, "ms", 1e3)


def import_cost(rounds):
    """In fresh interpreters, from compiled files as pip makes them; NumPy, which ONNX Runtime imports and Cameo does not,
    is imported before."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds(module):
        code = f"import numpy, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                                    env=environment).stdout)
    pairs = [(seconds("cameo"), seconds("onnxruntime")) for _ in range(max(rounds // 5, 3))]
    show("import", min(pair[0] for pair in pairs), min(pair[1] for pair in pairs), "ms", 1e3)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    print(f"cameo {cameo.__version__}, onnxruntime {onnxruntime.__version__}, Python {sys.version.split()[0]}")
    call_cost(rounds)
    large_arrays(rounds)
    import_cost(rounds)


if __name__ == "__main__":
    main()
