"""Compiled training steps follow PyTorch's losses.

usage: check_compiled.py CAMEO MODELS [--sample] [NAME...]

CAMEO is the command, MODELS the folder tests/models. Each model of MODELS/train is prepared with each
optimizer, its training step compiled to a shared library and called through its C functions for 24
steps. What cannot be compiled is counted apart, with its reason. --sample: every optimizer with one
model only, every model with one optimizer at least.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from check_portable import SETTINGS, batch, cameo
from compiled_step import Step


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
        })["loss"]
        wanted = expected["optimizers"][optimizer][number]
        assert abs(got - wanted) <= 1e-3 * abs(wanted), \
            f"{folder} {optimizer}: step {number}: {got}, PyTorch has {wanted}"
    return ""


def main():
    command, models = sys.argv[1:3]
    sample = "--sample" in sys.argv[3:]
    names = [a for a in sys.argv[3:] if a != "--sample"] or ["mlp", "regress", "lstm", "lenet"]
    passed, refused = 0, 0
    for at, name in enumerate(names):
        for optimizer in list(SETTINGS)[at :: len(names)] if sample else SETTINGS:
            with tempfile.TemporaryDirectory(prefix="cameo-step-") as work:
                reason = check(command, os.path.join(models, "train", name), optimizer, work)
            print(f"{name} {optimizer}: {reason or 'follows'}", flush=True)
            passed += not reason
            refused += bool(reason)
    print(f"# counts: {passed} passed, {refused} failed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
