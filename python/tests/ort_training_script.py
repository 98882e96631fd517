# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier with the verbs of ONNX Runtime Training 1.19."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxruntime.training import api, artifacts


def network():
    rng = np.random.default_rng(0)
    weights = {"fc1.weight": rng.normal(0, 0.3, (16, 8)), "fc1.bias": np.zeros(16),
               "fc2.weight": rng.normal(0, 0.3, (3, 16)), "fc2.bias": np.zeros(3)}
    nodes = [helper.make_node("Gemm", ["input", "fc1.weight", "fc1.bias"], ["hidden"], transB=1),
             helper.make_node("Relu", ["hidden"], ["active"]),
             helper.make_node("Gemm", ["active", "fc2.weight", "fc2.bias"], ["output"], transB=1)]
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), list(weights)


def batches(count, size=32):
    rng = np.random.default_rng(1)
    rule = rng.normal(size=(8, 3))
    for _ in range(count):
        x = rng.normal(size=(size, 8)).astype(np.float32)
        yield x, np.argmax(x @ rule, axis=1).astype(np.int64)


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
model, names = network()
artifacts.generate_artifacts(model, requires_grad=names, loss=artifacts.LossType.CrossEntropyLoss,
                             optimizer=artifacts.OptimType.AdamW, artifact_directory=folder)

state = api.CheckpointState.load_checkpoint(os.path.join(folder, "checkpoint"))
module = api.Module(os.path.join(folder, "training_model.onnx"), state, os.path.join(folder, "eval_model.onnx"))
optimizer = api.Optimizer(os.path.join(folder, "optimizer_model.onnx"), module)

for step, (x, labels) in enumerate(batches(40)):
    module.train()
    optimizer.set_learning_rate(0.02 * (1 - step / 40))
    loss = module(x, labels)
    optimizer.step()
    module.lazy_reset_grad()
    if step % 10 == 9:
        print(f"step {step + 1:2}  rate {optimizer.get_learning_rate():.4f}  loss {loss:.6f}")

module.eval()
print("evaluated: %.6f" % np.mean([module(x, labels) for x, labels in batches(4)]))
print(module.input_names(), module.get_parameters_size())

state.properties["epoch"] = 1
api.CheckpointState.save_checkpoint(state, os.path.join(folder, "trained"), include_optimizer_state=True)
module.export_model_for_inferencing(os.path.join(folder, "inference.onnx"), ["output"])
again = api.CheckpointState.load_checkpoint(os.path.join(folder, "trained"))
print("saved:", again.properties["epoch"], sorted(name for name, _ in again.parameters))
print("exported:", [value.name for value in onnx.load(os.path.join(folder, "inference.onnx")).graph.input])
