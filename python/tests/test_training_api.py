# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime Training's verbs: its own artifacts, a script that ran under it, artifacts of ours."""

import contextlib
import importlib.util
import io
import os
import re
import sys
import tempfile
import unittest
import warnings

import numpy

import cameo
from cameo.training import api, artifacts

HERE = os.path.dirname(os.path.abspath(__file__))
MADE = os.path.join(HERE, "data", "ort_training")  # by generate_artifacts of onnxruntime-training 1.19.2
HAS_ONNX = importlib.util.find_spec("onnx") is not None

# What ort_training_script.py printed under onnxruntime-training 1.19.2.
PRINTED = """\
step 10  rate 0.0155  loss 0.849788
step 20  rate 0.0105  loss 0.679571
step 30  rate 0.0055  loss 0.508871
step 40  rate 0.0005  loss 0.386674
evaluated: 0.338605
['input', 'labels'] 195
saved: 1 ['fc1.bias', 'fc1.weight', 'fc2.bias', 'fc2.weight']
exported: ['input']
"""

# Losses of every third of 20 batches, two to an update, at a rate of 0.01, under the same.
ACCUMULATED = [1.518660, 1.636852, 1.495851, 1.275492, 1.219420, 1.184730, 1.027030]

NET = """<ir_version: 8, opset_import: ["" : 15]>
net (float[N,4] x) => (float[N,2] y) <float[4,2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8}, float[2] b = {0, 0}> {
    p = MatMul(x, w)
    y = Add(p, b)
}"""


def batches(count, size=32):
    rng = numpy.random.default_rng(1)
    rule = rng.normal(size=(8, 3))
    for _ in range(count):
        x = rng.normal(size=(size, 8)).astype(numpy.float32)
        yield x, numpy.argmax(x @ rule, axis=1).astype(numpy.int64)


def opened(folder, checkpoint="checkpoint"):
    state = api.CheckpointState.load_checkpoint(os.path.join(folder, checkpoint))
    module = api.Module(os.path.join(folder, "training_model.onnx"), state, os.path.join(folder, "eval_model.onnx"))
    return state, module, api.Optimizer(os.path.join(folder, "optimizer_model.onnx"), module)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class TheirArtifactsTest(FolderTest):
    def test_losses_are_theirs(self):
        _, module, optimizer = opened(MADE)
        self.assertEqual((module.input_names(), module.output_names()), (["input", "labels"], ["onnx::loss::2"]))
        optimizer.set_learning_rate(0.01)
        losses = []
        for i, (x, labels) in enumerate(batches(20)):
            losses.append(float(module(x, labels)))
            if i % 2:
                optimizer.step()
                module.lazy_reset_grad()
        numpy.testing.assert_allclose(losses[::3], ACCUMULATED, rtol=0, atol=1e-5)

    def test_a_state_that_is_saved_goes_on(self):
        state, module, optimizer = opened(MADE)
        optimizer.set_learning_rate(0.01)
        given = list(batches(8))
        for x, labels in given[:4]:
            module(x, labels)
            optimizer.step()
            module.lazy_reset_grad()
        state.properties["epoch"] = 3
        state.properties["rate"] = 0.25
        state.properties["name"] = "é"
        path = os.path.join(self.folder, "saved")
        api.CheckpointState.save_checkpoint(state, path, include_optimizer_state=True)
        with open(path, "rb") as file:
            self.assertEqual(file.read()[4:8], b"ODTC")  # ONNX Runtime's own format
        other, again, second = opened(MADE, path)
        self.assertEqual(dict(other.properties), {"epoch": 3, "rate": 0.25, "name": "é"})
        second.set_learning_rate(0.01)
        for x, labels in given[4:]:
            self.assertEqual(float(module(x, labels)), float(again(x, labels)))
            for one, step in ((module, optimizer), (again, second)):
                step.step()
                one.lazy_reset_grad()

    def test_parameters(self):
        state, module, optimizer = opened(MADE)
        self.assertEqual([name for name, _ in state.parameters], ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
        parameter = state.parameters["fc2.bias"]
        self.assertEqual((parameter.requires_grad, parameter.grad, parameter.data.tolist()), (True, None, [0, 0, 0]))
        x, labels = next(batches(1))
        before = module(x, labels)
        once = parameter.grad.copy()
        module(x, labels)
        numpy.testing.assert_allclose(parameter.grad, 2 * once, rtol=1e-6)
        module.lazy_reset_grad()
        module(x, labels)
        numpy.testing.assert_allclose(parameter.grad, once, rtol=1e-6)
        flat = module.get_contiguous_parameters().numpy()
        self.assertEqual((flat.shape, module.get_parameters_size()), ((195,), 195))
        module.copy_buffer_to_parameters(cameo.OrtValue.ortvalue_from_numpy(numpy.zeros(195, numpy.float32)))
        self.assertAlmostEqual(float(module(x, labels)), numpy.log(3), places=5)
        module.copy_buffer_to_parameters(flat)
        self.assertEqual(float(module(x, labels)), float(before))
        state.parameters["fc2.bias"] = numpy.ones(3, numpy.float32)
        self.assertEqual(state.parameters["fc2.bias"].data.tolist(), [1, 1, 1])
        for name, value in [("nothing", numpy.ones(3)), ("fc2.bias", numpy.ones(4, numpy.float32))]:
            with self.assertRaises((KeyError, cameo.ArgumentError)):
                state.parameters[name] = value
        del optimizer

    def test_the_exported_model_predicts(self):
        state, module, _ = opened(MADE)
        path = os.path.join(self.folder, "inference.onnx")
        module.export_model_for_inferencing(path, ["output"])
        model = cameo.load(path)
        self.assertEqual(([value.name for value in model.inputs], model.check()), (["input"], []))
        x, labels = next(batches(1))
        y = model.run(input=x)["output"]
        loss = numpy.mean(numpy.log(numpy.exp(y).sum(1)) - y[numpy.arange(len(y)), labels])
        self.assertAlmostEqual(float(module.eval()(x, labels)), float(loss), places=5)
        del state

    def test_values_in_values_out(self):
        _, module, _ = opened(MADE)
        x, labels = next(batches(1))
        loss = module(cameo.OrtValue.ortvalue_from_numpy(x), cameo.OrtValue.ortvalue_from_numpy(labels))
        self.assertEqual(float(loss.numpy()), float(module(x, labels)))

    def test_scheduler(self):
        _, module, optimizer = opened(MADE)
        self.assertEqual(optimizer.get_learning_rate(), 0.001)
        scheduler = api.LinearLRScheduler(optimizer, warmup_step_count=3, total_step_count=10, initial_lr=0.02)
        x, labels = next(batches(1))
        rates = [optimizer.get_learning_rate()]
        for _ in range(11):
            module(x, labels)
            optimizer.step()
            scheduler.step()
            rates.append(optimizer.get_learning_rate())
        expected = [0, 1 / 3, 2 / 3, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0, 0]
        numpy.testing.assert_allclose(rates, [0.02 * factor for factor in expected], atol=1e-12)

    def test_mistakes(self):
        state, module, optimizer = opened(MADE)
        x, labels = next(batches(1))
        missing = api.CheckpointState({"other": numpy.zeros(1, numpy.float32)})
        calls = [lambda: module(x), lambda: module(x, labels[:3]), optimizer.step,
                 lambda: api.Module(os.path.join(MADE, "eval_model.onnx"), state),
                 lambda: api.Module(os.path.join(MADE, "training_model.onnx"), missing),
                 lambda: api.Module(os.path.join(MADE, "training_model.onnx"), state, device="cuda"),
                 lambda: api.Module(os.path.join(MADE, "training_model.onnx"), state).eval()(x, labels),
                 lambda: api.Optimizer(os.path.join(MADE, "eval_model.onnx"), module),
                 lambda: module.copy_buffer_to_parameters(numpy.zeros(3, numpy.float32)),
                 lambda: api.CheckpointState.load_checkpoint(os.path.join(MADE, "missing")),
                 lambda: api.CheckpointState.load_checkpoint(os.path.join(HERE, "test_ort.py"))]
        for number, call in enumerate(calls):
            with self.subTest(number), self.assertRaises(cameo.Error):
                call()
        with self.assertRaises(TypeError):
            state.properties["list"] = [1]
        with self.assertRaises(KeyError):
            state.properties["nothing"]


class OurArtifactsTest(FolderTest):
    def losses(self, **options):
        options.setdefault("optimizer", artifacts.OptimType.SGD)
        artifacts.generate_artifacts(cameo.load(NET), artifact_directory=self.folder, **options)
        state, module, optimizer = opened(self.folder)
        rng = numpy.random.default_rng(0)
        x = rng.normal(size=(6, 4)).astype(numpy.float32)
        target = rng.integers(0, 2, (6, 2)).astype(numpy.float32)
        if options["loss"] is artifacts.LossType.CrossEntropyLoss:
            target = rng.integers(0, 2, 6)
        optimizer.set_learning_rate(0.1)
        first = module(x, target)
        gradient = state.parameters["w"].grad
        before = {name: parameter.data.copy() for name, parameter in state.parameters}
        optimizer.step()
        return x, target, first, gradient, before, state, module

    def test_losses(self):
        """By formula, and the gradient by differences."""
        sigmoid = lambda y: 1 / (1 + numpy.exp(-y))
        formulas = {
            artifacts.LossType.MSELoss: lambda y, t: numpy.mean((y - t) ** 2),
            artifacts.LossType.L1Loss: lambda y, t: numpy.mean(abs(y - t)),
            artifacts.LossType.BCEWithLogitsLoss: lambda y, t: -numpy.mean(
                t * numpy.log(sigmoid(y)) + (1 - t) * numpy.log(1 - sigmoid(y))),
            artifacts.LossType.CrossEntropyLoss: lambda y, t: numpy.mean(
                numpy.log(numpy.exp(y).sum(1)) - y[numpy.arange(len(y)), t]),
        }
        for loss, formula in formulas.items():
            with self.subTest(loss.name):
                x, target, first, gradient, before, state, module = self.losses(loss=loss, requires_grad=["w", "b"])
                w = before["w"].astype(numpy.float64)
                self.assertAlmostEqual(float(first), formula(x @ w + before["b"], target), places=5)
                for place in numpy.ndindex(*w.shape):
                    near = numpy.zeros_like(w)
                    near[place] = 1e-6
                    slope = (formula(x @ (w + near), target) - formula(x @ (w - near), target)) / 2e-6
                    self.assertAlmostEqual(float(gradient[place]), slope, places=4)
                numpy.testing.assert_allclose(state.parameters["w"].data, before["w"] - numpy.float32(0.1) * gradient, 1e-6)
                self.assertLess(float(module.eval()(x, target)), float(first))

    def test_frozen_parameters_stay(self):
        *_, gradient, before, state, module = self.losses(loss=artifacts.LossType.MSELoss, requires_grad=["w"],
                                                          frozen_params=["b"], optimizer=artifacts.OptimType.AdamW)
        self.assertIsNotNone(gradient)
        self.assertFalse(state.parameters["b"].requires_grad)
        self.assertEqual(state.parameters["b"].data.tolist(), before["b"].tolist())
        self.assertNotEqual(state.parameters["w"].data.tolist(), before["w"].tolist())
        self.assertEqual((module.get_parameters_size(True), module.get_parameters_size(False)), (8, 10))

    def test_what_is_trained_without_being_told(self):
        *_, state, module = self.losses(loss=artifacts.LossType.MSELoss)
        self.assertEqual(module.get_parameters_size(True), 10)

    def test_more_outputs(self):
        artifacts.generate_artifacts(cameo.load(NET), ["w"], loss=artifacts.LossType.MSELoss, prefix="my_",
                                     additional_output_names=["y", "p"], artifact_directory=self.folder)
        state = api.CheckpointState.load_checkpoint(os.path.join(self.folder, "my_checkpoint"))
        module = api.Module(os.path.join(self.folder, "my_training_model.onnx"), state,
                            os.path.join(self.folder, "my_eval_model.onnx"))
        loss, y, p = module(numpy.ones((1, 4), numpy.float32), numpy.zeros((1, 2), numpy.float32))
        self.assertEqual((loss.shape, y.tolist()), ((), p.tolist()))
        self.assertEqual(module.output_names(), ["loss", "y", "p"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "my_optimizer_model.onnx")))

    def test_a_model_that_computes_its_loss(self):
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
own (float[N] x) => (float loss) <float[1] w = {2}> { y = Mul(x, w) loss = ReduceMean <keepdims = 0> (y) }""")
        artifacts.generate_artifacts(model, ["w"], artifact_directory=self.folder, optimizer=artifacts.OptimType.SGD)
        _, module, _ = opened(self.folder)
        self.assertEqual(float(module(numpy.array([1, 2], numpy.float32))), 3)

    def test_mistakes(self):
        two = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
two (float[N] x) => (float[N] y, float[N] z) <float[1] w = {2}> { y = Mul(x, w) z = Neg(y) }""")
        for options in ({"requires_grad": ["w"], "frozen_params": ["w"]}, {"requires_grad": ["nothing"]},
                        {"loss": "mse"}, {"ort_format": True}):
            with self.subTest(options), self.assertRaises(cameo.Error):
                artifacts.generate_artifacts(cameo.load(NET), artifact_directory=self.folder,
                                             **{"loss": artifacts.LossType.MSELoss, **options})
        with self.assertRaisesRegex(cameo.ArgumentError, "loss_input_names"):
            artifacts.generate_artifacts(two, ["w"], loss=artifacts.LossType.MSELoss, artifact_directory=self.folder)


class ScriptTest(FolderTest):
    @unittest.skipUnless(HAS_ONNX, "onnx is not installed")
    def test_a_script_that_ran_under_onnxruntime_training(self):
        """One line is changed; numbers agree to 1e-5."""
        with open(os.path.join(HERE, "ort_training_script.py"), encoding="utf-8") as file:
            text = file.read().replace("from onnxruntime.training import", "from cameo.training import")
        out, before = io.StringIO(), sys.argv
        sys.argv = ["script", os.path.join(self.folder, "artifacts")]
        try:
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(compile(text, "ort_training_script.py", "exec"), {"__name__": "__main__"})
        finally:
            sys.argv = before
        with open(os.path.join(HERE, "..", "..", "docs", "from-onnxruntime.md"), encoding="utf-8") as file:
            page = file.read()
        for shown in (text.partition("\n")[2].replace("cameo.training import", "onnxruntime.training import"), PRINTED):
            self.assertIn(shown, page)
        numbers = re.compile(r"\d+\.\d+")
        self.assertEqual(numbers.sub("#", out.getvalue()), numbers.sub("#", PRINTED))
        numpy.testing.assert_allclose([float(n) for n in numbers.findall(out.getvalue())],
                                      [float(n) for n in numbers.findall(PRINTED)], rtol=0, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
