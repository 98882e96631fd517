# Training by the interface of training.py.
# SPDX-License-Identifier: Apache-2.0
"""cameo.backend.prepare_training and TrainingRep."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy
import onnx

import cameo

from ._inference import check_device, named_inputs, supports
from .training import TrainingBackend, TrainingBackendRep

_OF_THE_TRAINER = ("threads", "memory_limit", "backend", "seed", "without", "with_passes")


class TrainingRep(TrainingBackendRep):
    """A model made ready to be trained; prepare_training makes it. trainer is the cameo.Trainer behind it."""

    def __init__(self, trainer: cameo.Trainer) -> None:
        self.trainer = trainer
        self._inputs = trainer.inputs

    def initialize(self) -> None:
        self.trainer.initialize()

    def step(self, inputs: Any) -> float:
        return float(self.trainer.step(named_inputs(inputs, self._inputs)))

    def evaluate(self, inputs: Any) -> float:
        return float(self.trainer.evaluate(named_inputs(inputs, self._inputs)).get("loss", math.nan))

    def export(self) -> onnx.ModelProto:
        model: onnx.ModelProto = self.trainer.to_model().to_onnx()
        return model

    @property
    def state(self) -> dict[str, numpy.ndarray[Any, Any]]:
        return dict(self.trainer.variables)

    @property
    def scalars(self) -> dict[str, float]:
        return dict(self.trainer.scalars)


def _names(names: Any) -> Any:
    """Names as the expression that matches them alone; POSIX knows no other escapes than Python writes here."""
    if names is None or isinstance(names, str):
        return names
    return "^(" + "|".join(re.sub(r"([][.^$*+?(){}|\\])", r"\\\1", name) for name in names) + ")$"


class Training(TrainingBackend):
    """prepare_training for cameo.backend.Backend."""

    @classmethod
    def prepare_training(cls, model: Any, loss: str | None = None, optimizer: str | None = None, device: str = "CPU",
                         **options: Any) -> TrainingRep:
        """Makes a model ready to be trained: an onnx.ModelProto, or whatever cameo.load takes. A model without training
        info needs a loss and an optimizer. options: those of TrainingBackend.prepare_training and the others of
        cameo.Model.prepare (train and freeze may be regular expressions), and of cameo.Trainer (threads, seed, ..).

        >>> import numpy, onnx.parser
        >>> line = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
        ... line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }''')
        >>> rep = Training.prepare_training(line, "mse", "sgd", lr=0.1)
        >>> rep.step({"x": numpy.ones(1, numpy.float32), "target": numpy.zeros(1, numpy.float32)})
        4.0
        >>> round(float(rep.state["w"][0]), 6)
        1.6
        """
        check_device(device)
        of_the_trainer = {key: options.pop(key) for key in _OF_THE_TRAINER if key in options}
        made = cameo.Model(cameo.load(model)._inside)  # a name of its own: what is prepared is not the caller's
        if loss is not None or optimizer is not None:
            if loss is None or optimizer is None:
                raise cameo.ArgumentError("a training is made of a loss and an optimizer, one of them is missing")
            made.prepare(loss, optimizer, **{key: _names(value) if key in ("train", "freeze") else value
                                             for key, value in options.items()})
        elif options:
            raise cameo.ArgumentError(f"option '{next(iter(options))}' describes a training that is made of a loss and an "
                                      "optimizer, and neither is given")
        return TrainingRep(cameo.Trainer(made, **of_the_trainer))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can be trained on a device: "CPU", "CPU:0"."""
        return supports(device)
