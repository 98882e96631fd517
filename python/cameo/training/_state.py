# Checkpoints as ONNX Runtime Training has them.
# SPDX-License-Identifier: Apache-2.0
"""CheckpointState, Parameter and Properties; reading and writing is the library's."""

from __future__ import annotations

import json
import os
import typing

import numpy

from .. import _cameo
from .._check import Fixed
from .._checkpoint import Checkpoint
from .._model import load
from . import _messages

Array = typing.Any
Scalar = typing.Union[int, float, str]
_SPECIAL = set(".^$*+?()[]{}|\\")


def one_of(names: typing.Iterable[str]) -> str:
    """A regular expression for these names and no others."""
    return "^(" + "|".join("".join("\\" + c if c in _SPECIAL else c for c in name) for name in names) + ")$"


class Parameter(Fixed):
    """A parameter of the model: name, data, grad, requires_grad."""

    def __init__(self, state: CheckpointState, name: str) -> None:
        self._state = state
        self._name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def data(self) -> Array:
        """Its values; assigning replaces them."""
        return self._state._values[self._name]

    @data.setter
    def data(self, value: Array) -> None:
        self._state._set(self._name, value)

    @property
    def grad(self) -> Array:
        """The gradient, summed since it was last reset; None before the first step."""
        return self._state._gradients.get(self._name)

    @property
    def requires_grad(self) -> bool:
        """Whether it is trained."""
        return self._name in self._state._trained

    def __repr__(self) -> str:
        return f"Parameter(name={self.name}, requires_grad={self.requires_grad})"


class Parameters(Fixed):
    """All parameters, by name; iterating gives pairs of names and parameters."""

    def __init__(self, state: CheckpointState) -> None:
        self._state = state

    def __getitem__(self, name: str) -> Parameter:
        if name not in self:
            raise KeyError(f"Parameter {name} not found.")
        return Parameter(self._state, name)

    def __setitem__(self, name: str, value: Array) -> None:
        self[name].data = value

    def __contains__(self, name: object) -> bool:
        return name in self._state._values

    def __iter__(self) -> typing.Iterator[tuple[str, Parameter]]:
        for name in self._state._values:
            yield name, Parameter(self._state, name)

    def __len__(self) -> int:
        return len(self._state._values)

    def __repr__(self) -> str:
        return repr(list(self._state._values))


class Properties(Fixed):
    """Numbers and texts that are saved along with the parameters; iterating gives pairs of names and values."""

    def __init__(self, values: dict[str, Scalar]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Scalar:
        if name not in self._values:
            raise KeyError(f"Property {name} not found.")
        return self._values[name]

    def __setitem__(self, name: str, value: Scalar) -> None:
        if not isinstance(value, (int, float, str)):
            raise TypeError(f"property '{name}' is a {type(value).__name__}, expected int, float or str")
        self._values[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> typing.Iterator[tuple[str, Scalar]]:
        return iter(list(self._values.items()))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(list(self._values))


class CheckpointState(Fixed):
    """Parameters, the optimizer's state and properties; load_checkpoint makes one."""

    def __init__(self, values: dict[str, Array], moments: dict[str, list[Array]] | None = None, step: int = 0,
                 rate: float | None = None, properties: dict[str, Scalar] | None = None) -> None:
        self._values = values
        self._trained = set(values)
        self._gradients: dict[str, Array] = {}
        self._moments = moments or {}  # of each parameter, as its optimizer has them
        self._step = step
        self._rate = rate  # that the optimizer began with
        self._properties = Properties(properties or {})

    def _set(self, name: str, value: Array) -> None:
        array = numpy.array(value, order="C")
        known = self._values[name]
        if array.shape != known.shape or array.dtype != known.dtype:
            raise _cameo.ArgumentError(f"parameter '{name}' has {known.dtype} of shape {known.shape}, "
                                       f"not {array.dtype} of {array.shape}")
        self._values[name] = array

    @classmethod
    def load_checkpoint(cls, checkpoint_uri: str | os.PathLike[str]) -> CheckpointState:
        """Reads a checkpoint, of Cameo or of ONNX Runtime Training."""
        found = Checkpoint(checkpoint_uri)
        values: dict[str, Array] = {}
        slots: dict[str, dict[str, Array]] = {}
        for name, row in found.tensors.rows.items():
            array = numpy.array(found.tensors[name])
            if row.slot:
                slots.setdefault(name.rpartition("/")[0], {})[row.slot] = array
            else:
                values[name] = array
        moments = {name: [found[key] for key in sorted(found)] for name, found in slots.items()}
        properties = found.facts.get("ort.properties") or {}
        rate = vars(found.groups[0]).get("initial_lr") if found.groups else None
        return cls(values, moments, found.step or 0, rate, dict(properties))

    @classmethod
    def save_checkpoint(cls, state: CheckpointState, checkpoint_uri: str | os.PathLike[str],
                        include_optimizer_state: bool = False) -> None:
        """Writes a checkpoint that ONNX Runtime Training reads too, whole or not at all."""
        model = load(state._holder())
        model.export_checkpoint(checkpoint_uri, "onnxruntime", weights_only=not include_optimizer_state)

    def _holder(self) -> bytes:
        """A model that holds nothing but the parameters and their training, for the library to export."""
        names = list(self._values)
        trained = [name for name in names if name in self._trained and self._values[name].dtype == numpy.float32]
        sums = [f'"cast {i}" = Cast <to = 1> ({json.dumps(name)})\n"sum {i}" = ReduceSum <keepdims = 0> ("cast {i}")\n'
                for i, name in enumerate(names)]
        text = f"""<ir_version: 8, opset_import: ["" : 17]>
holder (float x) => (float loss) {{
    {''.join(sums)} loss = Sum({', '.join(['x'] + [f'"sum {i}"' for i in range(len(names))])})
}}"""
        model = load(_messages.with_initializers(load(text).to_bytes(), self._values))
        model.prepare("output:loss", "adamw" if self._moments else "sgd", lr=self._rate or 0.001, train=one_of(trained))
        for name, moments in self._moments.items():
            for slot, moment in zip(("exp_avg", "exp_avg_sq"), moments):
                model.initializers[f"{name}.{slot}"] = moment
        if "training.step" in model.initializers:
            model.initializers["training.step"] = self._step
        return _messages.with_training_metadata(model.to_bytes(), "ai.cameo.training.facts",
                                                json.dumps({"ort.properties": dict(self._properties)}))

    @property
    def parameters(self) -> Parameters:
        """The model's parameters."""
        return Parameters(self)

    @property
    def properties(self) -> Properties:
        """What else is saved."""
        return self._properties
