#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One network in another runtime, run when asked: what `cameo bench --on-request` is for ours.

usage: peer.py ort|torch|compiled --threads N --folder FOLDER [--train] NAME
ort runs FOLDER/NAME.onnx in ONNX Runtime; torch and compiled train or run the module that bench/models.py makes, eager or
through torch.compile. Says "ready", then reads numbers of runs, a line each, and prints their milliseconds; the end of its
input gets a line of JSON: time to the first result (from the path; libraries are loaded before), peak memory above the bare
process. Inputs are those of FOLDER/NAME.npz.
"""

import argparse
import json
import os
import sys
import time

import numpy


def resident(what="VmRSS"):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what + ":"))


def forget_most():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # then the most of all time stays


class Ort:
    def __init__(self, options):
        import onnxruntime
        self.runtime, self.options = onnxruntime, options
        arrays = numpy.load(os.path.join(options.folder, options.name + ".npz"))
        self.feeds = {name: arrays[name] for name in arrays.files}

    def open(self):
        settings = self.runtime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = self.options.threads, 1
        settings.log_severity_level = 3
        path = os.path.join(self.options.folder, self.options.name + ".onnx")
        self.session = self.runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def run(self):
        return self.session.run(None, self.feeds)


class Torch:
    def __init__(self, options):
        import torch
        import models
        self.torch, self.options = torch, options
        torch.set_num_threads(options.threads)
        torch.manual_seed(0)
        self.case = next(case for case in models.CASES if case.name == options.name)
        kind = ".train.npz" if options.train else ".npz"
        arrays = numpy.load(os.path.join(options.folder, options.name + kind))
        self.inputs = [torch.from_numpy(arrays[name]) for name in self.case.input_names]
        self.target = torch.from_numpy(arrays["target"]) if options.train else None
        torch.nn.functional.linear(torch.rand(2, 2), torch.rand(2, 2))  # what loads with the first operator

    def open(self):
        import models
        torch, train = self.torch, self.options.train
        self.module = models.module_of(self.case, training=train)
        if train:
            functions = torch.nn.functional
            self.loss = functions.mse_loss if self.case.train["loss"] == "mse" else functions.cross_entropy
            self.optimizer = models.optimizer_of(self.case, self.module)
        self.call = self.module
        if self.options.runtime == "compiled":
            torch.set_float32_matmul_precision("highest")
            self.call = torch.compile(self.module)

    def run(self):
        if self.target is None:
            with self.torch.no_grad():
                return self.call(*self.inputs)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.call(*self.inputs), self.target)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runtime", choices=["ort", "torch", "compiled"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("name")
    options = parser.parse_args()
    side = (Ort if options.runtime == "ort" else Torch)(options)
    forget_most()
    bare = resident()
    began = time.perf_counter()
    side.open()
    side.run()
    first = time.perf_counter() - began
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            began = time.perf_counter()
            side.run()
            times.append((time.perf_counter() - began) * 1e3)
        print(*times, flush=True)
    print(json.dumps({"first_result_ms": first * 1e3, "peak_bytes": max(0, resident("VmHWM") - bare)}))


if __name__ == "__main__":
    main()
