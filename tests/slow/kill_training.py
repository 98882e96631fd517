#!/usr/bin/env python3
# Kills a training at random moments, resumes it, and compares the result with an unbroken run.
# SPDX-License-Identifier: Apache-2.0
"""usage: kill_training.py; $CAMEO is the command, $TESTS the folder of tests, KILLS how often (50)"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE = "softmax_momentum_standard"
KILLS = int(os.environ.get("KILLS", "50"))


def command(folder, out, *more):
    models = Path(os.environ["TESTS"]) / "models"
    return [os.environ["CAMEO"], "train", str(models / f"training_{CASE}.onnx"), "--data",
            str(models / "training" / f"{CASE}.npz"), "--threads", "1", "--batch-size", "7",
            "--epochs", "60", "--seed", "11", "-o", str(folder / out), *more]


def start(arguments):
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def whole_run(folder):
    began = time.monotonic()
    done = start(command(folder, "whole.onnx", "--log", str(folder / "whole.jsonl"), "--checkpoint",
                         str(folder / "unused"), "--checkpoint-every", "3"))
    complaint = done.communicate()[1]
    if done.returncode != 0:
        sys.exit(f"the unbroken run failed: {complaint.decode()}")
    return time.monotonic() - began


def broken_run(folder, number, seconds, chance):
    """Killed until it comes through; how often that was, and what is wrong with it."""
    out = f"broken{number}.onnx"
    log, checkpoints = folder / f"{number}.jsonl", folder / f"ck{number}"
    kills = 0
    while True:
        run = start(command(folder, out, "--log", str(log), "--checkpoint", str(checkpoints),
                            "--checkpoint-every", "3", "--resume"))
        try:
            complaint = run.communicate(timeout=chance.uniform(0, seconds / 2))[1]
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.communicate()
            kills += 1
            continue
        if run.returncode != 0:
            return kills, f"it could not go on: {complaint.decode().strip()}"
        break
    for mine, whole in ((folder / out, "whole.onnx"), (log, "whole.jsonl")):
        if mine.read_bytes() != (folder / whole).read_bytes():
            return kills, f"{mine.name} differs from {whole}"
    return kills, None


def main():
    chance = random.Random(3)
    passed = failed = kills = number = 0
    with tempfile.TemporaryDirectory(prefix="cameo-kill-") as name:
        folder = Path(name)
        seconds = whole_run(folder)
        while kills < KILLS:
            more, wrong = broken_run(folder, number, seconds, chance)
            number += 1
            kills += more
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print(f"run {number}, killed {more} times: {wrong}")
    print(f"{kills} kills in {number} runs")
    print(f"# counts: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
