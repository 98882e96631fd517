#!/usr/bin/env python3
# Exported networks trained for some steps, compared with the framework that exported them.
# SPDX-License-Identifier: Apache-2.0
"""exported.py CAMEO FOLDER...

FOLDER holds model.onnx, data.npz and expected.json: `flags` of `cameo train`, `losses` (the first and the last) and
`tensors` (the last two: tensors and numbers that the framework trains). Says for each folder whether the first and the
last loss are the framework's, and how many numbers are trained; exits 1 if a loss differs without a word about it:
the command said what the exporter changed, or the folder's `note` says that the flags cannot express the training.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

TOLERANCE = 2e-4


def train(cameo, folder, flags, scratch):
    log = os.path.join(scratch, "log.jsonl")
    common = ["--threads", "1", "--log", log, "-o", os.path.join(scratch, "out.onnx")]
    done = subprocess.run([cameo, "train", os.path.join(folder, "model.onnx"), "-d", os.path.join(folder, "data.npz"),
                           *flags, *common], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr
    with open(log) as lines:
        steps = [json.loads(line)["loss"] for line in lines]
    return (steps[0], steps[-1]), done.stderr


def numbers(cameo, folder, flags):
    kept = [f for i, f in enumerate(flags) if f not in ("--no-shuffle", "-b", "--steps") and
            (i == 0 or flags[i - 1] not in ("-b", "--steps"))]
    done = subprocess.run([cameo, "prepare", os.path.join(folder, "model.onnx"), *kept, "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        return 0, 0
    described = json.loads(subprocess.run([cameo, "info", os.path.join(folder, "model.onnx"), "--json"],
                                          capture_output=True, text=True, check=True).stdout)
    sizes = {row["name"]: row["elements"] for row in described["initializers"]}
    names = [row["name"] for row in json.loads(done.stdout)["initializers"] if row["trained"]]
    return len(names), sum(sizes.get(name, 0) for name in names)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sys.argv[2:]:
            with open(os.path.join(folder, "expected.json")) as text:
                expected = json.load(text)
            losses, said = train(sys.argv[1], folder, expected["flags"], scratch)
            tensors, count = numbers(sys.argv[1], folder, expected["flags"])
            told = "the exporter changed" in said or bool(expected["note"])
            near = losses and all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(losses, expected["losses"]))
            wrong = not near and not told
            failed += wrong
            state = "as the framework" if near else "refused" if losses is None else "another loss"
            print(f"{os.path.basename(folder.rstrip('/'))}: {state}{', which is said' if told and not near else ''}; "
                  f"{tensors} tensors, {count} numbers trained, the framework {expected['tensors'][-1]}")
            if losses is not None and not near:
                print(f"  {losses} expected {expected['losses']}")
    print(f"{len(sys.argv) - 2} networks, {failed} wrong without a word")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
