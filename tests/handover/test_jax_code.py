# Code of JAX that cameo export writes: test_jax_code.py CAMEO [unittest options]
# SPDX-License-Identifier: Apache-2.0
"""Generated code trains on as `cameo train` does, keeps running statistics as it does, and is a function of Python too."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from flax import serialization
from onnx import helper, numpy_helper

CAMEO = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/cameo"
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "train")
BEFORE, STEPS, BATCH, TOLERANCE = 8, 8, 16, 1e-4
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu"}

# What JAX cannot go on with, and why: optax lacks it, or computes otherwise.
OPTIMIZERS = {
    "sgd": [], "momentum": [], "nesterov": [], "adam": ["--weight-decay", "0.01"], "adamw": ["--clip-norm", "0.5"],
    "adagrad": [], "rmsprop": ["--momentum", "0.9"], "lion": [], "lamb": [],
}  # fmt: skip
REFUSED = ("adafactor", "adamax", "nadam", "radam", "adadelta", "asgd")


def execute(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout


def losses(text):
    rows = [json.loads(line) for line in text.splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


def network_with_statistics(path):
    random = np.random.default_rng(0)

    def tensor(name, *shape, scale=0.3):
        value = random.normal(size=shape) * scale
        return numpy_helper.from_array(value.astype(np.float32), name)

    tensors = [tensor("conv.weight", 8, 1, 3, 3), tensor("bn.bias", 8), tensor("fc.weight", 5, 8), tensor("fc.bias", 5)]
    for name in ("bn.weight", "bn.running_var"):
        tensors.append(numpy_helper.from_array(np.full(8, 1.25, np.float32), name))
    tensors.append(tensor("bn.running_mean", 8))
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["b"]),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "fc.weight", "fc.bias"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes, "statistics", [helper.make_tensor_value_info("x", 1, ["N", 1, 28, 28])],
        [helper.make_tensor_value_info("logits", 1, ["N", 5])], tensors,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Trainings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def go_on(self, model, data, loss, *options):
        """The next losses of cameo and of the code, after an epoch of cameo."""
        execute(CAMEO, "prepare", model, "--loss", loss, *options, "-o", self.path("begun.onnx"))
        with np.load(data) as file:  # labels under the name that the model has for them
            arrays = {{"y": "target"}.get(name, name): file[name] for name in file.files}
        np.savez(self.path("data.npz"), **arrays)
        train = [CAMEO, "train", "--data", self.path("data.npz"), "--no-shuffle", "-b", str(BATCH)]
        execute(*train, self.path("begun.onnx"), "--steps", str(BEFORE), "-o", self.path("model.onnx"))
        log = ["--log", self.path("log"), "-o", self.path("after.onnx")]
        execute(*train, self.path("model.onnx"), "--steps", str(STEPS), *log)
        execute(CAMEO, "export", self.path("model.onnx"), "--to", "jax-code", "-o", self.path("code"))
        execute(sys.executable, self.path("code/check.py"))
        said = execute(
            sys.executable, self.path("code/train.py"), "--data", self.path("data.npz"), "--batch-size", str(BATCH),
            "--steps", str(STEPS), "--log", self.path("jax.log"), "--out", self.path("out.msgpack"),
        )  # fmt: skip
        with open(self.path("jax.log"), encoding="utf-8") as file:
            self.assertEqual(file.read(), said)
        with open(self.path("log"), encoding="utf-8") as file:
            return losses(file.read()), losses(said)

    def compare(self, *arguments):
        ours, theirs = self.go_on(*arguments)
        self.assertEqual((len(ours), len(theirs)), (STEPS, STEPS))
        np.testing.assert_allclose(theirs, ours, rtol=TOLERANCE)

    def test_optimizers(self):
        model = os.path.join(MODELS, "mlp", "model.onnx")
        for name, options in OPTIMIZERS.items():
            with self.subTest(name):
                self.setUp()
                data = os.path.join(MODELS, "mlp", "data.npz")
                self.compare(model, data, "cross-entropy", "--optimizer", name, *options)

    def test_networks(self):
        for name, loss, options in (
            ("lenet", "cross-entropy", ["--schedule", "cosine", "--schedule-steps", "30", "--warmup", "8"]),
            ("lstm", "cross-entropy", ["--schedule", "linear", "--schedule-steps", "10"]),
            ("regress", "mse", ["--accumulate", "2"]),
            ("regress", "huber", []),
        ):
            with self.subTest(name):
                self.setUp()
                at = os.path.join(MODELS, name)
                self.compare(
                    os.path.join(at, "model.onnx"), os.path.join(at, "data.npz"), loss, "--optimizer", "adamw", *options
                )

    def test_what_optax_lacks_is_said(self):
        for name in REFUSED:
            with self.subTest(name):
                self.setUp()
                model = os.path.join(MODELS, "mlp", "model.onnx")
                execute(
                    CAMEO, "prepare", model, "--loss", "cross-entropy", "--optimizer", name, "-o", self.path("m.onnx")
                )
                execute(CAMEO, "export", self.path("m.onnx"), "--to", "jax-code", "-o", self.path("code"))
                self.assertFalse(os.path.exists(self.path("code/train.py")))
                with open(self.path("code/README.md"), encoding="utf-8") as file:
                    self.assertIn("the training is not written: ", file.read())

    def test_running_statistics(self):
        network_with_statistics(self.path("net.onnx"))
        data = os.path.join(MODELS, "lenet", "data.npz")
        with np.load(data) as file:
            np.savez(self.path("few.npz"), x=file["x"], y=file["y"] % 5)
        self.compare(self.path("net.onnx"), self.path("few.npz"), "cross-entropy", "--optimizer", "momentum")
        after = {t.name: numpy_helper.to_array(t) for t in onnx.load(self.path("after.onnx")).graph.initializer}
        with open(self.path("out.msgpack"), "rb") as file:
            saved = serialization.msgpack_restore(file.read())
        for collection, names in (("batch_stats", ["bn.running_mean", "bn.running_var"]), ("params", ["fc.weight"])):
            for name in names:
                layer, part = name.split(".")
                np.testing.assert_allclose(saved[collection][layer][part], after[name], rtol=1e-4, atol=1e-6)
        self.assertEqual(saved["step"], BEFORE + STEPS)


class Functions(unittest.TestCase):
    def test_to_function(self):
        try:
            import cameo.jax
        except ModuleNotFoundError as missing:
            if missing.name != "cameo":
                raise
            self.skipTest("the Python package of Cameo is not installed here")
        import jax

        model = cameo.load(os.path.join(MODELS, "mlp", "model.onnx"))
        apply, variables = cameo.jax.to_function(model)
        x = np.load(os.path.join(MODELS, "mlp", "data.npz"))["x"][:4]
        expected = cameo.Session(model).run(None, {model.inputs[0].name: x})[0]
        np.testing.assert_allclose(apply(variables, [x]), expected, rtol=1e-5, atol=1e-6)

        def total(params):
            return (apply({**variables, "params": params}, [x]) ** 2).sum()

        gradient = jax.jit(jax.grad(total))(variables["params"])
        layer = gradient["f"]["4"]["bias"]
        self.assertEqual(layer.shape, (5,))
        np.testing.assert_allclose(layer, 2 * apply(variables, [x]).sum(0), rtol=1e-5)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
