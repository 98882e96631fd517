# Sessions.
# SPDX-License-Identifier: Apache-2.0
"""cameo.Session."""

from . import _cameo
from ._arrays import from_value, to_value
from ._model import ValueInfo, load


class Session:
    """A model made ready to run. Any number of threads may run it at once; the interpreter lock is released."""

    def __init__(self, model, *, threads=0, memory_limit=0, backend=None, seed=0, without=None, expand=False,
                 registry=None):
        self.model = load(model, registry=registry)
        self._inside = _cameo.Session(self.model._inside, threads=threads, memory_limit=memory_limit, backend=backend,
                                      seed=seed, without=without, expand=expand)
        self._numbers = {row[0]: row[2] for row in self._inside.inputs()}

    @property
    def inputs(self):
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def outputs(self):
        return [ValueInfo(row) for row in self._inside.outputs()]

    def run(self, outputs, inputs):
        """Runs once: names of outputs (None: all) and a dict of inputs; a list of results."""
        numbers = self._numbers
        feeds = {name: to_value(value, numbers.get(name)) for name, value in inputs.items()}
        return [from_value(value) for value in self._inside.run(feeds, outputs)]
