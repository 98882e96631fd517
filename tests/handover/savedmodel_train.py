#!/usr/bin/env python3
"""Trainings that go on in TensorFlow: `train_step` of a SavedModel against `cameo train`.

    savedmodel_train.py CAMEO CASES [--only REGEX]

CASES has folders of model.onnx, data.npz and trajectory.json. Each model is prepared for each optimizer, trained for
8 steps by Cameo, exported, trained for 8 more steps in TensorFlow, and the losses are those that Cameo has there.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

FLAGS = {
    "sgd": ["--lr", "0.05"],
    "momentum": ["--lr", "0.02", "--momentum", "0.9"],
    "nesterov": ["--lr", "0.02", "--momentum", "0.9"],
    "adam": ["--lr", "0.002"],
    "adamw": ["--lr", "0.002", "--weight-decay", "0.01"],
    "adagrad": ["--lr", "0.02"],
    "rmsprop": ["--lr", "0.001"],
}
STEPS = 8


def cameo(command, *args):
    done = subprocess.run([command, *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(" ".join(done.stderr.split())[:800])


def losses_of(log):
    lines = (json.loads(line) for line in log.read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line and "step" in line]


def batch_of(data, step, size):
    count = len(data["x"])
    rows = [(step * size + i) % count for i in range(size)]
    return data["x"][rows], data["y"][rows]


def run(command, case, optimizer, said, scratch):
    data = np.load(case / "data.npz")
    size = said["batch"]
    loss = "cross-entropy" if said["loss"] == "ce" else said["loss"]
    common = ["--data", case / "data.npz", "--batch-size", size, "--no-shuffle"]
    prepared, half, log = scratch / "prepared.onnx", scratch / "half.onnx", scratch / "log.jsonl"
    cameo(command, "prepare", case / "model.onnx", "--loss", loss, "--optimizer", optimizer, *FLAGS[optimizer],
          "-o", prepared)
    cameo(command, "train", prepared, *common, "--steps", STEPS, "-o", half)
    cameo(command, "train", prepared, *common, "--steps", 2 * STEPS, "--log", log, "-o", scratch / "whole.onnx")
    cameo(command, "export", half, "--to", "savedmodel", "-o", scratch / "tf")
    wanted = losses_of(log)[STEPS:]
    step = tf.saved_model.load(str(scratch / "tf")).signatures["train_step"]
    spec = step.structured_input_signature[1]
    target = next(name for name in spec if name != "x")
    got = []
    for i in range(STEPS, 2 * STEPS):
        x, y = batch_of(data, i, size)
        results = step(x=tf.constant(x), **{target: tf.cast(tf.constant(y), spec[target].dtype)})
        got.append(float(results["loss"]))
    worst = max(abs(g - w) / abs(w) for g, w in zip(got, wanted))
    return worst, got, wanted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cameo")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    passed = failed = 0
    for case in sorted(options.cases.iterdir()):
        if not (case / "trajectory.json").exists():
            continue
        said = json.loads((case / "trajectory.json").read_text())
        for optimizer in said["optimizers"]:
            name = f"{case.name} {optimizer}"
            if not re.search(options.only, name):
                continue
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    worst, got, wanted = run(options.cameo, case, optimizer, said, pathlib.Path(scratch))
                    fine = worst <= 1e-4 and len(wanted) == STEPS
                    print(f"{'ok' if fine else 'FAILED'} {name}: largest relative difference of {len(wanted)} losses "
                          f"{worst:.2e}", flush=True)
                    if not fine:
                        print("  got", got, "\n  expected", wanted)
                except Exception as error:  # pylint: disable=broad-except
                    fine = False
                    print(f"FAILED {name}: {type(error).__name__}: {str(error)[:900]}", flush=True)
            passed += fine
            failed += not fine
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
