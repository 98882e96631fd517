# Trainers.
# SPDX-License-Identifier: Apache-2.0
"""cameo.Trainer."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import _cameo
from ._arrays import PLAIN, from_value, numpy_type, stored, to_value
from ._check import Fixed, mapping, memory_limit as checked_limit, not_found, one_of, seed as checked_seed, whole
from ._data import Batches, Data, by_name, length_of, open_or_iterate, readable
from ._graph import ValueInfo
from ._history import History
from ._model import Model, load, placement
from .callbacks import Callback, CallbackList, ProgressBar, State

if TYPE_CHECKING:
    from .operators import Registry

Array = numpy.ndarray[Any, Any]
_VARIABLE, _PARAMETERS, _GRADIENTS = 0, 1, 2
_MOMENTS = ("on_step", "on_epoch", "on_checkpoint", "on_start", "on_epoch")  # the last: validated at the end
_LAST = {"short": 0, "drop": 1, "wrap": 2, None: 3}  # None: short; drop where the model fixes the batch
_RATE = "training.lr_base.double"  # what prepare calls the rate that it was given


class Variables(Fixed, MutableMapping[str, Array]):
    """What training changes, by name: weights, moments of the optimizer, counters. Reading copies; assigning replaces
    the values."""

    def __init__(self, inside: Any):
        self._inside = inside
        self._rows = {row[0]: (i, *row[1:]) for i, row in enumerate(inside.variables())}

    def _find(self, name: str) -> tuple[int, int, tuple[int, ...], int]:
        if name not in self._rows:
            raise not_found("the training has no variable", name, self._rows)
        return self._rows[name]

    def __getitem__(self, name: str) -> Array:
        index, number, shape, size = self._find(name)
        memory = numpy.empty(size, numpy.uint8)
        self._inside.read(_VARIABLE, index, memory)
        if number in PLAIN:
            return memory.view(PLAIN[number]).reshape(shape)
        made: Array = from_value(_cameo.value(number, shape, memory.data))
        return made

    def __setitem__(self, name: str, value: Any) -> None:
        index, number, shape, _ = self._find(name)
        self._inside.set(_VARIABLE, index, stored(f"variable '{name}'", value, number, shape))

    def __delitem__(self, name: str) -> None:
        raise TypeError("variables of a training cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __repr__(self) -> str:
        return f"<variables {', '.join(self)}>"


class _Flat:
    """Parameters in flat memory: where each lies."""

    def __init__(self, inside: Any):
        variables = inside.variables()
        self.rows = [(name, variables[variable][2], dtype, offset, size)
                     for name, variable, dtype, _, offset, size in inside.parameters()]
        self.bytes = max((offset + size for *_, offset, size in self.rows), default=0)

    def read(self, inside: Any, what: int) -> dict[str, Array]:
        memory = numpy.empty(self.bytes, numpy.uint8)
        inside.read(what, 0, memory)
        return {name: self._view(memory, *row) for name, *row in self.rows}

    @staticmethod
    def _view(memory: Array, shape: tuple[int, ...], number: int, offset: int, size: int) -> Array:
        part, dtype = memory[offset:offset + size], numpy_type(number)
        return part if dtype is None else part.view(dtype).reshape(shape)

    def write(self, inside: Any, what: int, values: Mapping[str, Any]) -> None:
        names = {row[0] for row in self.rows}
        for name in mapping("parameters", values):
            if name not in names:
                raise not_found("the training has no parameter", name, names)
        memory = numpy.empty(self.bytes, numpy.uint8)
        if len(values) < len(self.rows):
            inside.read(what, 0, memory)
        for name, shape, number, offset, size in self.rows:
            if name in values:
                memory[offset:offset + size] = stored(f"parameter '{name}'", values[name], number, shape)
        inside.set(what, 0, memory)


class Trainer(Fixed):
    """A training on its way: the training information of a model, executed. One thread at a time may use it. A model
    that is changed afterwards leaves it as it is.

    >>> import cameo, numpy
    >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}> { y = MatMul(x, w) }''')
    >>> trainer = cameo.Trainer(model.prepare(loss="mse", optimizer="sgd", lr=0.5))
    >>> x = numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(8, 1)
    >>> history = trainer.fit((x, 3 * x), epochs=30, batch_size=8)
    >>> trainer.variables["w"].round(3)
    array([[3.]], dtype=float32)
    """

    def __init__(self, model: Any, *, threads: int = 0, memory_limit: int | str = 0, backend: str | None = None, seed: int = 0,
                 gradients: bool = False, without: str | None = None, with_passes: str | None = None,
                 registry: Registry | None = None):
        self.model: Model = load(model, registry=registry)
        self._options = {"threads": threads, "backend": backend, "memory_limit": checked_limit(memory_limit),
                         "seed": checked_seed(seed), "gradients": gradients, "without": without,
                         "with_passes": with_passes}
        self._inside = _cameo.Trainer(self.model._inside, **self._options)
        rows = self._inside.inputs()
        self._inputs = [(row[0], row[2]) for row in rows]
        self._names = [name for name, _ in self._inputs]
        self._outputs = [row[0] for row in self.model._inside.outputs()]
        self._seed = seed
        self._rate: float | None = None  # once it was assigned
        self._busy = ""  # when the rate cannot be set
        self._variables: Variables | None = None  # once asked for, as _flat
        self._flat: _Flat | None = None
        self.scalars: dict[str, float] = {}  # what the last step told
        self.history = History()  # of the last fit

    def __repr__(self) -> str:
        names = ", ".join(f"{info!r}" for info in self.inputs)
        return f"<cameo.Trainer of {names}: {len(self.variables)} variables, {self.steps} steps>"

    # ---- what there is ----

    @property
    def inputs(self) -> list[ValueInfo]:
        """What a step is fed."""
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def steps(self) -> int:
        """Steps so far."""
        return int(self._inside.steps())

    @property
    def variables(self) -> Variables:
        """What training changes, by name; may be assigned."""
        if self._variables is None:
            self._variables = Variables(self._inside)
        return self._variables

    def _parameters(self) -> _Flat:
        if self._flat is None:
            self._flat = _Flat(self._inside)
        return self._flat

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by name, copied: views of one flat piece of memory. Assign a dict of some or all of them."""
        return self._parameters().read(self._inside, _PARAMETERS)

    @parameters.setter
    def parameters(self, values: Mapping[str, Any]) -> None:
        self._parameters().write(self._inside, _PARAMETERS, values)

    def memory(self, inputs: Any = None, /, **more: Any) -> dict[str, int]:
        """What a step on such a batch holds, in bytes, before it is done. Only types and shapes count."""
        return dict(self._inside.memory(self._feeds(inputs, more)))

    # ---- the learning rate ----

    @property
    def lr(self) -> float | None:
        """The learning rate of the last step; None before the first one, and where a training tells none. Assigned, it
        is that of the steps that follow: where a variable of the training is named 'lr', or where prepare was given a
        rate without a schedule (the trainer is then planned anew by way of a temporary checkpoint: not for every step). A
        rate that a schedule computes, that several groups have, or that is fed as an input raises cameo.UnsupportedError."""
        if "lr" in self.variables:
            return float(self.variables["lr"].reshape(-1)[0])
        rate = self.scalars.get("lr") if self._rate is None else self._rate
        return None if rate is None else float(rate)

    @lr.setter
    def lr(self, rate: float) -> None:
        rate = float(rate)
        if not math.isfinite(rate) or rate < 0:
            raise _cameo.ArgumentError(f"lr is {rate}, expected a finite number that is not negative")
        if "lr" in self.variables:
            self.variables["lr"] = numpy.full_like(self.variables["lr"], rate)
            return
        if "lr" in self._names:
            raise _cameo.UnsupportedError("the training reads its learning rate from input 'lr': feed it with each batch")
        if not self._has_constant_rate():
            raise _cameo.UnsupportedError(
                "the training computes its learning rate itself, from a schedule or a rate for each group: set it with "
                "lr=, schedule= and warmup= of Model.prepare")
        if self._busy:
            raise _cameo.ArgumentError(f"the learning rate cannot be set {self._busy}")
        model = Model(self.model._inside)
        model.initializers[_RATE] = numpy.array(rate)
        inside = _cameo.Trainer(model._inside, **self._options)
        with tempfile.TemporaryDirectory(prefix="cameo-") as folder:  # a checkpoint has the random state too
            path = os.path.join(folder, "checkpoint.safetensors")
            self._inside.checkpoint_save(path, [], [])
            inside.checkpoint_resume(path, True)
        self.model, self._inside, self._variables, self._flat, self._rate = model, inside, None, None, rate

    def _has_constant_rate(self) -> bool:
        """Is the rate the number that prepare was given? It is multiplied by one then."""
        trainings = self.model.training
        nodes = trainings[0].algorithm.nodes if len(trainings) == 1 and trainings[0].algorithm else []
        made = [node for node in nodes if "lr" in node.outputs]
        return len(made) == 1 and made[0].op_type == "Mul" and list(made[0].inputs) == [_RATE, "training.one.double"]

    # ---- steps ----

    def _feeds(self, inputs: Any, more: Mapping[str, Any]) -> dict[str, Any]:
        feeds = {**by_name(inputs, self._names), **more} if inputs is not None else more
        return {name: readable(name, value) for name, value in feeds.items()}

    def step(self, inputs: Any = None, /, **more: Any) -> float:
        """One step on a batch, by keyword or as fit's batches; the loss of the batch before the update. scalars holds
        what else the step told."""
        loss, self.scalars = self._inside.step(self._feeds(inputs, more))
        return float("nan") if loss is None else float(loss)

    def compute(self, inputs: Any = None, /, **more: Any) -> float:
        """The first half of a step, of a trainer made with gradients=True: loss and gradients; nothing changes yet."""
        loss, self.scalars = self._inside.compute(self._feeds(inputs, more))
        self._busy = "between compute and apply"
        return float("nan") if loss is None else float(loss)

    @property
    def gradients(self) -> dict[str, Array]:
        """Between compute and apply, the gradients by parameter, copied. Assign a dict of some or all of them."""
        return self._parameters().read(self._inside, _GRADIENTS)

    @gradients.setter
    def gradients(self, values: Mapping[str, Any]) -> None:
        self._parameters().write(self._inside, _GRADIENTS, values)

    def apply(self) -> None:
        """The second half: updates from the gradients as they are now."""
        _, self.scalars = self._inside.apply()
        self._busy = ""

    def initialize(self) -> None:
        """Begins anew: variables as in the model, then the initialization of the training. Steps count from 0."""
        self._inside.initialize()
        self._busy = ""

    # ---- looking ----

    def add_validation(self, loss: float) -> None:
        """Tells a training whose schedule is plateau the loss of a validation, as scheduler.step(loss) of PyTorch; fit does
        so itself. Any other training raises cameo.ArgumentError."""
        self._inside.add_validation(float(loss))

    def evaluate(self, inputs: Any = None, /, **more: Any) -> dict[str, float]:
        """What is seen of a batch without training on it: samples, loss, accuracy or errors. Dropout and batch
        statistics behave as in inference."""
        return dict(self._inside.evaluate(self._feeds(inputs, more)))

    def predict(self, inputs: Any = None, /, outputs: Iterable[str] | None = None, **more: Any) -> dict[str, Any]:
        """Results of the model for a batch, with the values as they are now, by name."""
        names = self._outputs if outputs is None else list(outputs)
        fed = [row[0] for row in self.model._inside.inputs() if not row[5]]
        if inputs is not None:
            more = {**by_name(inputs, fed), **more}
        numbers = {row[0]: row[2] for row in self.model._inside.inputs()}
        feeds = {name: to_value(value, numbers.get(name)) for name, value in more.items()}
        return dict(zip(names, map(from_value, self._inside.predict(feeds, names))))

    # ---- saving ----

    def save(self, path: str | os.PathLike[str], *, external: bool | str | None = None, inline: bool = False) -> None:
        """Writes the model with the values as they are now, whole or not at all. external, inline: as Model.save."""
        self._inside.save(os.fspath(path), placement(external, inline), external if isinstance(external, str) else None)

    def to_model(self) -> Model:
        """A model with the values as they are now. What training does not change is shared, not copied."""
        return Model(self._inside.to_model())

    def save_checkpoint(self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
        """Writes all that is needed to go on from here with the same bits, and notes of the caller's."""
        texts = {str(key): str(value) for key, value in (notes or {}).items()}
        if any("\0" in text for text in (*texts, *texts.values())):
            raise _cameo.ArgumentError("a note holds a NUL character")
        self._inside.checkpoint_save(os.fspath(path), list(texts), list(texts.values()))

    def load_checkpoint(self, path: str | os.PathLike[str], *, anyway: bool = False) -> list[str]:
        """Goes to where the checkpoint was written. It is refused under other conditions (threads, version, ..), as
        results may then differ; anyway goes on, and tells what differs."""
        return str(self._inside.checkpoint_resume(os.fspath(path), anyway)).splitlines()

    # ---- whole runs ----

    def fit(self, data: Data, *, epochs: int | None = None, steps: int | None = None, batch_size: int | None = None,
            validate: Data | None = None, shuffle: bool = True, seed: int | None = None, patience: int | None = None,
            best: str | os.PathLike[str] | None = None, checkpoint: str | os.PathLike[str] | None = None,
            checkpoint_every: int | None = None, resume: bool | str = False, keep: int | None = None,
            callbacks: Callback | Sequence[Callback] | None = None, progress: bool | str = "auto", last: str | None = None,
            columns: str | None = None, target: str | None = None, raw_bytes: bool = False) -> History:
        """Trains on data: a path as for `cameo train`, arrays (a dict by name, or a tuple in the order of inputs), an
        iterable of batches such as a DataLoader, or a function of the epoch that gives one.

        epochs (1) or steps say how long, from where the trainer is. batch_size (32 unless the model fixes it), shuffle,
        seed (the trainer's) and last ("short", "drop" or "wrap") are for paths and arrays. validate is measured after
        each epoch and at the end; patience ends the run after so many validations without a better loss; best is a file
        for the best model. checkpoint is a folder, written to every checkpoint_every steps, at the end and on Ctrl-C;
        resume goes on from its newest checkpoint if there is one, to the bits of a run that was not interrupted
        ("anyway": under other conditions too). A checkpoint or best model that cannot be written does not end the run:
        fit raises that after the last step. A folder that another run writes checkpoints to is refused.
        """
        if last not in _LAST:
            raise _cameo.ArgumentError(f"last is '{last}', expected 'short', 'drop' or 'wrap'")
        counts = {"epochs": epochs, "steps": steps, "batch_size": batch_size, "patience": patience,
                  "checkpoint_every": checkpoint_every, "keep": keep}
        counts = {name: 0 if value is None else whole(name, value, name != "epochs") for name, value in counts.items()}
        one_of("resume", resume, (False, True, "anyway"))
        one_of("progress", progress, (False, True, "auto"))
        one_of("shuffle", shuffle, (False, True))
        seed = self._seed if seed is None else checked_seed(seed)
        if not isinstance(data, (str, os.PathLike, _cameo.Data)) and not isinstance(validate, (str, os.PathLike)):
            for name, text in (("target", target), ("columns", columns)):
                if text is not None:
                    raise _cameo.ArgumentError(f"{name} is for data in files, and these are not")
        history = self.history = History()
        state = State(self, history)
        if epochs == 0 and steps is None:
            return history
        given = [callbacks] if isinstance(callbacks, Callback) else callbacks or ()
        calls = CallbackList([*given] + ([ProgressBar(always=progress is True)] if progress else []))
        options: dict[str, Any] = {}
        opened = open_or_iterate(data, self._inputs, columns)
        if isinstance(opened, Batches):
            options = {"batches": opened.batches, "samples": opened.samples, "conditions": opened.conditions}
        judged = None if validate is None else open_or_iterate(validate, self._inputs, columns)
        self._busy = "while fit runs: give prepare a schedule="
        try:
            row = _cameo.run(self._inside, opened, _Teller(state, calls), validate=judged,
                             shuffle=shuffle, seed=seed, last=_LAST[last], best=best,
                             checkpoint=checkpoint, resume=bool(resume), anyway=resume == "anyway",
                             raw_bytes=raw_bytes, target=target, **counts, **options)
            _, history.first_loss, history.best_validation_loss, history.stopped, history.stopped_early = row[:5]
            history.best_step, history.best_epoch = row[5:]
        finally:
            self._busy = ""
            calls.end(state)
        return history


class _Teller:
    """What the library's loop calls: brings the state up to date, then the callbacks."""

    def __init__(self, state: State, callbacks: CallbackList):
        self.state, self.callbacks = state, callbacks
        self.measured: dict[str, float] = {}  # names that the validation told before

    def __call__(self, moment: int, step: int, steps: int, epoch: int, loss: float, scalars: dict[str, float],
                 means: dict[str, float], measure: dict[str, float] | None, best: bool, best_loss: float,
                 checkpoint: str | None) -> bool:
        if moment >= len(_MOMENTS):  # a file was not written: fit raises that at its end
            return True
        state, name = self.state, _MOMENTS[moment]
        if measure is not None:  # the library leaves out a loss that is not a number
            self.measured.update(dict.fromkeys([*measure, *(["loss"] if "loss" in means else [])], math.nan))
            measure = {**self.measured, **measure}
        state.step, state.steps, state.epoch, state.loss = step, steps or None, epoch, loss
        state.scalars, state.means, state.measure = scalars, means, measure
        state.best, state.best_loss, state.checkpoint = best, best_loss, checkpoint
        if name == "on_start":
            state.first_step = step
        elif name == "on_step":
            state.history.add_step(step, scalars)
        elif name == "on_epoch":
            state.history.add_epoch(epoch, means, measure)
        return self.callbacks.call(name, state)


def checkpoint_notes(path: str | os.PathLike[str]) -> dict[str, str]:
    """The notes of a checkpoint that Trainer.save_checkpoint or a run wrote."""
    return dict(_cameo.checkpoint_notes(os.fspath(path)))


def newest_checkpoint(folder: str | os.PathLike[str]) -> str | None:
    """The newest checkpoint in the folder of a run; None: there is none."""
    path = _cameo.checkpoint_newest(os.fspath(folder))
    return None if path is None else str(path)


def train(model: Any, data: Data, *, loss: str = "cross-entropy", optimizer: str = "adamw", lr: float = 1e-3,
          prepare: Mapping[str, Any] | None = None, threads: int = 0, seed: int = 0, **options: Any) -> tuple[Model, History]:
    """Prepares a model, trains it with Trainer.fit(data, **options), and gives the trained model and the history. The
    given one stays as it is. A model that carries training information already is trained as that says. A cosine or
    linear schedule in prepare ends with the run, and lengths in epochs need no updates_per_epoch.

    >>> import cameo, numpy
    >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}> { y = MatMul(x, w) }''')
    >>> x = numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(8, 1)
    >>> trained, history = cameo.train(model, (x, 3 * x), loss="mse", optimizer="sgd", lr=0.5, epochs=30)
    >>> trained.run(x=x[:1])["y"].round(3)
    array([[-3.]], dtype=float32)
    """
    copy = Model(load(model)._inside)
    if not _is_prepared(copy):
        data, run = length_of(data, options.get("columns"))
        run = {"run_batch_size": options.get("batch_size") or 0, "run_steps": options.get("steps") or 0,
               "run_epochs": options.get("epochs") or 1, **run}
        copy.prepare(loss=loss, optimizer=optimizer, lr=lr, **{**run, **(prepare or {})})
    trainer = Trainer(copy, threads=threads, seed=seed)
    history = trainer.fit(data, **options)
    return trainer.to_model(), history


def _is_prepared(model: Model) -> bool:
    return any(row[3] for row in _cameo.initializers(model._inside))
