"""Portable training steps and gradients, run by other runtimes, give our numbers.

usage: check_portable.py CAMEO MODELS [WORK]

CAMEO is the command, MODELS the folder tests/models. Each model is prepared, its step written with
--portable and run for 24 steps by ONNX Runtime, where that has the kernels, else by ONNX's reference
evaluator; the two are counted apart. Losses must follow PyTorch's, and every output of the first
step must be what `cameo run` gives. Gradients likewise.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

SETTINGS = {
    "sgd": ["--lr", "0.05"],
    "momentum": ["--lr", "0.02", "--momentum", "0.9"],
    "nesterov": ["--lr", "0.02", "--momentum", "0.9"],
    "adam": ["--lr", "2e-3"],
    "adamw": ["--lr", "2e-3", "--weight-decay", "0.01"],
    "adagrad": ["--lr", "0.02"],
    "rmsprop": ["--lr", "1e-3"],
}
FOREIGN = ("ai.cameo", "ai.onnx.preview", "ai.onnx.preview.training")


class Runtime:
    """ONNX Runtime, or the reference evaluator where that cannot load the model."""

    def __init__(self, path):
        self.name = "onnxruntime"
        try:
            if onnxruntime is None:
                raise RuntimeError("not installed")
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            self.session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
            self.run = lambda feeds: self.session.run(None, feeds)
        except Exception as reason:  # whatever it raises: the other one is tried
            self.name = "reference evaluator"
            self.reason = str(reason).splitlines()[0][:200]
            session = onnx.reference.ReferenceEvaluator(path)
            self.run = lambda feeds: session.run(None, feeds)


def cameo(command, *words):
    done = subprocess.run([command, *words], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"cameo {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def check_plain(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)

    def walk(graph):
        for node in graph.node:
            assert node.domain not in FOREIGN, f"{path}: {node.domain}.{node.op_type} is left"
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g)

    walk(model.graph)
    assert not [o.domain for o in model.opset_import if o.domain in FOREIGN]
    return model


def run_ours(command, path, feeds, names, work):
    np.savez(os.path.join(work, "feeds.npz"), **feeds)
    out = os.path.join(work, "out")
    cameo(command, "run", path, "--input", os.path.join(work, "feeds.npz"), "--output-dir", out)
    return [np.load(os.path.join(out, name.replace("/", "_") + ".npy")) for name in names]


def compare(what, ours, theirs, names):
    for name, a, b in zip(names, ours, theirs):
        assert a.shape == b.shape, f"{what}: {name} has shape {a.shape}, elsewhere {b.shape}"
        scale = np.abs(b.astype(np.float64)).max(initial=1e-6)
        worst = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0) / scale
        assert worst < 2e-4, f"{what}: {name} differs by {worst:g} of its largest element"


def initial_state(model):
    """Inputs of the step that are variables, from the prepared model."""
    tensors = list(model.graph.initializer)
    for entry in model.training_info:
        tensors += entry.algorithm.initializer
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in tensors}


def batch(data, number, size):
    rows = np.arange(number * size, (number + 1) * size) % len(data)
    return data[rows]


def check_step(command, folder, name, optimizer, work, counts):
    expected = json.load(open(os.path.join(folder, "trajectory.json")))
    data = np.load(os.path.join(folder, "data.npz"))
    trainable, step = os.path.join(work, "trainable.onnx"), os.path.join(work, "step.onnx")
    loss = {"ce": "cross-entropy", "mse": "mse"}[expected["loss"]]
    cameo(
        command, "prepare", os.path.join(folder, name), "--loss", loss, "--optimizer", optimizer,
        *SETTINGS[optimizer], "-o", trainable,
    )
    cameo(command, "step", trainable, "--portable", "-o", step)
    model = check_plain(step)
    state = initial_state(onnx.load(trainable))
    inputs = [value.name for value in model.graph.input]
    outputs = [value.name for value in model.graph.output]
    runtime = Runtime(step)
    what = f"{os.path.basename(folder)}/{name} {optimizer}"
    for number in range(expected["steps"]):
        feeds = {key: state[key] for key in inputs if key in state}
        feeds["x"] = batch(data["x"], number, expected["batch"])
        feeds["target"] = batch(data["y"], number, expected["batch"])
        results = runtime.run(feeds)
        if number == 0:
            compare(what, run_ours(command, step, feeds, outputs, work), results, outputs)
        got, wanted = float(results[0]), expected["optimizers"][optimizer][number]
        assert abs(got - wanted) <= 1e-3 * abs(wanted), f"{what}: step {number}: {got} {wanted}"
        for key, value in zip(outputs, results):
            if key.endswith(".next"):
                state[key[: -len(".next")]] = np.asarray(value)
    counts[runtime.name] = counts.get(runtime.name, 0) + 1
    return runtime


def check_gradient(command, folder, name, work, counts):
    path = os.path.join(folder, name)
    data = np.load(os.path.join(folder, "data.npz"))
    made = os.path.join(work, "gradient.onnx")
    model = onnx.load(path)
    weights = [
        tensor.name
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    ]
    cameo(
        command, "grad", path, "--of", model.graph.output[0].name, "--wrt",
        ",".join(["x", *weights]), "--portable", "-o", made,
    )
    outputs = [value.name for value in check_plain(made).graph.output]
    runtime = Runtime(made)
    feeds = {"x": data["x"][:5]}
    results = runtime.run(feeds)
    compare(f"gradient of {path}", run_ours(command, made, feeds, outputs, work), results, outputs)
    counts[runtime.name] = counts.get(runtime.name, 0) + 1
    return runtime


def check_carried(command, path, work, counts):
    """A model that came with its training: one step, ours and theirs."""
    step = os.path.join(work, "step.onnx")
    cameo(command, "step", path, "--portable", "-o", step)
    model = check_plain(step)
    state = initial_state(onnx.load(path))
    data = np.load(os.path.join(os.path.dirname(path), "training",
                                os.path.basename(path)[len("training_"):-len(".onnx")] + ".npz"))
    outputs = [value.name for value in model.graph.output]
    feeds = {}
    for value in model.graph.input:
        feeds[value.name] = state[value.name] if value.name in state else data[value.name][:8]
    runtime = Runtime(step)
    results = [np.asarray(value) for value in runtime.run(feeds)]
    compare(path, run_ours(command, step, feeds, outputs, work), results, outputs)
    counts[runtime.name] = counts.get(runtime.name, 0) + 1
    return runtime


def masked_model(path, opset):
    """Convolution, BatchNormalization and Dropout, as exporters write them for inference."""
    random = np.random.default_rng(3)

    def weight(name, *shape):
        return onnx.numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)

    make = onnx.helper.make_node
    nodes = [
        make("Conv", ["x", "w1"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        make("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        make("Relu", ["n"], ["r"]),
        make("GlobalAveragePool", ["r"], ["g"]),
        make("Flatten", ["g"], ["f"]),
        make("Dropout", ["f", "ratio"], ["d"]) if opset > 9 else make("Dropout", ["f"], ["d"], ratio=0.3),
        make("Gemm", ["d", "w2", "b2"], ["z"], transB=1),
        make("Softmax", ["z"], ["p"], axis=1),
    ]
    weights = [weight("w1", 4, 1, 3, 3), weight("scale", 4), weight("bias", 4)]
    weights += [weight("mean", 4), onnx.numpy_helper.from_array(np.ones(4, np.float32), "var")]
    weights += [weight("w2", 3, 4), weight("b2", 3)]
    if opset > 9:
        weights.append(onnx.numpy_helper.from_array(np.float32(0.3), "ratio"))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "net", [value("x", 1, ["N", 1, 8, 8])], [value("p", 1, ["N", 3])], weights
    )
    imports = [onnx.helper.make_opsetid("", opset)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=4 if opset < 10 else 7), path)


def check_masks(command, opset, work, counts):
    """Draws are inputs: the same masks give the same step everywhere."""
    source, trainable = os.path.join(work, "net.onnx"), os.path.join(work, "trainable.onnx")
    step = os.path.join(work, "step.onnx")
    masked_model(source, opset)
    cameo(command, "prepare", source, "--loss", "cross-entropy", "--optimizer", "adam",
          "--clip-norm", "1", "--schedule", "cosine", "--schedule-steps", "10", "--warmup", "2",
          "--accumulate", "2", "-o", trainable)
    cameo(command, "step", trainable, "--portable", "-o", step)
    model = check_plain(step)
    outputs = [value.name for value in model.graph.output]
    state, runtime = initial_state(onnx.load(trainable)), Runtime(step)
    random = np.random.default_rng(5)
    masks = [value.name for value in model.graph.input if value.type.tensor_type.elem_type == 9]
    assert len(masks) == 1, masks
    for _ in range(4):
        feeds = {v.name: state[v.name] for v in model.graph.input if v.name in state}
        feeds["x"] = random.normal(size=(6, 1, 8, 8)).astype(np.float32)
        feeds["target"] = random.integers(0, 3, 6)
        feeds[masks[0]] = random.random((6, 4)) > 0.3
        results = [np.asarray(value) for value in runtime.run(feeds)]
        compare(f"masks at opset {opset}", run_ours(command, step, feeds, outputs, work), results, outputs)
        for key, value in zip(outputs, results):
            if key.endswith(".next"):
                state[key[: -len(".next")]] = value
    counts[runtime.name] = counts.get(runtime.name, 0) + 1
    return runtime


def jobs_of(models):
    """(name, check, arguments) of everything there is to check."""
    for folder in sorted(os.scandir(os.path.join(models, "train")), key=lambda entry: entry.name):
        for name in ("model.onnx", "model_eval.onnx"):
            for optimizer in SETTINGS:
                yield f"{folder.name}/{name} {optimizer}", check_step, (folder.path, name, optimizer)
            yield f"{folder.name}/{name} gradient", check_gradient, (folder.path, name)
    for name in ("gradient_penalty", "linreg_sgd", "mlp_adam_initialized", "softmax_momentum_standard"):
        yield name, check_carried, (os.path.join(models, f"training_{name}.onnx"),)
    for opset in (9, 13):
        yield f"masks at opset {opset}", check_masks, (opset,)


def main():
    command, models = os.path.abspath(sys.argv[1]), sys.argv[2]
    counts, failed = {}, 0
    for what, check, words in jobs_of(models):
        with tempfile.TemporaryDirectory() as work:
            try:
                runtime = check(command, *words, work, counts)
                if runtime.name != "onnxruntime":
                    print(f"{what}: {runtime.reason}")
            except AssertionError as reason:
                failed += 1
                print(f"FAILED {what}: {reason}")
    for name, count in sorted(counts.items()):
        print(f"{name}: {count} models agree")
    print(f"# counts: {sum(counts.values())} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
