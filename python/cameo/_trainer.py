# Trainers.
# SPDX-License-Identifier: Apache-2.0
"""cameo.Trainer."""

import os

from . import _cameo
from ._arrays import to_value
from ._model import ValueInfo, load


class Trainer:
    """A training on its way: the training information of a model, executed. One thread at a time may use it."""

    def __init__(self, model, *, threads=0, memory_limit=0, backend=None, seed=0, gradients=False, without=None,
                 with_passes=None, registry=None):
        self.model = load(model, registry=registry)
        self._inside = _cameo.Trainer(self.model._inside, threads=threads, memory_limit=memory_limit, backend=backend,
                                      seed=seed, gradients=gradients, without=without, with_passes=with_passes)
        self._numbers = {row[0]: row[2] for row in self._inside.inputs()}
        self.scalars = {}

    @property
    def inputs(self):
        """What a step is fed."""
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def steps(self):
        """Steps so far."""
        return self._inside.steps()

    def _feeds(self, inputs):
        numbers = self._numbers
        return {name: to_value(value, numbers.get(name)) for name, value in inputs.items()}

    def step(self, inputs=None, /, **more):
        """One step on a batch; the loss of the batch before the update. scalars holds what else the step tells."""
        loss, self.scalars = self._inside.step(self._feeds({**(inputs or {}), **more}))
        return loss

    def save(self, path):
        """Writes the model with the values as they are now, whole or not at all."""
        self._inside.save(os.fspath(path))
