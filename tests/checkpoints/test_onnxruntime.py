"""ONNX Runtime Training: CheckpointState."""
# SPDX-License-Identifier: Apache-2.0
import os
import sys
import types

import numpy as np
import onnx
import onnxruntime

# The package's own __init__ wants PyTorch, which none of this needs.
package = types.ModuleType("onnxruntime.training")
package.__path__ = [os.path.join(os.path.dirname(onnxruntime.__file__), "training")]
sys.modules["onnxruntime.training"] = package

from onnxruntime.training import artifacts  # noqa: E402
from onnxruntime.training.api import CheckpointState, Module, Optimizer  # noqa: E402

import common  # noqa: E402

RATE = 5e-3


def network():
    random = np.random.default_rng(5)
    names = [("fc1.weight", "fc1.bias"), ("fc2.weight", "fc2.bias"), ("head.weight", "head.bias")]
    sizes, weights = (12, 16, 8, common.CLASSES), {}
    for (w, b), rows, columns in zip(names, sizes, sizes[1:]):
        weights[w] = (random.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)
        weights[b] = (0.1 * random.standard_normal(columns)).astype(np.float32)
    return common.mlp(weights, names), list(weights)


def run(module, optimizer, steps):
    module.train()
    losses = []
    for x, y in steps:
        losses.append(float(module(x, y)))
        optimizer.step()
        module.lazy_reset_grad()
    return losses


def mlp_adamw(folder):
    path = lambda name: os.path.join(folder, name)
    before, first, second = common.all_batches((12,))
    model, weights = network()
    onnx.save(model, path("net.onnx"))
    artifacts.generate_artifacts(model, requires_grad=weights, loss=artifacts.LossType.CrossEntropyLoss,
                                 optimizer=artifacts.OptimType.AdamW, artifact_directory=folder)

    def load(checkpoint):
        state = CheckpointState.load_checkpoint(checkpoint)
        module = Module(path("training_model.onnx"), state, path("eval_model.onnx"))
        optimizer = Optimizer(path("optimizer_model.onnx"), module)
        optimizer.set_learning_rate(RATE)
        return state, module, optimizer

    state, module, optimizer = load(path("checkpoint"))
    run(module, optimizer, before)
    os.mkdir(path("saved"))
    CheckpointState.save_checkpoint(state, path("saved/checkpoint"), include_optimizer_state=True)
    continued = run(module, optimizer, first)
    for name in ("optimizer_model.onnx", "training_model.onnx"):
        os.link(path(name), path(f"saved/{name}"))

    def from_checkpoint(written, steps):
        _, module, optimizer = load(written)
        return run(module, optimizer, steps)

    given = {"optimizer": "adamw", "groups": [{"lr": RATE, "betas": [0.9, 0.999], "epsilon": 1e-6,
                                               "weight_decay": 0}]}
    flags = ("--set", common.write_json(folder, "settings.json", given))
    return common.round_trip(folder, path("net.onnx"), path("saved"), (first, second), continued,
                             {"onnxruntime": ("out.ort", from_checkpoint, ())}, flags=flags)


if __name__ == "__main__":
    common.main([mlp_adamw])
