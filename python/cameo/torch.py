# An ONNX network as a layer of PyTorch.
# SPDX-License-Identifier: Apache-2.0
"""An ONNX network as a layer of a PyTorch model: forward and backward run in Cameo; and a training of PyTorch as an ONNX
file: export_training.

>>> import cameo, cameo.torch, torch
>>> layer = cameo.torch.Module('''<ir_version: 8, opset_import: ["" : 17]>
... line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {0.5}> {
...     p = MatMul(x, w) y = Add(p, b)
... }''')
>>> y = layer(torch.tensor([[3.0, 4.0]]))
>>> y.backward(torch.ones(1, 1))
>>> y.item(), layer.w.grad.flatten().tolist(), layer.b.grad.tolist()
(11.5, [3.0, 4.0], [1.0])
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

try:
    import torch
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ModuleNotFoundError("cameo.torch needs PyTorch, which is not installed for this Python: pip install torch",
                              name="torch") from None
from torch import nn

from . import _cameo
from ._autograd import Function, part, to_torch, with_sum
from ._export_torch import export_training
from ._graph import ValueInfo
from ._model import Model, load

__all__ = ["Module", "export_training"]


def _expression(trainable: None | str | Iterable[str]) -> str | None:
    """What to train, as a regular expression over names; None: what a user of a framework would call a parameter."""
    if trainable is None or isinstance(trainable, str):
        return "." if trainable == "all" else trainable
    if not isinstance(trainable, list) or not all(isinstance(name, str) for name in trainable):
        raise _cameo.ArgumentError(f"trainable is {trainable!r}, expected None, 'all', names or a regular expression")
    return "^(" + "|".join(re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", name) for name in trainable) + ")$"


class _Network:
    """The model behind a module and behind its copies: it does not change."""

    def __init__(self, model: Model, trainable: None | str | Iterable[str], options: dict[str, Any]) -> None:
        self.model, self.options = model, options
        given = isinstance(trainable, Iterable) and not isinstance(trainable, str)
        self.trainable: Any = list(trainable) if given else trainable  # type: ignore[arg-type]
        self.inputs = [info for info in model.inputs if not info.has_default]
        self.outputs = model.outputs
        for info in self.outputs:
            if info.kind != 1 or info.number == 8:
                raise _cameo.UnsupportedError(f"output '{info.name}' is {info.type}, which PyTorch has no tensor for")
        self.parameters: list[str] = []
        self.statistics: list[str] = []
        self.choices: dict[str, str] = {}
        self.prepared = model
        names = [info.name for info in self.outputs]
        if self.trainable != []:
            self._prepare(names)
        plain = copy.copy(self.prepared).strip() if self.parameters else model
        inputs = [info.name for info in self.inputs] + self.parameters + self.statistics
        self.evaluation = Function(part(plain, inputs, names), inputs, (), options)
        self.training = self._training(inputs) if self.parameters else self.evaluation

    def _prepare(self, names: list[str]) -> None:
        """Training, added to the model as `prepare` does, tells what is trained, separates merged tensors, and has
        the network in training mode."""
        prepared = with_sum(self.model, names, "cameo.0.")
        try:
            report = prepared.prepare("output:cameo.0.sum", train=_expression(self.trainable)).report
        except _cameo.Error as reason:
            if self.trainable is None and any(row.rule == "untrained" for row in reason.findings):
                return  # nobody asked for parameters
            raise
        self.prepared = prepared
        self.parameters = list(report.trained)
        self.choices = {**report.trained, **report.frozen}
        self.statistics = [row[0] for row in _cameo.initializers(self.prepared._inside)
                           if row[3] and row[4] < 0 and row[0] not in self.parameters]

    def _training(self, inputs: list[str]) -> Function:
        """The network in training mode: the part of a training step that leads to the outputs."""
        step = self.prepared.step()
        made = {name for node in step.nodes for name in node.outputs}
        outputs = [f"cameo.0.out.{i}" for i in range(len(self.outputs))]
        outputs = [name + ".training" if name + ".training" in made else name for name in outputs]
        following = [name + ".next" for name in self.statistics]
        return Function(part(step, inputs, outputs + following), inputs, following, self.options,
                        moving=self.statistics)

    def tensors(self, names: list[str]) -> list[torch.Tensor]:
        """Initializers as tensors of PyTorch's memory."""
        numbers = {row[0]: row[1] for row in _cameo.initializers(self.prepared._inside)}
        return [to_torch(self.prepared.initializers[name].copy(), numbers[name]) for name in names]

    def with_values(self, values: dict[str, Any]) -> Model:
        """The model with these values: the one that was given where it has such initializers, otherwise as it was
        changed to have them."""
        if values.keys() <= self.model.initializers.keys():
            made = copy.copy(self.model)
        else:
            made = part(copy.copy(self.prepared).strip(), [info.name for info in self.inputs],
                        [info.name for info in self.outputs])
        for name, value in values.items():
            made.initializers[name] = value
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> _Network:
        return self

    def __reduce__(self) -> Any:
        return _Network, (self.model, self.trainable, self.options)


class Module(nn.Module):
    """An ONNX network as a layer. What `Model.prepare` would train are its parameters, running statistics of batch
    normalization its buffers, under the names of the initializers: `layer.fc.weight` for "fc.weight".

    trainable: None, "all", names, or a regular expression over names; []: nothing. Other options are those of Session.
    train() and eval() switch Dropout and BatchNormalization as in other layers.
    """

    def __init__(self, model: Any, trainable: None | str | Iterable[str] = None, *, threads: int = 0,
                 memory_limit: int | str = 0, backend: str | None = None, seed: int = 0, without: str | None = None) -> None:
        super().__init__()
        options = {"threads": threads, "memory_limit": memory_limit, "backend": backend, "seed": seed,
                   "without": without}
        loaded = copy.copy(load(model))
        if loaded.training:
            loaded.strip()
        self._network = _Network(loaded, trainable, options)
        self._places: list[tuple[str, nn.Module, str]] = []
        parameters, statistics = self._network.parameters, self._network.statistics
        for name, tensor in zip(parameters, self._network.tensors(parameters)):
            self._put(name, nn.Parameter(tensor))
        for name, tensor in zip(statistics, self._network.tensors(statistics)):
            self._put(name, tensor)

    def _put(self, name: str, tensor: torch.Tensor) -> None:
        """Registers a tensor in modules that the dots of its name part."""
        owner: nn.Module = self
        *path, leaf = name.split(".")
        for piece in path:
            while not piece or not isinstance(getattr(owner, piece, nn.Module()), nn.Module):
                piece += "_"
            if not hasattr(owner, piece):
                owner.add_module(piece, nn.Module())
            owner = getattr(owner, piece)
        while not leaf or hasattr(owner, leaf):
            leaf += "_"
        if isinstance(tensor, nn.Parameter):
            owner.register_parameter(leaf, tensor)
        else:
            owner.register_buffer(leaf, tensor)
        self._places.append((name, owner, leaf))

    @property
    def names(self) -> dict[str, str]:
        """The initializer that each parameter and buffer is, by its name here."""
        here = {id(module): prefix for prefix, module in self.named_modules()}
        return {(here[id(owner)] + "." if here[id(owner)] else "") + leaf: name for name, owner, leaf in self._places}

    @property
    def choices(self) -> dict[str, str]:
        """For each initializer that was looked at, why it is a parameter or is not."""
        return dict(self._network.choices)

    def _arguments(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        infos: list[ValueInfo] = self._network.inputs
        if len(inputs) > len(infos):
            raise _cameo.ArgumentError(f"{len(inputs)} inputs are given, the model has {len(infos)}")
        given = {info.name: value for info, value in zip(infos, inputs)}
        for name, value in named.items():
            if name in given or all(info.name != name for info in infos):
                raise _cameo.ArgumentError(f"input '{name}' is given twice" if name in given
                                           else f"the model has no input '{name}'")
            given[name] = value
        missing = [info.name for info in infos if info.name not in given]
        if missing:
            raise _cameo.ArgumentError(f"input '{missing[0]}' is missing")
        return [given[info.name] for info in infos]

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Runs the network: inputs in the model's order or by name; a tensor, or a tuple where it has several
        outputs."""
        network = self._network
        function = network.training if self.training else network.evaluation
        held = [getattr(owner, leaf) for _, owner, leaf in self._places]
        results = function([*self._arguments(inputs, named), *held])
        count = len(network.outputs)
        if len(results) > count:
            with torch.no_grad():
                for buffer, value in zip(held[len(network.parameters):], results[count:]):
                    buffer.copy_(value)
        return results[0] if count == 1 else tuple(results[:count])

    def to_model(self) -> Model:
        """The network as a model, with the values that its parameters and buffers have now."""
        return self._network.with_values({name: getattr(owner, leaf).detach().contiguous().numpy()
                                          for name, owner, leaf in self._places})

    def export(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes the network with its current values as an ONNX file, whole or not at all; options of Model.save."""
        self.to_model().save(path, **options)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Module:
        for _, owner, leaf in self._places:
            before = getattr(owner, leaf)
            after = fn(torch.empty(0, dtype=before.dtype))
            if after.dtype != before.dtype or after.device.type != "cpu":
                raise _cameo.UnsupportedError(f"the network computes in {before.dtype} on the CPU, and cannot be moved "
                                              f"to {after.dtype} on '{after.device}'")
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def extra_repr(self) -> str:
        network = self._network
        return f"{', '.join(map(repr, network.inputs))} -> {', '.join(map(repr, network.outputs))}"
