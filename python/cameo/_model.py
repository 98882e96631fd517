# Models.
# SPDX-License-Identifier: Apache-2.0
"""cameo.load, cameo.merge and cameo.Model."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping
from operator import index

from . import _cameo, _check, _registries
from ._findings import Findings
from ._graph import Function, Graph, Node, Report, Training, ValueInfo, functions, main_graph, trainings
from ._initializers import Initializers, originals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, TypeVar

    from ._compare import Comparison, GradCheck
    from ._data import Evaluation
    from ._session import Session
    from .operators import Registry
    _T = TypeVar("_T")

SCHEDULES = {"constant": 0, "step": 1, "cosine": 2, "linear": 3, "plateau": 4}
_BINARY, _TEXT = 1, 2
_KEEP, _EXTERNAL, _INLINE, _AUTO = range(4)


def _problems(error: _cameo.Error) -> tuple[str, ...]:
    return tuple(str(row) for row in error.findings if row.severity == "violation")


setattr(_cameo.Error, "findings", property(lambda error: Findings(error._rows)))
setattr(_cameo.Error, "problems", property(_problems))


def load(source: Any, *, copy: bool = False, links: bool = False, registry: Registry | None = None) -> Model:
    """Opens a model: a path, bytes, a file object, an onnx.ModelProto, or a model in ONNX's text form.

    A file is mapped, not read; copy reads it into memory instead. links lets external data be symbolic links.
    registry has operators of one's own; without it those of cameo.operators.default are known.
    """
    if registry is not None:
        if not hasattr(registry, "_snapshot"):
            raise _cameo.ArgumentError(f"registry is a {type(registry).__name__}, expected a cameo.Registry")
        model = load(source, copy=copy, links=links)
        return Model(_registries.having(model._inside, registry))
    if isinstance(source, Model):
        return source
    if "logging" in sys.modules:  # otherwise nobody can have asked for more than warnings
        import logging
        _cameo.log_level(logging.getLogger("cameo").getEffectiveLevel())
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
        if isinstance(source, bytes):
            source = os.fsdecode(source)
        return Model(_cameo.load(source, copy=copy, links=links))
    if hasattr(source, "SerializeToString"):
        source = _serialized(source)
    elif hasattr(source, "read"):
        try:
            source = source.read()
        except (OSError, ValueError) as problem:  # the latter of a file that is closed
            raise _cameo.FileError(f"the file object cannot be read: {problem}") from problem
        if isinstance(source, str):
            return Model(_cameo.load(source.encode(), format=_TEXT))
    elif isinstance(source, str):
        if source.lstrip().startswith("<") or "\n" in source:
            return Model(_cameo.load(source.encode(errors="surrogateescape"), format=_TEXT))
        return Model(_cameo.load(source, copy=copy, links=links))
    try:
        source = source if isinstance(source, bytes) else bytes(memoryview(source))
    except TypeError:
        raise TypeError("a model is loaded from a path, bytes, a file object, an onnx.ModelProto or text, not from "
                        f"{type(source).__name__}") from None
    # No ONNX message begins so, nor is a file of text one.
    return Model(_cameo.load(source, format=_TEXT if source.lstrip()[:1] == b"<" else _BINARY))


def _serialized(proto: Any) -> bytes:
    try:
        return bytes(proto.SerializeToString())
    except Exception as problem:  # protobuf has several exceptions for what is over 2 GiB
        raise _cameo.LimitError("the message cannot be written, protobuf allows 2 GiB at most: save it with "
                                f"external data and load the file ({problem})") from None


def _whole(numbers: Mapping[str, int]) -> dict[str, int]:
    """The same with NumPy's numbers, and others that can be an index, as int."""
    return {name: _check.whole(f"'{name}'", number) for name, number in numbers.items()}


def _names(names: str | Iterable[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _listed(names: str | Iterable[str] | None) -> str | None:
    """As the library has lists: parted by commas."""
    return None if names is None else names if isinstance(names, str) else ",".join(names)


def _dims(shape: Any) -> str:
    """(1, 3, "H", None) as the library has it: "1,3,H,?"."""
    if isinstance(shape, str):
        return shape
    return ",".join("?" if dim is None else str(dim) for dim in ([shape] if isinstance(shape, int) else shape))


def _few(infos: list[ValueInfo]) -> str:
    return ", ".join(map(repr, infos[:8])) + (f", and {len(infos) - 8} more" if len(infos) > 8 else "")


def _choice(what: str, value: str, table: Mapping[str, int]) -> int:
    if value not in table:
        raise _cameo.ArgumentError(f"{what} is {value!r}, expected {', '.join(table)}")
    return table[value]


def placement(external: bool | str | None, inline: bool) -> int:
    """Where save puts tensors. external None: as CAMEO_PLACE_AUTO says; False: values stay as they are."""
    if external and inline:
        raise _cameo.ArgumentError("external and inline exclude each other")
    return _INLINE if inline else _EXTERNAL if external else _AUTO if external is None else _KEEP


def prepare_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of prepare as the library has them; None: its own default."""
    made = {name: value for name, value in options.items() if value is not None}
    for name, value in made.items():
        if name in ("lr", "momentum", "weight_decay", "beta1", "beta2", "epsilon", "warmup_from", "schedule_factor",
                    "warmup_epochs", "schedule_epochs", "updates_per_epoch", "schedule_threshold", "schedule_min_lr"):
            made[name] = _check.number(name, value)
        elif name == "lr_for":
            if not isinstance(value, Mapping):
                raise _cameo.ArgumentError("lr_for: expected a dict of rates by expression, such as {'^head': 0.01}")
            made[name] = ";".join(f"{key}={_check.number(f'lr_for[{key!r}]', x)!r}" for key, x in value.items())
        elif name in ("train", "freeze", "no_decay"):
            _check.text(name, value, "a regular expression over names of initializers, such as '^(a|b)$'")
        elif name == "without":
            made[name] = _listed(value)
        elif name in ("loss", "optimizer", "output", "target", "schedule", "until"):
            _check.text(name, value)
        elif name == "settings":
            if not isinstance(value, Mapping):
                raise _cameo.ArgumentError("settings: expected a dict of numbers by name, such as {'rho': 0.9}")
            made[name] = ",".join(f"{key}={_check.number(f'settings[{key!r}]', x)!r}" for key, x in value.items())
        elif name == "class_weights":
            made[name] = array("d", [_check.number("class_weights", x) for x in value]).tobytes()
        elif name in ("warmup", "schedule_steps", "accumulate", "schedule_patience", "schedule_cooldown", "run_samples",
                      "run_batch_size", "run_epochs", "run_steps"):
            made[name] = _check.whole(name, value, name == "accumulate")
    if "schedule" in made:
        made["schedule"] = _choice("schedule", made["schedule"], SCHEDULES)
    return made


class Preparation(Report):
    """What prepare did: a row for each of the initializers, with the reason why it is trained or not. trained and frozen
    are names with reasons, originals what the framework calls those that its exporter renamed."""

    @property
    def trained(self) -> dict[str, str]:
        return {row.name: row.reason for row in self.initializers if row.trained}

    @property
    def frozen(self) -> dict[str, str]:
        return {row.name: row.reason for row in self.initializers if not row.trained}

    @property
    def originals(self) -> dict[str, Report]:
        return originals((row.name, row.original, row.folding) for row in self.initializers)

    def __str__(self) -> str:
        return str(Report(trained=self.trained, frozen=self.frozen, originals=self.originals, changes=self.changes,
                          target=self.target, loss=self.loss))


def preparation(row: dict[str, Any]) -> Preparation:
    choices = [Report(name=name, trained=trained, reason=why, original=original, folding=folding)
               for name, trained, why, original, folding in row["choices"]]
    return Preparation(initializers=choices, changes=row["changes"], target=row["target"], loss=row["loss"])


class Model(_check.Fixed):
    """A model. load() makes one.

    What the library holds never changes while something refers to it: changing a Model puts a changed copy in its
    place (weights are not copied), and sessions and arrays of the old one go on. report tells what the call that made
    or changed the model did.
    """

    report: Report
    _handle: Any
    _cache: dict[str, Any]

    @property
    def _inside(self) -> Any:
        """The library's model, which knows the operators that are registered now."""
        handle = self._handle
        newest = _registries.current(handle)
        if newest is not handle:
            self._handle = newest
            self._cache = {what: made for what, made in self._cache.items() if what != "session"}
        return newest

    @_inside.setter
    def _inside(self, handle: Any) -> None:
        self._handle = handle

    def __init__(self, inside: Any, report: Report | None = None) -> None:
        self._inside = inside
        self._cache = {}
        self.report = report or Report()

    def _become(self, inside: Any, report: Report | None = None) -> Model:
        """The model is now this one."""
        self._inside = inside
        self._cache = {}
        self.report = report or self.report
        return self

    def _once(self, what: str, make: Callable[[], _T]) -> _T:
        """What is asked for often and does not change."""
        cache = self._cache  # that of the model as it is now: another thread may change it
        if what not in cache:
            cache[what] = make()
        found: _T = cache[what]
        return found

    def _open(self) -> Session:
        from ._session import Session
        return Session(self)

    @staticmethod
    def _made(row: tuple[Any, dict[str, Any]]) -> Model:
        return Model(row[0], Report(**row[1]))

    # ---- what it is ----

    @property
    def inputs(self) -> list[ValueInfo]:
        """The inputs, in the order of the file."""
        return [ValueInfo(row) for row in self._inside.inputs()]

    @property
    def outputs(self) -> list[ValueInfo]:
        """The outputs, in the order of the file."""
        return [ValueInfo(row) for row in self._inside.outputs()]

    @property
    def initializers(self) -> Initializers:
        """Names to arrays, to be read only; assigning replaces values. Those of training info come last."""
        return Initializers(self)

    @property
    def graph(self) -> Graph:
        """The graph: nodes, and graphs inside their attributes."""
        return self._once("graph", lambda: main_graph(self._inside))

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the graph, in the order of the file.

        >>> import cameo
        >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
        ... net (float[N,3] x) => (float[N,1] y) { y = ReduceSum<keepdims = 1>(x) }''')
        >>> model.nodes
        [y = ReduceSum<keepdims=1>(x)]
        >>> model.nodes[0].attributes["keepdims"]
        1
        """
        return self.graph.nodes

    @property
    def functions(self) -> list[Function]:
        """The functions that the model defines."""
        return self._once("functions", lambda: functions(self._inside))

    @property
    def training(self) -> list[Training]:
        """The entries of training info: what prepare makes, or what the file brought."""
        return self._once("training", lambda: trainings(self._inside))

    @property
    def opsets(self) -> dict[str, int]:
        """Versions by domain; that of ONNX itself is ""."""
        return {("" if domain == "ai.onnx" else domain): version for domain, version in _cameo.opsets(self._inside)}

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says of itself, by key."""
        return dict(_cameo.metadata(self._inside))

    @property
    def operators(self) -> dict[str, int]:
        """How many nodes of each operator there are, graphs inside nodes, functions and training included."""
        return {f"{domain}::{name}" if domain else name: count
                for domain, name, count in _cameo.operators(self._inside)}

    @property
    def summary(self) -> Report:
        """Numbers: nodes, parameters, bytes, versions, who made it."""
        return Report(**_cameo.summary(self._inside))

    @property
    def notes(self) -> list[str]:
        """Sentences on what the model does that ONNX does not allow and that is run all the same."""
        notes: list[str] = _cameo.notes(self._inside)
        return notes

    def costs(self, sizes: Mapping[str, int] | None = None, /, **more: int) -> Report:
        """What a run takes, by shapes alone: flops, activation_bytes, peak_bytes, and operators with their share. Open
        dimensions have the sizes that are given by name; others count as 1, see sizes."""
        row = _cameo.costs(self._inside, _whole({**(sizes or {}), **more}))
        row["operators"] = [Report(domain=domain, name=name, nodes=nodes, flops=flops, output_bytes=size)
                            for domain, name, nodes, flops, size in row["operators"]]
        row["sizes"] = [Report(name=name, size=size, assumed=assumed) for name, size, assumed in row["sizes"]]
        return Report(**row)

    def check(self, strict: bool = False, *, tool: str | None = None) -> Findings:
        """What is wrong with the model: a list of findings, empty where nothing is. With tool="ort", what ONNX forbids
        and ONNX Runtime accepts is a note."""
        rows, cut = self._inside.check(strict, tool)
        return Findings(rows, cut)

    # ---- running ----

    def run(self, outputs: Any = None, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Runs the model: inputs by name, or as a dict where names are not identifiers; results as a dict, of the
        outputs that are listed first, or of all. The session is made at the first call and kept.

        >>> import cameo, numpy
        >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
        ... net (float[N] x) => (float[N] y, float[N] z) { y = Neg(x)  z = Abs(x) }''')
        >>> model.run(["z"], x=numpy.float32([-1, 2]))
        {'z': array([1., 2.], dtype=float32)}
        >>> sorted(model.run({"x": numpy.float32([-1, 2])}))
        ['y', 'z']
        """
        if isinstance(outputs, Mapping) and inputs is None:
            outputs, inputs = None, outputs
        if inputs is not None:
            _check.mapping("inputs", inputs)
        self._inside  # drops a session that does not know the newest operators
        session = self._once("session", self._open)
        names = (self._once("outputs", lambda: [output.name for output in self.outputs]) if outputs is None
                 else self._output_names(outputs))
        return dict(zip(names, session.run(names, {**inputs, **named} if inputs else named)))

    def _output_names(self, given: Any) -> list[str]:
        try:
            names = _names(given)
        except TypeError:
            names = [given]
        if all(isinstance(name, str) for name in names):
            return names
        first = next((info.name for info in self.inputs if not info.has_default), "x")
        raise _cameo.ArgumentError(f"inputs go by name: run({first}=..), or run({{'{first}': ..}})")

    def _feeds(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs as the library takes them, by what the model declares; a name it has not is refused there."""
        from ._arrays import to_feed, to_value
        rows = {row[0]: row for row in self._inside.inputs()}
        return {name: to_feed(value, rows[name]) if name in rows else to_value(value) for name, value in inputs.items()}

    def make_inputs(self, seed: int = 0, sizes: Mapping[str, int] | None = None, *,
                    shapes: Mapping[str, Iterable[int]] | None = None, given: Mapping[str, Any] | None = None,
                    **more: int) -> dict[str, Any]:
        """Inputs made up, to try the model without data: floats at random, integers within what they point at. Open
        sizes are those given by name, or guessed; shapes are those of whole inputs; given inputs are not made."""
        from ._arrays import from_value
        values, _, _ = _cameo.make_inputs(self._inside, _check.seed(seed), _whole({**(sizes or {}), **more}),
                                          {name: tuple(map(index, shape)) for name, shape in (shapes or {}).items()},
                                          self._feeds(given or {}))
        return {name: from_value(value) for name, value in values.items()}

    def compare(self, other: Any, inputs: Mapping[str, Any] | None = None, *, rtol: float | None = None,
                atol: float | None = None, seed: int = 0, only: str | Iterable[str] | None = None) -> Comparison:
        """What another model differs in: structure, weights, and results on the same inputs, given or made up. rtol and
        atol are 1e-3 and 1e-5 for results, and 0 for weights; only picks parts."""
        from ._compare import compare
        return compare(self, load(other), inputs, rtol, atol, _check.seed(seed), _names(only))

    def evaluate(self, data: Any, **options: Any) -> Evaluation:
        """Judges the predictions against data: a path, a dict of arrays, or a tuple of the inputs and the target. Options
        are those of `cameo evaluate`: metrics (a text or a list), loss, output, target, class_axis, ignored, columns,
        batch_size, threads, raw_bytes, as_is. Nodes in training mode are turned off for this, which notes says, unless
        as_is is true. The result is a dict of metrics by name.

        >>> import numpy
        >>> model = load('''<ir_version: 8, opset_import: ["" : 17]>
        ... twice (float[N] x) => (float[N] y) <float two = {2}> { y = Mul(x, two) }''')
        >>> x = numpy.arange(4, dtype=numpy.float32)
        >>> model.evaluate((x, 2 * x + 1), metrics="mae")
        {'mae': 1.0}
        """
        from ._data import evaluate
        return evaluate(self, data, **options)

    def predict(self, data: Any, **options: Any) -> dict[str, Any]:
        """Results for all samples of the data (a path or arrays), batch by batch: a dict of arrays. Options: outputs
        (names), columns, batch_size, threads, raw_bytes, as_is."""
        from ._data import predict
        return predict(self, data, **options)

    # ---- models made of it ----

    def infer(self, strict: bool = False, *, partial: bool = False, constant_inputs: bool = True) -> Model:
        """The model with types and shapes of all values. report counts them, and what stays unknown. partial: where
        nodes are ill-typed, the rest is inferred, and report.findings lists them. Without constant_inputs, an input
        that has an initializer may have another value, unless the IR version is below 4."""
        made = self._made(_cameo.infer(self._inside, strict, partial, not constant_inputs))
        made.report.findings = Findings(made.report.findings)
        return made

    def upgrade(self, opset: int | Mapping[str, int] | None = None, *, as_is: bool = False) -> Model:
        """The model under newer opsets: a version of ONNX, versions by domain, or the newest of all. as_is: nodes in
        training mode stay in it."""
        return self._convert(opset, "newer", "downgrade", as_is)

    def downgrade(self, opset: int | Mapping[str, int], *, as_is: bool = False) -> Model:
        """The model under older opsets: a version of ONNX, or versions by domain. as_is: nodes in training mode stay in
        it."""
        return self._convert(opset, "older", "upgrade", as_is)

    def _convert(self, opset: int | Mapping[str, int] | None, direction: str, other: str, as_is: bool) -> Model:
        given = opset if isinstance(opset, Mapping) else {} if opset is None else {"": opset}
        targets = {domain: _check.whole("opset", version, 1) for domain, version in given.items()}
        for domain, version in targets.items():
            now = self.opsets.get(domain, version)
            if (version < now) if direction == "newer" else (version > now):
                raise _cameo.ArgumentError(f"the model imports opset {now} of {domain or 'ai.onnx'}, and {version} is "
                                           f"not {direction}: use {other}")
        made = self._made(_cameo.convert(self._inside, None if opset is None else targets, as_is))
        members = ("domain", "op", "from", "to", "nodes", "how")
        made.report.changes = [Report(**dict(zip(members, row))) for row in made.report.changes]
        return made

    def expand(self, only: str | Iterable[str] | None = None, *, except_: str | Iterable[str] | None = None,
               operators: bool = False, core: bool = False) -> Model:
        """The model with its functions inlined. only and except_ name functions and operators ("NAME", "DOMAIN::NAME",
        "DOMAIN::*"); operators expands operators that have a body too, core all but core operators."""
        return self._made(_cameo.expand(self._inside, _listed(only), _listed(except_), operators, core))

    def extract(self, inputs: str | Iterable[str] | None = None, outputs: str | Iterable[str] | None = None) -> Model:
        """What leads from inputs to outputs, which may be any values; None: those of the model."""
        return self._made(_cameo.extract(self._inside, _names(inputs), _names(outputs)))

    def expose(self, names: str | Iterable[str] | None = None) -> Model:
        """The model with values of its graph as further outputs; None: all that nodes compute."""
        return self._made(_cameo.expose(self._inside, _names(names)))

    def rename(self, values: Mapping[str, str] | None = None, *, nodes: Mapping[str, str] | None = None,
               dims: Mapping[str, str] | None = None) -> Model:
        """The model with other names: of values, nodes and dimensions, old to new. A "*" in both stands for the same
        text."""
        made = self
        for kind, (what, given) in enumerate((("values", values), ("nodes", nodes), ("dims", dims))):
            if given:
                names = _check.mapping(what, given)
                made = self._made(_cameo.rename(made._inside, kind, list(names), list(names.values())))
        return made if made is not self else self.__copy__()

    def set_shapes(self, shapes: Mapping[str, Any] | None = None, /, **more: Any) -> Model:
        """The model with other shapes of inputs, (1, 3, "H", None), or sizes of dimensions by name."""
        wanted = {**(shapes or {}), **more}
        return self._made(_cameo.set_shapes(self._inside, list(wanted), [_dims(shape) for shape in wanted.values()]))

    def optimize(self, passes: str | Iterable[str] | None = None, *, without: str | Iterable[str] | None = None,
                 until: str | None = None, portable: bool = False, as_is: bool = False) -> Model:
        """The model as it is run: with constants computed and nodes fused. portable: in standard operators alone. as_is:
        nodes in training mode stay in it."""
        made = self._made(_cameo.optimize(self._inside, _listed(passes), _listed(without), until, portable, as_is))
        made.report.passes = [Report(name=name, skipped=skipped, nodes_before=before, nodes_after=after)
                              for name, skipped, before, after in made.report.passes]
        return made

    # ---- gradients and training ----

    def grad(self, of: str, wrt: str | Iterable[str], *, portable: bool = False) -> Model:
        """The model with further outputs, "gradient.NAME": derivatives of the sum of value `of` by the values in wrt.

        >>> import cameo, numpy
        >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
        ... square (float[N] x) => (float[N] y) { y = Mul(x, x) }''')
        >>> model.grad("y", "x").run(["gradient.x"], x=numpy.float32([1, 2]))
        {'gradient.x': array([2., 4.], dtype=float32)}
        """
        return self._made(_cameo.gradient(self._inside, of, _names(wrt), portable))

    def gradcheck(self, inputs: Mapping[str, Any] | None = None, *, seed: int = 0, samples: int = 20,
                  tolerance: float = 1e-4) -> GradCheck:
        """Gradients of the outputs against differences of values, in double precision, for each initializer and input
        of floats: samples elements of each. Inputs that are not given are made up."""
        from ._compare import GradCheck
        return GradCheck(_cameo.gradcheck(self._inside, self._feeds(inputs or {}), _check.seed(seed),
                                          _check.whole("samples", samples, 1)), tolerance)

    def prepare(self, loss: str | os.PathLike[str], optimizer: str = "sgd", *, lr: float | None = None,
                momentum: float | None = None, weight_decay: float | None = None, beta1: float | None = None,
                beta2: float | None = None, epsilon: float | None = None, output: str | None = None,
                target: str | None = None, schedule: str = "constant", warmup: int = 0, schedule_steps: int = 0,
                schedule_factor: float = 0.1, clip_norm: float = 0.0, accumulate: int = 1, train: str | None = None,
                freeze: str | None = None, keep_opset: bool = False, class_axis: int = 1,
                keep_tied: bool = False, keep_untied: bool = False,
                settings: Mapping[str, float] | None = None, no_decay: str | None = None,
                no_decay_vectors: bool = False, lr_for: Mapping[str, float] | None = None,
                warmup_from: float | None = None, without: str | Iterable[str] | None = None,
                until: str | None = None, class_weights: Iterable[float] | None = None,
                warmup_epochs: float = 0.0, schedule_epochs: float = 0.0, updates_per_epoch: float = 0.0,
                schedule_patience: int = 10, schedule_threshold: float = 1e-4, schedule_cooldown: int = 0,
                schedule_min_lr: float = 0.0, run_samples: int = 0, run_batch_size: int = 0, run_epochs: int = 0,
                run_steps: int = 0) -> Model:
        """Makes the model trainable and returns it; report says what is trained and why.

        loss is one of docs/training.md such as cross-entropy or mse, a model file, or "output:NAME" for one that the
        model computes; output is what the loss reads, target what the label input is called. optimizer is one
        of docs/training.md such as sgd or adamw, with the numbers that PyTorch names so. schedule is constant, step,
        cosine or linear, over schedule_steps updates, warmup of them rising, or plateau: the rate falls
        when the validation loss does not. schedule_epochs and warmup_epochs give lengths in epochs of updates_per_epoch
        updates. run_samples, run_batch_size (0: what the model fixes, else 32) and run_epochs or run_steps tell of the run
        that is to come: updates_per_epoch and the end of a cosine or linear schedule follow from them. train and freeze are
        regular expressions over names of initializers. settings are further numbers of the optimizer or the loss, such as
        {"rho": 0.95}. Weights whose names match no_decay have no weight decay, nor have biases and scales of norms with
        no_decay_vectors; lr_for gives rates by expression; warmup_from is where a warmup begins, 0 as Hugging Face's.
        class_weights has a number for each class, PyTorch's weight of cross-entropy and nll, pos_weight of bce-logits.
        without leaves out passes of the preparation ('cameo prepare --list-passes' names them); until stops after one,
        and the model is what it left.

        >>> import cameo
        >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
        ... line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {2}> { y = MatMul(x, w) }''')
        >>> print(model.prepare("mse", "adamw", lr=0.01).report)
        trained:
          w: ...
        target: target
        loss: ...
        """
        row = _check.in_python(_cameo.prepare, self._inside, prepare_options(dict(
            loss=os.fspath(loss) if isinstance(loss, os.PathLike) else loss, optimizer=optimizer, lr=lr,
            momentum=momentum, weight_decay=weight_decay,
            beta1=beta1, beta2=beta2, epsilon=epsilon, output=output, target=target, schedule=schedule, warmup=warmup,
            schedule_steps=schedule_steps, schedule_factor=schedule_factor, clip_norm=clip_norm,
            accumulate=accumulate, train=train, freeze=freeze, keep_opset=keep_opset, class_axis=class_axis,
            keep_tied=keep_tied, keep_untied=keep_untied, settings=settings, no_decay=no_decay,
            no_decay_vectors=no_decay_vectors, lr_for=lr_for, warmup_from=warmup_from, without=without,
            until=until, class_weights=class_weights, warmup_epochs=warmup_epochs, schedule_epochs=schedule_epochs,
            updates_per_epoch=updates_per_epoch, schedule_patience=schedule_patience,
            schedule_threshold=schedule_threshold, schedule_cooldown=schedule_cooldown,
            schedule_min_lr=schedule_min_lr, run_samples=run_samples, run_batch_size=run_batch_size,
            run_epochs=run_epochs, run_steps=run_steps)))
        return self._become(row[0], preparation(row[1]))

    def strip(self) -> Model:
        """Takes training info away again, and returns the model. Dropout and BatchNormalization that an export left in
        training mode are turned off; report.changes names them."""
        row = _cameo.strip(self._inside)
        return self._become(row[0], Report(**row[1]))

    def step(self, *, portable: bool = False) -> Model:
        """The whole training step as a plain model: state and batch go in, scalars and the new state ("W.next" for "W")
        come out. portable: in standard operators alone, random numbers fed."""
        return self._made(_cameo.step(self._inside, portable))

    # ---- checkpoints of other frameworks ----

    def import_checkpoint(self, path: str | os.PathLike[str], *, weights_only: bool = False, partial: bool = False,
                          map: str | Mapping[str, str] | None = None, settings: str | Mapping[str, Any] | None = None,
                          loss: str | None = None, links: bool = False, **options: Any) -> Model:
        """Gives the model the weights of another framework's checkpoint, and unless weights_only its training where it
        was saved, and returns the model. partial: what is left over is not an error. links lets files of a
        folder be links. map renames ({initializer: name},
        "/REGEX/"); settings count instead of what the checkpoint says, and options of prepare instead of both."""
        from ._checkpoint import import_checkpoint
        return import_checkpoint(self, path, weights_only, partial, map, settings, dict(options, loss=loss), links)

    def export_checkpoint(self, path: str | os.PathLike[str], to: str, *, weights_only: bool = False) -> Report:
        """Writes weights, and the state of training, as another framework does: one of export_formats(). The report
        has the tensors, and what the receiver must know."""
        row = _check.in_python(_cameo.export_checkpoint, self._inside, os.fspath(path), to, weights_only)
        row["tensors"] = [Report(name=name, slot=slot, role=role, type=type_)
                          for name, slot, role, type_ in row["tensors"]]
        return Report(format=to, **row)

    # ---- elsewhere ----

    def text(self, elide: int = 0) -> str:
        """The model in ONNX's text form; tensors of more than elide elements are shortened, 0: none."""
        text: str = self._inside.write(True, elide)
        return text

    def to_bytes(self) -> bytes:
        """The model as a file holds it, with everything inside: values in external files are read."""
        if not _cameo.files(self._inside):
            data: bytes = self._inside.write(False)
            return data
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path, inline=True)
            if len(os.listdir(folder)) > 1:
                raise _cameo.LimitError("the model is larger than 2 GiB, which only fits with external data: use save")
            with open(path, "rb") as file:
                return file.read()

    def to_onnx(self) -> Any:
        """The model as an onnx.ModelProto, with everything inside."""
        import onnx
        return onnx.load_from_string(self.to_bytes())

    def save(self, path: str | os.PathLike[str] | IO[bytes], *, external: bool | str | None = None,
             inline: bool = False) -> None:
        """Writes the model to a file, whole or not at all, or to a file object. external: tensors go to a file of this
        name, or True for one named after the model; inline: everything goes into the model's own file. By default
        values stay inside or outside, as they are. A model that was stripped, prepared, optimized or converted is to be
        shipped: external data of less than 64 MiB goes into its file, more goes to one new file beside it; external=False
        leaves values where they are."""
        where = placement(external, inline)
        if hasattr(path, "write"):
            if external:
                raise _cameo.ArgumentError("external data needs the path of the model, not a file object")
            path.write(self.to_bytes())
            return
        self._inside.save(os.fspath(path), where, external if isinstance(external, str) else None)

    def __copy__(self) -> Model:
        return Model(_cameo.copy(self._inside), self.report)

    def __deepcopy__(self, memo: Any) -> Model:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<cameo.Model {_few(self.inputs)} -> {_few(self.outputs)}>"

    def _repr_html_(self) -> str:
        from ._show import html
        return html(self)


def merge(a: Any, b: Any, map: Mapping[str, str], *, prefix1: str | None = None, prefix2: str | None = None) -> Model:
    """One model of two: outputs of a feed inputs of b, as map says. Prefixes go before the names of each.

    >>> import cameo
    >>> neg = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... neg (float[N] x) => (float[N] y) { y = Neg(x) }''')
    >>> cameo.merge(neg, neg, {"y": "x"}, prefix1="first_", prefix2="then_")
    <cameo.Model first_x: float[N] -> then_y: float[N]>
    """
    joined = _check.mapping("map", map)
    first, second = _registries.united(load(a)._inside, load(b)._inside)
    return Model._made(_cameo.merge(first, second, list(joined), list(joined.values()), prefix1, prefix2))
