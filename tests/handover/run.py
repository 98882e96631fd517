"""What is handed over, judged by its framework: run.py BUILD [--only suite,models,..] [--cases FOLDER]

suite: ONNX's node suite through the generated code (node_suite.py). models: networks agree with what was recorded, their
code is as `ruff format` leaves it, passes `ruff check`, and goes through torch.compile(fullgraph=True) and torch.export.
jax: trainings of generated JAX code, and cameo.jax (test_jax_code.py).
training: the next 8 losses of train.py are those of `cameo train`, for every optimizer that both have.
savedmodel: the node suite through SavedModels, and the losses of their train_step (savedmodel.py, savedmodel_train.py).
setups: trainings of PyTorch, Keras and JAX become files that `cameo train` goes on with (test_export_training_*.py).
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINED = os.path.join(HERE, "..", "models", "train")
OPTIMIZERS = ("sgd momentum nesterov adam adamw adagrad rmsprop adadelta adamax nadam radam asgd adafactor").split()
LOSSES = {"ce": "cross-entropy", "mse": "mse"}

CAPTURE = """
import sys, torch
import check
inputs = []
def load():
    net = check.__dict__["_load"]()
    def call(*args):
        inputs.extend(args)
        return net(*args)
    return call
check.__dict__["_load"] = check.load
check.load = load
assert check.main() == 0, "results differ"
net = check._load()
with torch.no_grad():
    plain = net(*inputs)
    compiled = torch.compile(net, fullgraph=True, backend="eager")(*inputs)
exported = torch.export.export(net, tuple(inputs)).module()(*inputs)
for other in (compiled, exported):
    pairs = zip(plain, other) if isinstance(plain, tuple) else [(plain, other)]
    assert all(torch.allclose(a, b, 1e-4, 1e-4) for a, b in pairs), "compiled results differ"
"""


def call(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    return "" if done.returncode == 0 else (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]


def programs(build, cameo):
    """Parts that are programs of their own: they print counts and exit with 1 if anything failed."""
    suite = os.path.join(build, "onnx-suite", "node")
    return {
        "suite": [["node_suite.py", cameo, suite], ["node_suite.py", cameo, suite, "--to", "jax-code"]],
        "jax": [["test_jax_code.py", cameo]],
        "savedmodel": [["savedmodel.py", cameo, suite], ["savedmodel_train.py", cameo, TRAINED]],
        "setups": [[f"test_export_training_{name}.py"] for name in ("torch", "keras", "jax")],
    }


class Counts:
    def __init__(self):
        self.passed = self.failed = 0

    def take(self, name, why):
        self.passed += not why
        self.failed += bool(why)
        if why:
            print(f"{name}: {why}")


def models(cameo, folders, counts):
    for folder in folders:
        name = os.path.basename(folder)
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "out")
            why = call([cameo, "export", os.path.join(folder, "model.onnx"), "--to", "pytorch-code", "-o", out])
            why = why or call([sys.executable, "check.py"], cwd=out)
            counts.take(f"{name}, results", why)
            if not os.path.isdir(out):
                continue
            ruff = os.path.join(os.path.dirname(sys.executable), "ruff")
            counts.take(f"{name}, ruff format", call([ruff, "format", "--check", "-q", "."], cwd=out))
            counts.take(f"{name}, ruff check", call([ruff, "check", "-q", "."], cwd=out))
            counts.take(f"{name}, compiled and exported", call([sys.executable, "-c", CAPTURE], cwd=out))


def losses_of(text):
    return [json.loads(line)["loss"] for line in text.splitlines() if line.startswith("{")]


def train(cameo, folder, loss, optimizer, scratch):
    data = os.path.join(folder, "data.npz")
    prepared, out, log = (os.path.join(scratch, n) for n in ("prepared.onnx", "code", "ours.jsonl"))
    flags = ["--loss", loss, "--optimizer", optimizer, "--target", "y"]
    why = call([cameo, "prepare", os.path.join(folder, "model.onnx"), *flags, "-o", prepared])
    why = why or call([cameo, "export", prepared, "--to", "pytorch-code", "--no-check", "-o", out])
    steps = ["--data", os.path.abspath(data), "--batch-size", "16", "--steps", "8"]
    done = os.path.join(scratch, "trained.onnx")
    why = why or call([cameo, "train", prepared, *steps, "--no-shuffle", "--log", log, "-o", done])
    if why:
        return why
    theirs = subprocess.run([sys.executable, "train.py", *steps], cwd=out, capture_output=True, text=True)
    if theirs.returncode:
        return theirs.stderr.strip().splitlines()[-1]
    with open(log, encoding="utf-8") as file:
        ours = losses_of(file.read())
    pairs = list(zip(ours, losses_of(theirs.stdout)))
    if len(pairs) != 8:
        return f"{len(pairs)} losses"
    worst = max(abs(a - b) / abs(a) for a, b in pairs)
    return "" if worst <= 1e-4 else f"losses differ by {worst:.1e}"


def training(cameo, counts):
    for name in sorted(os.listdir(TRAINED)):
        folder = os.path.join(TRAINED, name)
        with open(os.path.join(folder, "trajectory.json"), encoding="utf-8") as file:
            loss = LOSSES[json.load(file)["loss"]]
        for optimizer in OPTIMIZERS:
            with tempfile.TemporaryDirectory() as scratch:
                counts.take(f"{name}, {optimizer}", train(cameo, folder, loss, optimizer, scratch))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--only", default="suite,models,training,jax,savedmodel,setups")
    parser.add_argument("--cases", help="further networks: a folder of folders with a model.onnx")
    args = parser.parse_args()
    cameo = os.path.abspath(os.path.join(args.build, "cameo"))
    only, failed = args.only.split(","), 0
    # Threads of the frameworks would take turns with those of the library; a device would change the bits.
    environment = dict(os.environ, PYTHONPATH=os.path.join(args.build, "python"), OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    for word, commands in programs(args.build, cameo).items():
        for command in commands if word in only else []:
            program = [sys.executable, os.path.join(HERE, command[0]), *command[1:]]
            failed += subprocess.call(program, env=environment) != 0
    roots = [TRAINED] + ([args.cases] if args.cases else [])
    folders = [os.path.join(root, name) for root in roots for name in sorted(os.listdir(root))]
    for word, work in (("models", lambda c: models(cameo, folders, c)), ("training", lambda c: training(cameo, c))):
        if word in only:
            counts = Counts()
            work(counts)
            print(f"{word}: {counts.passed} passed, {counts.failed} failed")
            failed += counts.failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
