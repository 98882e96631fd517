# Data to train on, in the forms that programs have it.
# SPDX-License-Identifier: Apache-2.0
"""Files, arrays in memory and iterables of batches, as the library takes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy

from . import _cameo
from ._arrays import from_value, numpy_type, to_value
from ._check import Fixed
from ._model import Model, load

Data = Union[str, "os.PathLike[str]", Mapping[str, Any], tuple[Any, ...], Iterable[Any], Callable[[int], Iterable[Any]]]


def is_array(value: Any) -> bool:
    """Whether this is one array, of whatever library."""
    return isinstance(value, numpy.ndarray) or hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")


def fit_type(value: Any, wanted: Any) -> Any:
    """An array as an input of this type takes it: other floats are rounded, other integers copied, as for files. What
    does not fit so stays, and is refused by its name."""
    if (wanted is not None and isinstance(value, numpy.ndarray) and value.dtype != wanted
            and numpy.can_cast(value.dtype, wanted, "same_kind")):
        return value.astype(wanted)
    return value


def readable(name: str, value: Any) -> Any:
    """The same, unless it is a tensor whose memory PyTorch does not show."""
    if getattr(value, "requires_grad", False) is True:
        raise _cameo.ArgumentError(f"'{name}' is a tensor that requires gradients: give its detach()")
    return value


def by_name(batch: Any, names: Sequence[str]) -> dict[str, Any]:
    """A batch as a dict: it may be one, a tuple or list in the order of names, one array, or an object with
    attributes of these names.

    >>> by_name([1, 2], ["x", "target"])
    {'x': 1, 'target': 2}
    """
    if isinstance(batch, Mapping):
        return dict(batch)
    if isinstance(batch, (tuple, list)) and not hasattr(batch, "_fields"):
        if len(batch) != len(names):
            raise _cameo.ArgumentError(f"a batch has {len(batch)} arrays, but there are {len(names)} inputs: "
                                       f"{', '.join(names)}")
        return dict(zip(names, batch))
    if is_array(batch) and len(names) == 1:
        return {names[0]: batch}
    found = {name: getattr(batch, name) for name in names if hasattr(batch, name)}
    if not found:
        raise _cameo.ArgumentError(f"a batch is a {type(batch).__name__}, expected a dict, a tuple, a list or an object "
                                   f"with attributes {', '.join(names)}")
    return found


def rows_of(feeds: Mapping[str, Any]) -> int:
    """How many samples a batch has: the first axis of the first array that has axes."""
    for value in feeds.values():
        shape: tuple[int, ...] = tuple(getattr(value, "shape", ()))
        if shape:
            return shape[0]
    return 1


class Batches:
    """An iterable of batches as the library asks for it: begin an epoch, then batch by batch.

    A function of the number of the epoch, from 0, may give the iterable instead. What has set_epoch (samplers of
    PyTorch) is told the epoch.
    """

    def __init__(self, data: Any, names: Sequence[str], types: Mapping[str, Any]):
        self._data, self._names, self._types = data, names, types
        self._batches: Iterator[Any] = iter(())
        self.batches = self._length(data)
        self.samples = self._length(getattr(data, "dataset", None))
        kind = "a function" if callable(data) and not hasattr(data, "__iter__") else type(data).__name__
        self.conditions = f"of {kind}" + (f", {self.batches} an epoch" if self.batches else "")

    @staticmethod
    def _length(data: Any) -> int:
        try:
            return len(data)
        except (TypeError, NotImplementedError, AttributeError):
            return 0

    def begin(self, epoch: int, skip: int) -> None:
        data = self._data
        for part in (data, getattr(data, "sampler", None), getattr(data, "batch_sampler", None)):
            if part is not None and hasattr(part, "set_epoch"):
                part.set_epoch(epoch)
        if callable(data) and not hasattr(data, "__iter__"):
            data = data(epoch)
        self._batches = iter(data)
        for _ in range(skip):
            next(self._batches, None)

    def next(self) -> tuple[int, dict[str, Any]] | None:
        try:
            batch = next(self._batches)
        except StopIteration:
            return None
        types = self._types
        feeds = {name: fit_type(readable(name, value), types[name])
                 for name, value in by_name(batch, self._names).items() if name in types}
        rows = rows_of(feeds)
        if rows == 0:
            raise _cameo.ArgumentError("a batch has no rows")
        return rows, feeds


def arrays_of(data: Any, names: Sequence[str]) -> dict[str, Any] | None:
    """Arrays in memory by name, or None where data is something else."""
    if is_array(data):
        data = (data,)
    if isinstance(data, Mapping):
        return {str(name): to_value(readable(name, value)) for name, value in data.items()}
    if isinstance(data, tuple):
        if len(data) > len(names):
            raise _cameo.ArgumentError(f"the data has {len(data)} arrays, but there are {len(names)} inputs: "
                                       f"{', '.join(names)}")
        return {name: to_value(readable(name, value)) for name, value in zip(names, data)}
    return None


def open_data(data: Any, names: Sequence[str], columns: str | None = None) -> Any:
    """A data set of the library: a path, several paths whose samples follow each other, or arrays in memory; None
    where data is an iterable of batches."""
    if isinstance(data, _cameo.Data):
        return data
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return _cameo.open_data([os.fsencode(path) for path in data], columns)
    arrays = arrays_of(data, names)
    return None if arrays is None else _cameo.data_of(arrays)


def length_of(data: Any, columns: str | None = None) -> tuple[Any, dict[str, int]]:
    """The data, opened where it is in files, and what prepare needs to know of it: its samples, or the batches it has."""
    if isinstance(data, (str, os.PathLike)):
        data = open_data(data, (), columns)
    if isinstance(data, _cameo.Data):
        return data, {"run_samples": data.samples()}
    if is_array(data):
        data = (data,)
    if isinstance(data, Mapping):
        return data, {"run_samples": rows_of(data)}
    if isinstance(data, tuple):
        return data, {"run_samples": rows_of({str(i): array for i, array in enumerate(data)})}
    return data, {"run_samples": len(data), "run_batch_size": 1} if hasattr(data, "__len__") else {}


def open_or_iterate(data: Any, inputs: Sequence[tuple[str, int]], columns: str | None = None) -> Any:
    """What the library's loop takes: a data set, or Batches."""
    names = [name for name, _ in inputs]
    opened = open_data(data, names, columns)
    if opened is not None:
        return opened
    if not callable(data) and not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise _cameo.ArgumentError(f"data is a {type(data).__name__}, expected a path, arrays (a dict or a tuple), an "
                                   "iterable of batches, or a function that gives one")
    return Batches(data, names, {name: numpy_type(number) for name, number in inputs})


class ClassCount(NamedTuple):
    """Of a class: its label, how many samples are of it, for how many it was predicted, and how often that was right."""

    label: int
    samples: int
    predicted: int
    correct: int


class Evaluation(Fixed, dict[str, float]):
    """What evaluate() found: values by the name of the metric, also as metrics; samples, notes, classes and confusion
    beside them."""

    samples: int
    notes: list[str]
    classes: list[ClassCount]
    confusion: Any

    def __init__(self, row: tuple[Any, ...]):
        self.samples, metrics, self.notes, classes, confused = row
        self.classes = [ClassCount(*row) for row in classes]
        super().__init__({f"{name}-{average}" if average else name: value for name, average, value, _ in metrics})
        size = len(self.classes)
        self.confusion = numpy.array(confused, numpy.int64).reshape(size, size) if confused else None

    @property
    def metrics(self) -> dict[str, float]:
        return dict(self)


def _required(model: Model) -> list[str]:
    return [info.name for info in model.inputs if not info.has_default]


def _whole(data: Any, names: list[str], columns: str | None) -> Any:
    opened = open_data(data, names, columns)
    if opened is None:
        raise _cameo.ArgumentError(f"data is a {type(data).__name__}, expected a path or arrays (a dict, a tuple or one "
                                   "array)")
    return opened


def evaluate(model: Any, data: Data, *, metrics: str | Iterable[str] | None = None, loss: str | None = None,
             output: str | None = None, target: str | None = None, class_axis: int = 1, ignored: int = -100,
             columns: str | None = None, batch_size: int = 0, threads: int = 0, raw_bytes: bool = False,
             as_is: bool = False) -> Evaluation:
    """Judges the predictions of a model against data: a path, a dict of arrays, or a tuple of the inputs and the
    target. metrics are those of `cameo evaluate`, by default those that fit.

    >>> import cameo, numpy
    >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... twice (float[N] x) => (float[N] y) <float two = {2}> { y = Mul(x, two) }''')
    >>> x = numpy.arange(4, dtype=numpy.float32)
    >>> model.evaluate((x, 2 * x + 1), metrics="mae")
    {'mae': 1.0}
    """
    opened = _whole(data, [*_required(load(model)), target or "target"], columns)
    names = metrics if metrics is None or isinstance(metrics, str) else ",".join(metrics)
    return Evaluation(_cameo.evaluate(load(model)._inside, opened, metrics=names, loss=loss, output=output,
                                      target=target, class_axis=class_axis, ignored=ignored, batch_size=batch_size,
                                      threads=threads, raw_bytes=raw_bytes, as_is=as_is))


def predict(model: Any, data: Data, *, outputs: str | Iterable[str] | None = None, columns: str | None = None,
            batch_size: int = 0, threads: int = 0, raw_bytes: bool = False,
            as_is: bool = False) -> dict[str, numpy.ndarray[Any, Any]]:
    """What a model gives for all samples of the data, batch by batch: a dict of arrays.

    >>> import cameo, numpy
    >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... twice (float[N] x) => (float[N] y) <float two = {2}> { y = Mul(x, two) }''')
    >>> model.predict({"x": numpy.arange(4, dtype=numpy.float32)}, batch_size=3)
    {'y': array([0., 2., 4., 6.], dtype=float32)}
    """
    model = load(model)
    if outputs is None:
        names = [info.name for info in model.outputs]
    else:
        names = outputs.split(",") if isinstance(outputs, str) else list(outputs)
    opened = _whole(data, _required(model), columns)
    values = _cameo.predict(model._inside, opened, ",".join(names), batch_size=batch_size, threads=threads,
                            raw_bytes=raw_bytes, as_is=as_is)
    return dict(zip(names, (from_value(value) for value in values)))
