# An ONNX network as a layer of PyTorch.
# SPDX-License-Identifier: Apache-2.0
"""An ONNX network as a layer of a PyTorch model: forward and backward run in Cameo.

>>> import cameo, cameo.torch, torch
>>> layer = cameo.torch.Module('''<ir_version: 8, opset_import: ["" : 17]>
... line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {0.5}> { p = MatMul(x, w) y = Add(p, b) }''')
>>> y = layer(torch.tensor([[3.0, 4.0]]))
>>> y.backward(torch.ones(1, 1))
>>> y.item(), layer.w.grad.flatten().tolist(), layer.b.grad.tolist()
(11.5, [3.0, 4.0], [1.0])
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from . import _cameo
from ._autograd import Function, sum_graph, to_torch, type_text
from ._model import Model, ValueInfo, load

__all__ = ["Module"]


def _expression(trainable: None | str | Iterable[str]) -> str | None:
    """What to train, as a regular expression over names; None: what a user of a framework would call a parameter."""
    if trainable is None or isinstance(trainable, str):
        return "." if trainable == "all" else trainable
    return "^(" + "|".join(re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", name) for name in trainable) + ")$"


class _Network:
    """The model behind a module and behind its copies: it does not change."""

    def __init__(self, model: Model, trainable: None | str | Iterable[str], options: dict[str, Any]) -> None:
        self.model, self.options = model, options
        self.trainable = trainable if trainable is None or isinstance(trainable, str) else list(trainable)
        self.inputs = [info for info in model.inputs if not info.has_default]
        self.outputs = model.outputs
        for info in self.outputs:
            if info.kind != 1 or info.number == 8:
                raise _cameo.UnsupportedError(f"output '{info.name}' is {info.type}, which PyTorch has no tensor for")
        self.parameters: list[str] = []
        self.statistics: list[str] = []
        self.choices: dict[str, tuple[bool, str]] = {}
        self.changes: list[str] = []
        self.prepared = model._inside
        self._training_outputs: list[str] | None = None
        if self.trainable != []:
            self._prepare()
        names = [info.name for info in self.inputs] + self.parameters + self.statistics
        self.evaluation = Function(_cameo.vjp_part(self.prepared, names, [info.name for info in self.outputs]), names,
                                   (), options)
        self.training = self._training(names)

    def _prepare(self) -> None:
        """Training, added to the model as `prepare` does, tells what is trained, separates merged tensors, and has
        the network in training mode."""
        names = [info.name for info in self.outputs]
        joined = _cameo.vjp_join(self.prepared,
                                 sum_graph("cameo.0.", [type_text(row) for row in self.prepared.outputs()]),
                                 [(name, f"cameo.0.in.{i}") for i, name in enumerate(names)])
        self.prepared, choices, self.changes, _, _ = _cameo.prepare(
            joined, loss="output:cameo.0.sum", optimizer="sgd", lr=1.0, train=_expression(self.trainable))
        self.choices = {name: (trained, reason) for name, trained, reason in choices}
        self.parameters = [name for name, (trained, _) in self.choices.items() if trained]
        self.statistics = [row[0] for row in _cameo.initializers(self.prepared)
                           if row[3] and row[4] < 0 and row[0] not in self.parameters]

    def _training(self, names: list[str]) -> Function:
        """The network in training mode: the part of a training step that leads to the outputs."""
        if not self.parameters:
            return self.evaluation
        step = _cameo.vjp_step(self.prepared)
        known = set(_cameo.vjp_values(step))
        outputs = [f"cameo.0.out.{i}" for i in range(len(self.outputs))]
        outputs = [name + ".training" if name + ".training" in known else name for name in outputs]
        following = [name + ".next" for name in self.statistics]
        return Function(_cameo.vjp_part(step, names, outputs + following), names, following, self.options,
                        moving=self.statistics)

    def value(self, name: str) -> torch.Tensor:
        """A copy of an initializer, as a tensor."""
        for index, row in enumerate(_cameo.initializers(self.prepared)):
            if row[0] == name:
                return to_torch(_cameo.view_initializer(self.prepared, index)).clone()  # type: ignore[no-any-return]
        raise KeyError(name)

    def with_values(self, values: dict[str, Any]) -> Model:
        """The model with these values: the one that was given where it has such initializers, otherwise as it was
        changed to have them."""
        own = {row[0] for row in _cameo.initializers(self.model._inside)}
        inside = self.model._inside
        if not own.issuperset(values):
            inside = _cameo.vjp_part(self.prepared, [info.name for info in self.inputs],
                                     [info.name for info in self.outputs])
        return Model(_cameo.vjp_store(inside, values))

    def __deepcopy__(self, memo: dict[int, Any]) -> _Network:
        return self

    def __reduce__(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:  # values in other files come along
            path = os.path.join(folder, "model.onnx")
            self.model.save(path, inline=True)
            with open(path, "rb") as file:
                return _restore, (file.read(), self.trainable, self.options)


def _restore(source: bytes, trainable: Any, options: dict[str, Any]) -> _Network:
    return _Network(load(source), trainable, options)


class Module(nn.Module):
    """An ONNX network as a layer. What `Model.prepare` would train are its parameters, running statistics of batch
    normalization its buffers, under the names of the initializers: `layer.fc.weight` for "fc.weight".

    trainable: None, "all", names, or a regular expression over names; []: nothing. Other options are those of Session.
    train() and eval() switch Dropout and BatchNormalization as in other layers.
    """

    def __init__(self, model: Any, trainable: None | str | Iterable[str] = None, *, threads: int = 0,
                 memory_limit: int = 0, backend: str | None = None, seed: int = 0, without: str | None = None) -> None:
        super().__init__()
        options = {"threads": threads, "memory_limit": memory_limit, "backend": backend, "seed": seed,
                   "without": without}
        self._network = _Network(load(model), trainable, options)
        self._places: list[tuple[str, nn.Module, str]] = []
        for name in self._network.parameters:
            self._put(name, nn.Parameter(self._network.value(name)))
        for name in self._network.statistics:
            self._put(name, self._network.value(name))

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
    def choices(self) -> dict[str, tuple[bool, str]]:
        """For each initializer that was looked at: whether it is a parameter, and why."""
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
        return super()._apply(fn, recurse)

    def extra_repr(self) -> str:
        network = self._network
        return f"{', '.join(map(repr, network.inputs))} -> {', '.join(map(repr, network.outputs))}"
