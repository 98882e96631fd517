"""What the tests of checkpoints share: batches, running the command, comparing, counting.

Each test trains a small network in a framework, has Cameo continue from the framework's checkpoint,
and the framework continue from Cameo's: both ways the losses must be those of the other.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CAMEO = os.environ.get("CAMEO", "build/cameo")
BATCH, CLASSES, STEPS, FIRST_STEPS = 16, 5, 8, 10
TOLERANCE = 1e-4


class Failed(Exception):
    pass


def batches(shape, count, seed=7):
    """Inputs and labels that can be learned: the label is the class whose template is nearest."""
    random = np.random.default_rng(seed)
    templates = random.standard_normal((CLASSES, *shape)).astype(np.float32)
    made = []
    for _ in range(count):
        y = random.integers(0, CLASSES, BATCH)
        x = templates[y] + random.standard_normal((BATCH, *shape)).astype(np.float32)
        made.append((x.astype(np.float32), y.astype(np.int64)))
    return made


def all_batches(shape, steps=STEPS):
    """For training before the checkpoint, for continuing from it, for continuing once more."""
    made = batches(shape, FIRST_STEPS + 2 * steps)
    return (made[:FIRST_STEPS], made[FIRST_STEPS:FIRST_STEPS + steps],
            made[FIRST_STEPS + steps:])


def cameo(*arguments):
    ran = subprocess.run([CAMEO, *map(str, arguments)], capture_output=True, text=True)
    if ran.returncode:
        raise Failed(f"cameo {' '.join(map(str, arguments))}: exit {ran.returncode}: {ran.stderr}")
    return ran.stdout


def train(model, steps, out, names=("x",)):
    """The losses of Cameo over these batches; the trained model is `out`."""
    folder = os.path.dirname(out)
    columns = list(zip(*steps))
    arrays = {name: np.concatenate(column) for name, column in zip((*names, "y"), columns)}
    data, log = os.path.join(folder, "data.npz"), os.path.join(folder, "log.jsonl")
    np.savez(data, **arrays)
    if os.path.exists(log):
        os.remove(log)
    cameo("train", model, "--data", data, "--no-shuffle", "--batch-size", len(steps[0][0]),
          "--steps", len(steps), "--target", "y", "--log", log, "-o", out)
    with open(log, encoding="utf-8") as lines:
        return [json.loads(line)["loss"] for line in lines]


def compare(what, got, wanted, tolerance=TOLERANCE):
    if len(got) != len(wanted):
        raise Failed(f"{what}: {len(got)} losses, expected {len(wanted)}")
    worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(got, wanted))
    if not worst <= tolerance:
        raise Failed(f"{what}: losses differ by {worst:.2g}\n  got      {got}\n  expected {wanted}")
    return worst


SLOT = "ai.cameo.training.slot"


def tensors_of(path):
    """Weights of a model and what its optimizer keeps, by name."""
    model = onnx.load(path)
    found = list(model.graph.initializer)
    for info in model.training_info:
        found += [t for t in info.algorithm.initializer
                  if any(e.key == SLOT for e in t.metadata_props)]
    return {t.name: numpy_helper.to_array(t) for t in found}


def same_bits(one, other):
    a, b = tensors_of(one), tensors_of(other)
    if a.keys() != b.keys():
        raise Failed(f"the model imported again has other tensors: {sorted(a.keys() ^ b.keys())}")
    wrong = [name for name in a
             if a[name].shape != b[name].shape or a[name].tobytes() != b[name].tobytes()]
    if wrong:
        raise Failed(f"imported again, these differ: {wrong}")


def round_trip(folder, model, checkpoint, steps, continued, formats, flags=(), names=("x",),
               tolerance=TOLERANCE):
    """Framework -> import -> training -> export -> framework.

    `continued` are the framework's own losses over the first batches; formats: name of a format to
    (file name, a function that loads it and gives the losses over the second batches, flags for
    importing it again).
    """
    first, second = steps
    path = lambda name: os.path.join(folder, name)
    flags = ("--loss", "cross-entropy", "--target", "y", *flags)
    cameo("import", model, checkpoint, *flags, "-o", path("imported.onnx"))
    losses = train(path("imported.onnx"), first, path("trained.onnx"), names)
    worst = [compare("Cameo continues the framework's training", losses, continued, tolerance)]
    wanted = train(path("trained.onnx"), second, path("further.onnx"), names)
    for name, (file, load, settings) in formats.items():
        written = path(file)
        cameo("export", path("trained.onnx"), "--to", name, "-o", written)
        worst.append(compare(f"{name}: the framework continues Cameo's training",
                             load(written, second), wanted, tolerance))
        cameo("import", model, written, *flags, *settings, "-o", path("again.onnx"))
        same_bits(path("trained.onnx"), path("again.onnx"))
        worst.append(compare(f"{name}: imported again", wanted,
                             train(path("again.onnx"), second, path("further.onnx"), names)))
    return max(worst)


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as to:
        json.dump(value, to)
    return path


# ---- networks, as ONNX, for frameworks that export none ----

def mlp(weights, names):
    """x -> relu(x w + b) -> .. ; weights by layer, (w [in, out], b), and what they are called."""
    nodes, value = [], "x"
    for i, (w, b) in enumerate(names):
        last = i + 1 == len(names)
        nodes.append(helper.make_node("MatMul", [value, w], [f"m{i}"]))
        nodes.append(helper.make_node("Add", [f"m{i}", b], ["logits" if last else f"a{i}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"a{i}"], [f"r{i}"]))
        value = f"r{i}"
    return graph(nodes, weights, ["N", weights[names[0][0]].shape[0]])


def cnn(weights, names):
    """A convolution, a batch norm, a dense layer; names: of conv weight and bias, scale, shift,
    mean and variance, dense weight [in, out] and bias. Flattened as N, H, W, C."""
    conv_w, conv_b, scale, shift, mean, var, dense_w, dense_b, epsilon, momentum = names
    nodes = [
        helper.make_node("Conv", ["x", conv_w, conv_b], ["c"], kernel_shape=[3, 3],
                         pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", scale, shift, mean, var], ["n"],
                         epsilon=epsilon, momentum=momentum),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["t"], ["f"]),
        helper.make_node("Gemm", ["f", dense_w, dense_b], ["logits"]),
    ]
    return graph(nodes, weights, ["N", 1, 8, 8])


def graph(nodes, weights, shape):
    initializers = [numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in weights.items()]
    made = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])], initializers)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main(tests):
    """Runs them, each in a folder of its own; a line for each, then what failed as exit code."""
    wanted = sys.argv[1:]
    failed = 0
    for test in tests:
        if wanted and not any(word in test.__name__ for word in wanted):
            continue
        folder = tempfile.mkdtemp(prefix="checkpoints-")
        try:
            worst = test(folder)
            print(f"pass {test.__name__} (losses within {worst:.1g})", flush=True)
        except Exception as why:  # pylint: disable=broad-except
            failed += 1
            detail = str(why) if isinstance(why, Failed) else traceback.format_exc()
            print(f"FAIL {test.__name__}: {detail}", flush=True)
        if os.environ.get("KEEP"):
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder)
    sys.exit(1 if failed else 0)
