"""The training conformance suite on a runtime that is not ours: ONNX Runtime Training.

It has four of the losses, SGD, and gradients of four of the networks; those cases must pass. Its other optimizer, AdamW, has
fixed numbers that no case uses.
"""
# SPDX-License-Identifier: Apache-2.0
import importlib
import os
import sys
import tempfile
import types
import unittest

import numpy as np
import onnx
import onnxruntime


def package(name, folder):
    """A package without what its __init__ wants (PyTorch, and our extension), which none of this needs."""
    made = types.ModuleType(name)
    made.__path__ = [folder]
    sys.modules[name] = made


package("onnxruntime.training", os.path.join(os.path.dirname(onnxruntime.__file__), "training"))
package("backend", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/cameo/backend"))

from onnxruntime.training import artifacts  # noqa: E402
from onnxruntime.training.api import CheckpointState, Module, Optimizer  # noqa: E402

training_tests = importlib.import_module("backend.training_tests")
LOSSES = {"mse": artifacts.LossType.MSELoss, "cross-entropy": artifacts.LossType.CrossEntropyLoss,
          "bce-logits": artifacts.LossType.BCEWithLogitsLoss, "l1": artifacts.LossType.L1Loss}
# Tests of exported models are left out: the runtime has no training info.
CASES = ("^test_(linear|mlp|conv|attention)_(mse|cross_entropy|bce_logits|l1)_sgd_cpu$"
         "|^test_options_(sgd_default_rate|frozen_but_one|any_batch)_cpu$")
COUNT = 19


def number(outputs):
    return float(np.ravel(outputs[0] if isinstance(outputs, (list, tuple)) else outputs)[0])


class Rep:
    """The interface of training.py over Module and Optimizer."""

    def __init__(self, model, loss, trained, rate):
        self.model = model
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "{}").format
        frozen = [tensor.name for tensor in model.graph.initializer if tensor.name not in trained]
        artifacts.generate_artifacts(model, requires_grad=trained, frozen_params=frozen, loss=LOSSES[loss],
                                     optimizer=artifacts.OptimType.SGD, artifact_directory=self.folder.name)
        self.values = CheckpointState.load_checkpoint(path("checkpoint"))
        self.module = Module(path("training_model.onnx"), self.values, path("eval_model.onnx"), "cpu")
        self.optimizer = Optimizer(path("optimizer_model.onnx"), self.module)
        self.optimizer.set_learning_rate(rate)

    def step(self, inputs):
        self.module.train()
        loss = number(self.module(*inputs.values()))
        self.optimizer.step()
        self.module.lazy_reset_grad()
        return loss

    def evaluate(self, inputs):
        self.module.eval()
        return number(self.module(*inputs.values()))

    @property
    def state(self):
        return {name: np.array(parameter.data) for name, parameter in self.values.parameters}

    def export(self):
        model, state = onnx.ModelProto(), self.state
        model.CopyFrom(self.model)
        for tensor in model.graph.initializer:
            if tensor.name in state:
                tensor.CopyFrom(onnx.numpy_helper.from_array(state[tensor.name], tensor.name))
        model.training_info.add()  # the interface asks for it, and this runtime has none
        return model


class Backend:
    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

    @classmethod
    def prepare_training(cls, model, loss=None, optimizer=None, device="CPU", *, lr, train, target):
        if optimizer != "sgd":
            raise NotImplementedError(optimizer)
        return Rep(model, loss, train, lr)


def main():
    runner = training_tests.TrainingBackendTest(Backend).include(CASES).enable_report()
    words, result = sys.argv[1:], unittest.TestResult()
    unittest.TestSuite(case(name) for case in runner.test_cases.values() for name in vars(case)
                       if name.startswith("test_") and (not words or any(word in name for word in words))).run(result)
    report = runner.report
    for name in report["passed"]:
        print(f"pass {name}")
    for test, text in result.failures + result.errors:
        print(f"FAIL {test.id()}: {text.strip().splitlines()[-1]}")
    if not words and len(report["passed"]) != COUNT:
        print(f"FAIL {len(report['passed'])} cases passed, expected {COUNT}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
