"""Compiled training steps do what `cameo train` does.

usage: check_compiled_training.py CAMEO MODELS

CAMEO is the command, MODELS the folder tests/models. Trainings are compiled, called through their C
functions and held against the log of `cameo train`, every scalar of every step, and against the
variables it saves: models that draw random numbers, each with two seeds; what `cameo prepare` can
write into a training; and the trainings that the files of MODELS carry. A state that is put aside and
taken up again goes on with the same bits.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import random_models
from check_portable import cameo
from compiled_step import Step

STEPS, BATCH = 16, 3
SEEDS = (0, 12345678901234)
OPTIONS = {
    "schedule step": ["--schedule", "step", "--schedule-steps", "3", "--schedule-factor", "0.5"],
    "schedule cosine": ["--schedule", "cosine", "--schedule-steps", "12", "--warmup", "4"],
    "schedule linear": ["--schedule", "linear", "--schedule-steps", "10"],
    "clip": ["--clip-norm", "0.2"],
    "accumulate": ["--accumulate", "3"],
    "accumulate, clip, warmup": ["--accumulate", "2", "--clip-norm", "0.3", "--warmup", "3"],
    "frozen": ["--freeze", "^w1$"],
    "adamw": ["--optimizer", "adamw", "--weight-decay", "0.1"],
    "rmsprop with momentum": ["--optimizer", "rmsprop", "--momentum", "0.5"],
}


def compiled(command, model, work, *words):
    path = os.path.join(work, "step.so")
    cameo(command, "compile", model, "-o", path, "--train-step", "--name", "step", *words)
    # Of the same file name, a library would be opened only once.
    unique = os.path.join(work, f"step{len(os.listdir(work))}.so")
    for ending in (".so", ".h"):
        os.rename(path.replace(".so", ending), unique.replace(".so", ending))
    return Step(unique)


def trained(command, model, data, work, steps, batch, *words):
    """What `cameo train` gives: a dictionary of scalars a step, and the variables afterwards."""
    arrays, log = os.path.join(work, "data.npz"), os.path.join(work, "log")
    out = os.path.join(work, "trained.onnx")
    np.savez(arrays, **data)
    if os.path.exists(log):
        os.remove(log)
    cameo(command, "train", model, "--data", arrays, "--no-shuffle", "--steps", str(steps),
          "--batch-size", str(batch), "--log", log, "-o", out, *words)
    lines = [json.loads(line) for line in open(log)]
    return [line for line in lines if "step" in line and "loss" in line][:steps], onnx.load(out)


def same(got, wanted, what):
    # Steps of RMSprop enlarge last bits, in proportion to the largest number of the tensor.
    largest = max(1, np.abs(wanted).max(initial=0))
    assert np.allclose(got, wanted, rtol=1e-4, atol=2e-5 * largest), f"{what}: {got}, cameo train has {wanted}"


def variables(model):
    graphs = [model.graph] + [entry.algorithm for entry in model.training_info]
    return {t.name: onnx.numpy_helper.to_array(t) for graph in graphs for t in graph.initializer}


def rows(data, number, batch):
    """Those of a step; the data goes round."""
    count = len(next(iter(data.values())))
    at = number * batch % count
    return {name: array[at:at + batch] for name, array in data.items()}


def follow(step, data, log, model, batch):
    for number, line in enumerate(log):
        got = step(rows(data, number, batch))
        for name in got:
            same(got[name], line[name], f"step {number + 1}: {name}")
    wanted = variables(model)
    for name in step.places:
        if name in wanted:
            array = wanted[name]
            same(step.variable(name).view(array.dtype).reshape(array.shape), array, name)


def check_resumed(step, data):
    """A copy of the state goes on as the state itself does."""
    for number in range(3):
        step(rows(data, number, BATCH))
    aside = step.state.copy()
    first = [step(rows(data, number, BATCH)) for number in range(3, 8)]
    end = step.state.copy()
    step.state[:] = aside
    assert first == [step(rows(data, number, BATCH)) for number in range(3, 8)], "losses differ"
    assert (end == step.state).all(), "the state is another"


def check_failed(step, data):
    """A step that fails after it has drawn leaves the state, and the next one draws the same."""
    feeds, before = rows(data, 0, BATCH), step.state.copy()
    try:
        step({**feeds, "x": feeds["x"] * np.float32("nan")})
    except AssertionError as reason:
        assert "no probabilities" in str(reason), reason
    else:
        raise AssertionError("NaN has probabilities to draw from")
    assert (before == step.state).all(), "a step that failed changed the state"


def check_random(command, name, work):
    rng = np.random.default_rng(1)
    plain, model = os.path.join(work, "plain.onnx"), os.path.join(work, "model.onnx")
    if name == "entries":
        data = random_models.make_entries(model, rng)
    else:
        data = random_models.make(name, plain, rng)
        cameo(command, "prepare", plain, "--loss", "cross-entropy", "--optimizer", "momentum",
              "--lr", "0.1", "-o", model)
    batch = 6 if name == "entries" else BATCH
    steps = 4 if name == "entries" else STEPS
    step = compiled(command, model, work)
    step.seed(77)  # what is drawn goes back to its beginning
    step(rows(data, 0, batch))
    seen = set()
    for seed in SEEDS:
        log, after = trained(command, model, data, work, steps, batch, "--seed", str(seed))
        step.library.step_initialize(step.address())
        if seed:
            step.seed(seed)
        follow(step, data, log, after, batch)
        seen.add(log[0]["loss"])
    assert len(seen) == len(SEEDS), "the seed changes nothing"
    if name != "entries":
        check_resumed(step, data)
    if name == "generators":
        check_failed(step, data)


def check_options(command, words, work):
    plain, model = os.path.join(work, "plain.onnx"), os.path.join(work, "model.onnx")
    data = random_models.make("dropout", plain, np.random.default_rng(2))
    optimizer = [] if "--optimizer" in words else ["--optimizer", "adam"]
    cameo(command, "prepare", plain, "--loss", "cross-entropy", *optimizer, "--lr", "0.02", *words,
          "-o", model)
    log, after = trained(command, model, data, work, STEPS, BATCH)
    follow(compiled(command, model, work), data, log, after, BATCH)


def check_later(command, work):
    """A training that was begun goes on where it was: counters and moments are those of the file."""
    plain, model = os.path.join(work, "plain.onnx"), os.path.join(work, "model.onnx")
    data = random_models.make("smooth", plain, np.random.default_rng(3))
    cameo(command, "prepare", plain, "--loss", "cross-entropy", "--optimizer", "adam", "--lr", "0.02",
          "--schedule", "linear", "--schedule-steps", "20", "-o", model)
    trained(command, model, data, work, 5, BATCH)
    begun = os.path.join(work, "begun.onnx")
    os.rename(os.path.join(work, "trained.onnx"), begun)
    log, after = trained(command, begun, data, work, STEPS, BATCH)
    follow(compiled(command, begun, work), data, log, after, BATCH)
    log, after = trained(command, begun, data, work, STEPS, BATCH, "--init")
    follow(compiled(command, begun, work, "--init"), data, log, after, BATCH)


def check_carried(command, models, name, work):
    """The training that a file carries, with what its maker says comes of it."""
    model = os.path.join(models, f"training_{name}.onnx")
    expected = json.load(open(os.path.join(models, "training", f"{name}.json")))
    data = dict(np.load(os.path.join(models, "training", f"{name}.npz")))
    words = ["--init"] if expected["init"] else []
    log, after = trained(command, model, data, work, expected["steps"], expected["batch"], *words)
    follow(compiled(command, model, work, *words), data, log, after, expected["batch"])


def main():
    command, models = sys.argv[1:3]
    carried = [name[:-5] for name in sorted(os.listdir(os.path.join(models, "training")))
               if name.endswith(".json")]
    checks = [(name, check_random, (name,)) for name in [*random_models.RANDOM, "entries"]]
    checks += [(name, check_options, (words,)) for name, words in OPTIONS.items()]
    checks += [("later", check_later, ())]
    checks += [(name, check_carried, (models, name)) for name in carried]
    failed = 0
    for name, check, arguments in checks:
        with tempfile.TemporaryDirectory(prefix="cameo-step-") as work:
            try:
                check(command, *arguments, work)
                print(f"{name}: follows", flush=True)
            except (AssertionError, subprocess.SubprocessError) as reason:
                print(f"{name}: {reason}", flush=True)
                failed += 1
    print(f"# counts: {len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
