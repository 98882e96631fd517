# Artifacts of training, as ONNX Runtime Training names them.
# SPDX-License-Identifier: Apache-2.0
"""generate_artifacts: a model becomes training_model.onnx, eval_model.onnx, optimizer_model.onnx and checkpoint."""

from __future__ import annotations

import copy
import enum
import os
import typing

import numpy

from .. import _cameo
from .._model import Model, load, merge
from ._state import CheckpointState


class LossType(enum.Enum):
    """Losses by name."""

    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(enum.Enum):
    """Optimizers by name."""

    AdamW = 1
    SGD = 2


# (type of the target, what it is called, nodes from prediction and target to loss)
_LOSSES = {
    LossType.MSELoss: ("float", "target", """a = Sub(prediction, target) b = Mul(a, a)
        loss = ReduceMean <keepdims = 0> (b)"""),
    LossType.L1Loss: ("float", "target", """a = Sub(prediction, target) b = Abs(a)
        loss = ReduceMean <keepdims = 0> (b)"""),
    LossType.CrossEntropyLoss: ("int64", "labels", "loss = SoftmaxCrossEntropyLoss(prediction, target)"),
    # max(p, 0) - p t + log(1 + exp(-|p|)), which no large score overflows
    LossType.BCEWithLogitsLoss: ("float", "target", """a = Relu(prediction) b = Mul(prediction, target) c = Abs(prediction)
        d = Neg(c) e = Softplus(d) f = Sub(a, b) g = Add(f, e) loss = ReduceMean <keepdims = 0> (g)"""),
}

# As ONNX Runtime's blocks of these names set them.
_OPTIMIZERS = {
    OptimType.AdamW: """optimizer (float learning_rate, int64[1] step, seq(float[]) params, seq(float[]) gradients,
        seq(float[]) first_order_moments, seq(float[]) second_order_moments) => (bool[1] updated_flag) {
    updated_flag = com.microsoft.AdamWOptimizer <adam_mode = 1, alpha = 0.9, beta = 0.999, correct_bias = 1,
        epsilon = 1e-06, weight_decay = 0.0> (learning_rate, step, params, gradients, first_order_moments,
        second_order_moments)
}""",
    OptimType.SGD: """optimizer (float learning_rate, seq(float[]) params, seq(float[]) gradients) => (bool[1] updated_flag) {
    updated_flag = com.microsoft.SGDOptimizerV2 (learning_rate, params, gradients)
}""",
}


def _opset(model: Model) -> int:
    return model.opsets.get("", model.opsets.get("ai.onnx", 17))


def _new_name(name: str, model: Model) -> str:
    """A name that the model does not have, this one if it can be."""
    taken = {*model.initializers, *(info.name for info in model.inputs)}
    for node in model.nodes:
        taken.update(node.inputs, node.outputs)
    number = 1
    wanted = name
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _with_loss(model: Model, loss: LossType | None, predictions: list[str]) -> tuple[Model, str]:
    """The model with a loss, and the loss's name; without one, the first output is it."""
    if loss is None:
        return model, predictions[0]
    if not isinstance(loss, LossType):
        raise _cameo.UnsupportedError(f"loss {type(loss).__name__} is not supported: a LossType, or None for a model whose "
                                      "first output is its loss")
    if len(predictions) != 1:
        raise _cameo.ArgumentError(f"the model has {len(predictions)} outputs ({', '.join(predictions)}); say with "
                                   "loss_input_names which one the loss reads")
    kind, target, nodes = _LOSSES[loss]
    part = load(f"""<ir_version: 8, opset_import: ["" : {_opset(model)}]>
loss (float[] prediction, {kind}[] target) => (float loss) {{ {nodes} }}""")
    inner = {output: f"onnx::loss::{output}" for node in part.nodes for output in node.outputs}
    inner.update(prediction="onnx::loss::prediction", target=_new_name(target, model), loss=_new_name("loss", model))
    if predictions[0] not in [output.name for output in model.outputs]:
        model = model.expose(predictions)
    return merge(model, part.rename(inner), {predictions[0]: inner["prediction"]}), inner["loss"]


def generate_artifacts(model: typing.Any, requires_grad: typing.Sequence[str] | None = None,
                       frozen_params: typing.Sequence[str] | None = None, loss: LossType | None = None,
                       optimizer: OptimType | None = None,
                       artifact_directory: str | os.PathLike[str] | None = None, prefix: str = "",
                       ort_format: bool = False, custom_op_library: typing.Any = None,
                       additional_output_names: typing.Sequence[str] | None = None, nominal_checkpoint: bool = False,
                       loss_input_names: typing.Sequence[str] | None = None) -> None:
    """Writes the artifacts that cameo.training.api takes. requires_grad names what is trained; None: what
    Model.prepare would train, without frozen_params."""
    if ort_format or custom_op_library or nominal_checkpoint:
        raise _cameo.UnsupportedError("ort_format, custom_op_library and nominal_checkpoint are not supported")
    base = load(model)
    both = set(requires_grad or ()) & set(frozen_params or ())
    if both:
        raise _cameo.ArgumentError("a parameter cannot be both frozen and trained: " + ", ".join(sorted(both)))
    predictions = list(loss_input_names or [output.name for output in base.outputs])
    forward, loss_name = _with_loss(base, loss, predictions)
    more = list(additional_output_names or ())
    exposed = [name for name in more if name not in [output.name for output in forward.outputs]]
    if exposed:
        forward = forward.expose(exposed)
    if requires_grad is None:
        report: typing.Any = copy.copy(forward).prepare(f"output:{loss_name}", "sgd").report
        trained = [name for name in report.trained if name not in (frozen_params or ())]
    else:
        trained = list(requires_grad)
    values = {name: numpy.array(forward.initializers[name]) for name in [*trained, *(frozen_params or ())]}
    inputs = [info.name for info in forward.inputs if info.name not in values]
    eval_model = forward.extract(inputs=[*inputs, *values], outputs=[loss_name, *more])

    folder = os.fspath(artifact_directory) if artifact_directory is not None else os.getcwd()

    def path(name: str) -> str:
        return os.path.join(folder, prefix + name)
    eval_model.save(path("eval_model.onnx"))
    eval_model.grad(loss_name, trained).save(path("training_model.onnx"))
    state = CheckpointState(values)
    state._trained = set(trained)
    CheckpointState.save_checkpoint(state, path("checkpoint"))
    if optimizer is not None:
        text = f'<ir_version: 8, opset_import: ["" : {_opset(base)}, "com.microsoft" : 1]>\n{_OPTIMIZERS[optimizer]}'
        load(text).save(path("optimizer_model.onnx"))


__all__ = ["generate_artifacts", "LossType", "OptimType"]
