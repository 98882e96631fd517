# A training of Keras as an ONNX file with training info.
# SPDX-License-Identifier: Apache-2.0
"""A training of Keras as an ONNX file: export_training. Keras computes with its torch backend, and PyTorch's own exporter
writes the network; the optimizer and its state are read from the file that Keras saves."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

try:
    import keras
except ModuleNotFoundError as missing:
    if missing.name != "keras":
        raise
    raise ModuleNotFoundError("cameo.keras needs Keras, which is not installed for this Python: pip install keras",
                              name="keras") from None

from . import _cameo
from ._model import Model, load

if keras.backend.backend() != "torch":
    raise ImportError("cameo.keras exports with Keras's torch backend, but this process has the backend "
                      f"'{keras.backend.backend()}': set KERAS_BACKEND=torch. A model that another backend trained is saved with "
                      "model.save('model.keras') and loaded here, with its optimizer")

import torch

from ._export_torch import (batch_shapes, compare, ends_with, examples, export, kept, loss_file, refuse, results, training_form,
                            twice, with_training)

__all__ = ["export_training"]

# Losses that the library has: its name, and attributes that the loss must have.
_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "SparseCategoricalCrossentropy": ("cross-entropy", {"from_logits": True, "ignore_class": None}),
    "MeanSquaredError": ("mse", {}),
    "MeanAbsoluteError": ("l1", {}),
}


class _Network(torch.nn.Module):
    """A model of Keras as a module, whose parameters are called as the variables are."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._held = (model,)  # in a tuple, so that it is no part of this module
        for variable in model.variables:
            value = variable.value
            if value.is_floating_point():
                self.register_parameter(variable.path, torch.nn.Parameter(value.detach(), variable.trainable))

    def _values(self, variables: list[Any]) -> list[torch.Tensor]:
        return [self._parameters.get(variable.path, variable.value) for variable in variables]  # type: ignore[misc]

    def forward(self, *inputs: torch.Tensor) -> Any:
        model, = self._held
        given = inputs[0] if len(inputs) == 1 else list(inputs)
        made, _ = model.stateless_call(self._values(model.trainable_variables), self._values(model.non_trainable_variables),
                                       given, training=self.training)
        return made


def _norm(layer: Any, inputs: torch.Tensor, **more: Any) -> torch.Tensor:
    """A BatchNormalization as PyTorch's operator: Keras computes it of parts."""
    values = [variable if variable is None else variable.value
              for variable in (layer.moving_mean, layer.moving_variance, layer.gamma, layer.beta)]
    made = torch.nn.functional.batch_norm(inputs.movedim(layer.axis, 1), *values, False, 1 - layer.momentum, layer.epsilon)
    return made.movedim(1, layer.axis)


@contextlib.contextmanager
def _norms(model: Any) -> Iterator[None]:
    """Layers of BatchNormalization that train, for the exporter; one that is frozen stays arithmetic."""
    layers = [layer for layer in model._flatten_layers()
              if type(layer) is keras.layers.BatchNormalization and layer.trainable]
    try:
        for layer in layers:
            layer.call = functools.partial(_norm, layer)
        yield
    finally:
        for layer in layers:
            del layer.call


# ---- what is refused ----


def _look_at(model: Any) -> list[str]:
    problems = []
    if len(model.outputs) > 1 or isinstance(model.loss, (dict, list, tuple)):
        problems.append("the model has several outputs or losses, and one loss is exported: export a model of one output")
    if model.losses:
        problems.append("layers add losses of their own (regularizers, add_loss): use the weight_decay of the optimizer")
    bound = [variable.path for variable in model.trainable_variables if getattr(variable, "constraint", None) is not None]
    if bound:
        problems.append(f"'{bound[0]}' has a constraint, which training info does not have")
    if getattr(model.loss, "_fn_kwargs", {}).get("ignore_class") is not None:
        problems.append("the loss has ignore_class, which is not exported")
    if getattr(model.optimizer, "use_ema", False):
        problems.append("the optimizer has use_ema, averages of the weights, which training info does not have")
    return problems


# ---- the loss ----


def _sparse(loss: Any, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy with class numbers in the last axis, of scores or of probabilities as Keras bounds them."""
    if loss._fn_kwargs.get("from_logits"):
        log = torch.log_softmax(prediction, -1)
    else:
        epsilon = keras.backend.epsilon()
        log = torch.log(torch.clamp(prediction / prediction.sum(-1, keepdim=True), epsilon, 1 - epsilon))
    return -torch.gather(log, -1, target.to(torch.int64).reshape(*prediction.shape[:-1], 1))


def _applied(loss: Any) -> Callable[[torch.Tensor, torch.Tensor], Any]:
    """A loss of Keras, an object or a function, in PyTorch's order of arguments. The mean is PyTorch's: that of Keras has the
    size of the batch as a constant."""
    def apply(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
            each = _sparse(loss, prediction, target)
        else:
            each = loss.call(target, prediction) if isinstance(loss, keras.Loss) else loss(target, prediction)
        return each.sum() if getattr(loss, "reduction", "") == "sum" else each.mean()

    apply.__name__ = getattr(loss, "__name__", None) or type(loss).__name__
    return apply


def _class_of(loss: Any) -> Any:
    """The loss of a name or function, as Keras's own class has it; other objects and callables stay."""
    loss = keras.losses.get(loss) if isinstance(loss, str) else loss
    name = "".join(part.capitalize() for part in getattr(loss, "__name__", "").split("_"))
    made = getattr(keras.losses, name, None)
    return made() if made and getattr(loss, "__module__", "").startswith("keras.") else loss


def _known_loss(loss: Any) -> str | None:
    name, expected = _LOSSES.get(type(loss).__name__, ("", {}))
    if not name or not type(loss).__module__.startswith("keras.") or loss.reduction != "sum_over_batch_size":
        return None
    settings = {**getattr(loss, "_fn_kwargs", {}), **vars(loss)}
    return name if all(settings.get(key) == value for key, value in expected.items()) else None


def _example_target(loss: Any, prediction: torch.Tensor) -> torch.Tensor:
    if "Sparse" in type(loss).__name__:
        return torch.zeros(prediction.shape[:-1], dtype=torch.int64)
    return torch.full_like(prediction, 0.5)


def export_training(model: Any, inputs: Any, path: str | os.PathLike[str] | None = None, *, target: str = "target",
                    example_target: Any = None, partial: bool = False, settings: Mapping[str, Any] | None = None,
                    opset_version: int | None = None, check: bool = True) -> Model:
    """The training of a compiled model of Keras as a model with training info, which `cameo train` goes on with; written to
    path if one is given.

    inputs are examples: an array, or a list of them; the first axis is open. The loss and the optimizer with its state and
    schedule are those of the model. A loss that the library does not have is exported as a graph; example_target is then such
    as the loss takes, where it is neither class numbers nor shaped as the prediction. target is what the labels are called.
    partial and settings are those of Model.import_checkpoint. With check the results for the example are compared.
    """
    if not isinstance(model, keras.Model) or not getattr(model, "optimizer", None):
        raise _cameo.ArgumentError("model is not a compiled model of Keras: call model.compile(optimizer, loss)")
    args, _ = examples([torch.as_tensor(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])], True)
    with torch.no_grad():
        model(args[0] if len(args) == 1 else list(args))  # layers that were not called yet have no variables
    refuse(_look_at(model))
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    network = _Network(model)
    loss = _class_of(model.loss)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        with training_form(network), _norms(model):
            shapes = batch_shapes(network, args, {})
            export(network, args, {}, shapes, file, f"the model {model.name}", opset_version=opset_version,
                   input_names=[tensor.name for tensor in model.inputs], output_names=getattr(model, "output_names", None))
        made = load(file)
        options: dict[str, Any] = {"target": target, "loss": _known_loss(loss)}
        if options["loss"] == "cross-entropy":
            options["class_axis"] = -1
            if ends_with(made, None, "Softmax"):
                options["loss"] = None  # Keras applies it twice
        if options["loss"] is None:
            options.pop("class_axis", None)
            prediction = results(network, args, {})[0]
            example = _example_target(loss, prediction) if example_target is None else torch.as_tensor(example_target)
            options["loss"] = loss_file(_applied(loss), prediction, example, os.path.join(folder, "loss.onnx"))
        checkpoint = os.path.join(folder, "model.keras")
        model.save(checkpoint)
        with_training(made, checkpoint, partial, settings or {}, options)
        if check:
            compare(made, network, *twice((args, {})))
        return kept(made, path)
