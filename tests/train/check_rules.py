"""Losses and optimizers follow their references for 24 steps, run and compiled.

usage: check_rules.py CAMEO [--compile] [NAME...]

CAMEO is the command. Each tests/train/rules/NAME.json holds flags and what the reference (PyTorch or optax) had as losses and
as weights at the end: tools/gen_rule_cases.py wrote it. --compile: the step is compiled too.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import rule_problem as problem
from compiled_step import Step

TOLERANCE = 1e-5
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rules")


def cameo(command, *words):
    done = subprocess.run([command, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"cameo {' '.join(words)}: {done.stderr.strip()}"


def distance(got, wanted):
    got, wanted = np.float64(got), np.float64(wanted)
    return float(np.max(np.abs(got - wanted) / (1 + np.abs(wanted))))


def train(command, work, trained, *more):
    cameo(command, "train", os.path.join(work, "trainable.onnx"), "-d", os.path.join(work, "data.npz"), "-b",
          str(problem.BATCH), "--no-shuffle", "-o", trained, *more)


def validated(case):
    return "plateau" in case["flags"]


def follow(command, work, case):
    """How far losses and weights of `cameo train` are from the reference."""
    trained, log = os.path.join(work, "trained.onnx"), os.path.join(work, "log.jsonl")
    more = ["--steps", str(problem.STEPS)]
    if validated(case):
        more = ["--epochs", str(problem.STEPS * problem.BATCH // problem.ROWS), "--validate",
                os.path.join(work, "validation.npz")]
    train(command, work, trained, *more, "--log", log)
    rows = [json.loads(line) for line in open(log)]
    losses = [row["loss"] for row in rows if "loss" in row and "step" in row]
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(trained).graph.initializer}
    return max(distance(losses, case["losses"]),
               *(distance(tensors[name].ravel(), value) for name, value in case["weights"].items()))


def resume(command, work):
    """A run that is cut off after four epochs and resumed gives the same bytes."""
    trained, again = os.path.join(work, "trained.onnx"), os.path.join(work, "again.onnx")
    epochs = problem.STEPS * problem.BATCH // problem.ROWS
    for count in epochs // 2, epochs:
        train(command, work, again, "--epochs", str(count), "--validate", os.path.join(work, "validation.npz"),
              "--checkpoint", os.path.join(work, "checkpoints"), "--resume")
    assert open(trained, "rb").read() == open(again, "rb").read(), "a resumed run gives other bytes"


def follow_compiled(command, work, case):
    path = os.path.join(work, "step.so")
    cameo(command, "compile", os.path.join(work, "trainable.onnx"), "-o", path, "--train-step", "--name", "step")
    step = Step(path)
    x, y = problem.data(case["target"])
    losses = [step({"x": problem.batch(x, n), "target": problem.batch(y, n)})["loss"] for n in range(problem.STEPS)]
    return distance(losses, case["losses"])


def check(command, name, compiled):
    case = json.load(open(os.path.join(FOLDER, f"{name}.json")))
    with tempfile.TemporaryDirectory(prefix="cameo-rules-") as work:
        with open(os.path.join(work, "net.onnxtxt"), "w") as file:
            file.write(problem.text(case["last"]))
        x, y = problem.data(case["target"])
        np.savez(os.path.join(work, "data.npz"), x=x, target=y)
        if validated(case):
            x, y = problem.validation()
            np.savez(os.path.join(work, "validation.npz"), x=x, target=y)
        cameo(command, "prepare", os.path.join(work, "net.onnxtxt"), *case["flags"], "-o",
              os.path.join(work, "trainable.onnx"))
        results = {"run": follow(command, work, case)}
        if validated(case):
            resume(command, work)
        elif compiled: # a compiled step measures nothing
            results["compiled"] = follow_compiled(command, work, case)
    return results


def main():
    command = sys.argv[1]
    compiled = "--compile" in sys.argv[2:]
    names = [a for a in sys.argv[2:] if a != "--compile"]
    passed = failed = 0
    for name in names or sorted(f[:-5] for f in os.listdir(FOLDER) if f.endswith(".json")):
        try:
            results = check(command, name, compiled)
        except AssertionError as reason:
            print(f"{name}: {reason}")
            failed += 1
            continue
        good = all(value <= TOLERANCE for value in results.values())
        print(f"{name}: " + ", ".join(f"{how} {value:.1e}" for how, value in results.items()) + ("" if good else "  TOO FAR"))
        passed += good
        failed += not good
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
