#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of models beside ONNX Runtime, measured in turns in the same minutes.

usage: peers.py [--program FILE] [--threads N[,N]] [--rounds N] [--seconds S] MODEL...
MODEL is a file, or a folder that holds model.onnx. Each side runs a while, then the other, so that
what else the machine does hits both; the ratio is ONNX Runtime's time over ours: above 1 we are
faster. Inputs are numbers between 0 and 1, unknown sizes are 1.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPES = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64,
         "tensor(int32)": numpy.int32, "tensor(double)": numpy.float64, "tensor(bool)": numpy.bool_}


class Ours:
    def __init__(self, program, path, threads):
        self.process = subprocess.Popen([program, "--serve", "--threads", str(threads), path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{program} cannot run {path}")

    def run(self, count):
        print(count, file=self.process.stdin, flush=True)
        return [float(word) for word in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peer:
    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])
        random = numpy.random.default_rng(1)
        self.feeds = {}
        for value in self.session.get_inputs():
            shape = [size if isinstance(size, int) else 1 for size in value.shape]
            numbers = random.random(shape) if "float" in value.type else numpy.zeros(shape)
            self.feeds[value.name] = numbers.astype(TYPES[value.type])
        self.run(3)

    def run(self, count):
        times = []
        for _ in range(count):
            began = time.perf_counter()
            self.session.run(None, self.feeds)
            times.append((time.perf_counter() - began) * 1e3)
        return times

    def close(self):
        pass


def measure(sides, rounds, seconds):
    """The times of each side, in turns."""
    counts = [max(1, int(seconds * 1e3 / min(side.run(3)))) for side in sides]
    times = [[] for _ in sides]
    for _ in range(rounds):
        for i, side in enumerate(sides):
            time.sleep(0.05)  # until the other side's threads have stopped spinning
            times[i] += side.run(counts[i])
    return times


def name_of(path):
    parent = os.path.basename(os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    return parent if name == "model" else name


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "bench", "run_model"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    for path in arguments.models:
        if os.path.isdir(path):
            path = os.path.join(path, "model.onnx")
        for threads in [int(word) for word in arguments.threads.split(",")]:
            sides = [Ours(arguments.program, path, threads), Peer(path, threads)]
            ours, peer = measure(sides, arguments.rounds, arguments.seconds)
            for side in sides:
                side.close()
            print(f"{name_of(path):24} {threads}T  best {min(ours):8.3f} ms"
                  f"  onnxruntime {min(peer):8.3f} ms  {min(peer) / min(ours):5.2f}x"
                  f"   median {statistics.median(ours):8.3f} ms"
                  f"  onnxruntime {statistics.median(peer):8.3f} ms"
                  f"  {statistics.median(peer) / statistics.median(ours):5.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
