"""Compiled training steps follow PyTorch's losses.

usage: check_compiled.py CAMEO MODELS [NAME...]

CAMEO is the command, MODELS the folder tests/models. Each model of MODELS/train is prepared with each
optimizer, its training step compiled to a shared library and called through its C functions for 24
steps. What cannot be compiled is counted apart, with its reason.
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from check_portable import SETTINGS, batch, cameo


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def aligned(size):
    """size bytes at a multiple of 64."""
    memory = np.zeros(size + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip:skip + size]


class Step:
    """A compiled step, called as a program in C would."""

    def __init__(self, path):
        header = open(path.replace(".so", ".h")).read()
        self.inputs = re.findall(r"STEP_IN_\w+ = \d+, /\* ([^:]+):", header)
        self.outputs = re.findall(r"STEP_OUT_\w+ = \d+, /\* ([^:]+):", header)
        self.library = ctypes.CDLL(path)
        self.library.step_error.restype = ctypes.c_char_p
        self.state = aligned(int(re.search(r"STEP_STATE_BYTES (\d+)", header)[1]))
        self.arena = aligned(1 << 26)
        self.library.step_initialize(ctypes.c_void_p(self.state.ctypes.data))

    def __call__(self, feeds):
        arrays = [np.ascontiguousarray(feeds[name]) for name in self.inputs]
        shapes = [np.array(array.shape + (0,), np.int64) for array in arrays]
        results = [np.zeros(1, np.float64) for _ in self.outputs]  # scalars of up to 8 bytes
        inputs = (Tensor * max(len(arrays), 1))(
            *[Tensor(a.ctypes.data, s.ctypes.data, a.nbytes) for a, s in zip(arrays, shapes)]
        )
        outputs = (Tensor * max(len(results), 1))(
            *[Tensor(a.ctypes.data, None, a.nbytes) for a in results]
        )
        code = self.library.step_step(
            ctypes.c_void_p(self.state.ctypes.data), inputs, outputs,
            ctypes.c_void_p(self.arena.ctypes.data), ctypes.c_size_t(self.arena.nbytes),
        )
        assert code == 0, self.library.step_error(code).decode()
        return float(results[self.outputs.index("loss")].view(np.float32)[0])


def check(command, folder, optimizer, work):
    """The reason why it cannot be compiled, or ""."""
    expected = json.load(open(os.path.join(folder, "trajectory.json")))
    data = np.load(os.path.join(folder, "data.npz"))
    trainable = os.path.join(work, "trainable.onnx")
    path = os.path.join(work, f"{os.path.basename(folder)}_{optimizer}.so")
    loss = {"ce": "cross-entropy", "mse": "mse"}[expected["loss"]]
    cameo(
        command, "prepare", os.path.join(folder, "model.onnx"), "--loss", loss, "--optimizer",
        optimizer, *SETTINGS[optimizer], "-o", trainable,
    )
    done = subprocess.run(
        [command, "compile", trainable, "-o", path, "--train-step", "--name", "step"],
        capture_output=True, text=True,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    step = Step(path)
    for number in range(expected["steps"]):
        got = step({
            "x": batch(data["x"], number, expected["batch"]),
            "target": batch(data["y"], number, expected["batch"]),
        })
        wanted = expected["optimizers"][optimizer][number]
        assert abs(got - wanted) <= 1e-3 * abs(wanted), \
            f"{folder} {optimizer}: step {number}: {got}, PyTorch has {wanted}"
    return ""


def main():
    command, models = sys.argv[1:3]
    names = sys.argv[3:] or ["mlp", "regress", "lstm", "lenet"]
    passed, refused = 0, 0
    for name in names:
        for optimizer in SETTINGS:
            with tempfile.TemporaryDirectory(prefix="cameo-step-") as work:
                reason = check(command, os.path.join(models, "train", name), optimizer, work)
            print(f"{name} {optimizer}: {reason or 'follows'}", flush=True)
            passed += not reason
            refused += bool(reason)
    print(f"# counts: {passed} passed, {refused} failed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
