# Models.
# SPDX-License-Identifier: Apache-2.0
"""cameo.load and cameo.Model."""

import os

from . import _cameo, _registries

SCHEDULES = {"constant": 0, "step": 1, "cosine": 2, "linear": 3}


class ValueInfo:
    """An input or output: name, type as ONNX writes it, dtype of NumPy, shape (numbers, names or None)."""

    __slots__ = ("name", "type", "number", "shape", "kind", "has_default")

    def __init__(self, row):
        self.name, self.type, self.number, self.shape, self.kind, self.has_default = row

    @property
    def dtype(self):
        from ._arrays import numpy_type
        return numpy_type(self.number)

    def __repr__(self):
        return f"{self.name}: {self.type}"


class Finding:
    """Something that is wrong with a model: rule, place, reason, help; severity is "violation" or "warning"."""

    __slots__ = ("rule", "severity", "place", "reason", "help")

    def __init__(self, row):
        self.rule, violation, self.place, self.reason, self.help = row
        self.severity = "violation" if violation else "warning"

    def __repr__(self):
        return f"{self.rule}: {self.place}: {self.reason}"


def load(source, *, copy=False, links=False, registry=None):
    """Opens a model: a path, bytes, a file object, an onnx.ModelProto, or a model in ONNX's text form.

    copy reads files into memory instead of mapping them; links lets external data be symbolic links. registry has
    operators of one's own; without it those of cameo.operators.default are known.
    """
    if registry is not None:
        model = load(source, copy=copy, links=links)
        return Model(_registries.having(model._inside, registry))
    if isinstance(source, Model):
        return source
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    elif hasattr(source, "read"):
        source = source.read()
    if isinstance(source, (bytearray, memoryview)):
        source = bytes(source)
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return Model(_cameo.load(source.encode(), format=2))
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    return Model(_cameo.load(source, copy=copy, links=links))


class Model:
    """A model. load() makes one.

    What the library holds never changes while something refers to it: changing a Model puts a changed copy in its
    place (weights are not copied), and sessions and arrays of the old one go on.
    """

    def __init__(self, inside):
        self._inside = inside
        self._session = None

    @property
    def _inside(self):
        """The library's model, which knows the operators that are registered now."""
        handle = self._handle
        newest = _registries.current(handle)
        if newest is not handle:
            self._inside = newest
        return newest

    @_inside.setter
    def _inside(self, handle):
        self._handle = handle
        self._session = None

    def _become(self, inside):
        """The model is now this one."""
        self._inside = inside
        self._session = None
        return self

    @property
    def inputs(self):
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def outputs(self):
        return [ValueInfo(row) for row in self._inside.outputs()]

    def check(self, strict=False):
        """What is wrong with the model: a list of findings, empty where nothing is."""
        return [Finding(row) for row in self._inside.check(strict)]

    def run(self, outputs=None, /, **inputs):
        """Runs the model: inputs by name, results as a dict. The session is made at the first call and kept."""
        self._inside  # a session that does not know the newest operators is dropped
        if self._session is None:
            from ._session import Session
            self._session = Session(self)
        names = [output.name for output in self.outputs] if outputs is None else list(outputs)
        return dict(zip(names, self._session.run(names, inputs)))

    def grad(self, of, wrt, *, portable=False):
        """The model with further outputs, "gradient.NAME": derivatives of the sum of value `of` by the values in wrt."""
        return Model(_cameo.gradient(self._inside, of, [wrt] if isinstance(wrt, str) else wrt, portable))

    def prepare(self, loss, optimizer="sgd", *, schedule="constant", **options):
        """Makes the model trainable, as `cameo prepare` does, and returns it. Options are those of the command: lr,
        momentum, weight_decay, beta1, beta2, epsilon, output, target, warmup, schedule_steps, schedule_factor,
        clip_norm, accumulate, train, freeze, keep_opset, class_axis, keep_tied."""
        row = _cameo.prepare(self._inside, loss=loss, optimizer=optimizer, schedule=SCHEDULES[schedule], **options)
        return self._become(row[0])

    def text(self, elide=0):
        """The model in ONNX's text form; tensors of more than elide elements are shortened."""
        return self._inside.write(True, elide)

    def to_bytes(self):
        """The model as a file holds it."""
        return self._inside.write(False)

    def to_onnx(self):
        """The model as an onnx.ModelProto."""
        import onnx
        return onnx.load_from_string(self.to_bytes())

    def save(self, path, *, external=None, inline=False):
        """Writes the model, whole or not at all. external: tensors go to a file of this name, or True for one named
        after the model; inline: everything into the model's own file."""
        placement = 2 if inline else 1 if external else 0
        self._inside.save(os.fspath(path), placement, external if isinstance(external, str) else None)

    def __repr__(self):
        return f"<cameo.Model {', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))}>"
