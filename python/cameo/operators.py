# Operators written in Python.
# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX does not have: a kernel in NumPy, and where it is needed an inference function and a gradient.

>>> import cameo, numpy
>>> @cameo.operator("my.domain", "Swish")
... def swish(x, *, beta=1.0):
...     return x / (1 + numpy.exp(-beta * x))
>>> @swish.gradient
... def _(x, d_y, *, beta):
...     s = 1 / (1 + numpy.exp(-beta * x))
...     return d_y * (s + beta * x * s * (1 - s))
>>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17, "my.domain" : 1]>
... net (float[N] x) => (float[N] y) { y = my.domain.Swish <beta = 2.0> (x) }''')
>>> model.run(x=numpy.array([0, 1], numpy.float32))["y"].round(4)
array([0.    , 0.8808], dtype=float32)
>>> cameo.load(model.to_bytes()).grad("y", wrt=["x"]).run(x=numpy.array([0], numpy.float32))["gradient.x"]
array([0.5], dtype=float32)
"""

from __future__ import annotations

import inspect
import threading
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union, overload

import numpy

from . import _cameo, _registries
from ._check import Fixed
from ._kernels import (NUMBERS, OPTIONAL, SINGLE, VARIADIC, Attribute, Kernel, Operand, TensorType, dtype_of,
                       number_of)

__all__ = ["operator", "Operator", "Registry", "TensorType", "default"]

# Attributes by the type of their values, as ONNX numbers and names them.
KINDS: dict[Any, int] = {float: 1, int: 2, str: 3}
KIND_NAMES = {1: "float", 2: "int", 3: "string", 6: "floats", 7: "ints", 8: "strings"}
NO_STRINGS = sum(1 << number for number in NUMBERS.values())

Gradient = Union[str, Callable[..., Any]]


def _mask(types: Any) -> int:
    names = [types] if isinstance(types, (str, type, numpy.dtype)) else list(types)
    return sum({1 << number_of(name) for name in names})


def _attribute(name: str, default: Any) -> Attribute:
    """From a default value, or a type (list[int], too) for one that nodes must have."""
    inner = getattr(default, "__args__", (None,))[0] if getattr(default, "__origin__", None) is list else None
    if inner in KINDS:
        return Attribute(name, KINDS[inner] + 5, True, None)
    if default in (float, int, str):
        return Attribute(name, KINDS[default], True, None)
    if isinstance(default, (list, tuple)) and default and type(default[0]) in KINDS:
        kind = KINDS[float] if any(type(item) is float for item in default) else KINDS[type(default[0])]
        return Attribute(name, kind + 5, False, list(default))
    if type(default) is bool:
        default = int(default)
    if type(default) in KINDS:
        return Attribute(name, KINDS[type(default)], False, default)
    raise TypeError(f"attribute '{name}': {default!r} is neither a number, a text, a list of such, nor the type of one")


def _operands(names: Iterable[str], types: Mapping[str, Any], otherwise: int) -> list[Operand]:
    """Of names: "x?" may be left out, "xs*" stands for one or more."""
    made = []
    for text in names:
        kind = OPTIONAL if text.endswith("?") else VARIADIC if text.endswith("*") else SINGLE
        name = text.rstrip("?*")
        made.append(Operand(name, _mask(types[name]) if name in types else otherwise, kind))
    return made


def _signature(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    """Inputs, attributes, and whether the function takes `out`."""
    inputs, attributes, out = [], {}, False
    empty = inspect.Parameter.empty
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except NameError:  # an annotation that is a text and names nothing here
        parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            inputs.append(name + "*")
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY and name == "out":
            out = True
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            attributes[name] = parameter.default if parameter.default is not empty else \
                parameter.annotation if parameter.annotation is not empty else float
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            inputs.append(name if parameter.default is empty else name + "?")
    return inputs, attributes, out


class Operator(Fixed):
    """An operator of one's own; operator() makes one. It can be called like the function it was made of."""

    def __init__(self, registry: "Registry", domain: str, name: str, inputs: list[Operand], outputs: list[Operand],
                 attributes: list[Attribute], version: int, dynamic: bool, body: Optional[str]) -> None:
        self.registry, self.domain, self.name, self.version = registry, domain, name, version
        self._inputs, self._outputs, self._attributes = inputs, outputs, attributes
        self._dynamic, self._body = dynamic, body
        self._function: Optional[Callable[..., Any]] = None
        self._infer: Optional[Callable[..., Any]] = None
        self._gradient: Optional[Gradient] = None
        self._wrt: list[str] = []

    def __repr__(self) -> str:
        return f"<cameo.Operator {self.domain}.{self.name}>"

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        if self._function is None:
            raise TypeError(f"{self.domain}.{self.name} has a body, but no kernel to call")
        return self._function(*inputs, **attributes)

    def kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that computes it, for an operator that was made of a body."""
        self._change(_function=_callable("a kernel", function))
        return function

    def infer(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that says the type of each output: it is called like the kernel, with a TensorType for each
        input, and gives a TensorType or a pair (dtype, shape), or a list of such. Without one, outputs are like the
        first input."""
        self._change(_infer=_callable("an inference function", function))
        return function

    def gradient(self, rule: Optional[Gradient] = None, *, wrt: Optional[Sequence[str]] = None) -> Any:
        """How gradients flow: a function, or a function of ONNX as text.

        A Python function names what it needs: inputs `x`, outputs `y`, gradients of outputs `d_y`, attributes after
        `*`. It gives the gradients of the inputs in wrt (all, unless told): an array, a tuple, or a dict with "d_x".
        None stands for zeros. What is variadic comes and goes as a list.
        """
        if rule is None:
            return lambda function: self.gradient(function, wrt=wrt)
        names = [operand.name for operand in self._inputs]
        for name in wrt or ():
            if name not in names:
                raise _cameo.ArgumentError(f"{self.domain}.{self.name} has no input '{name}'")
        if not isinstance(rule, str):
            _callable("a gradient that is not a text", rule)
        self._change(_gradient=rule, _wrt=list(wrt or names))
        return rule

    def _change(self, **parts: Any) -> None:
        """Replaces parts of the definition. What is wrong with the new one is said here, and the old one stays: the
        registry would otherwise be of no use to any model."""
        with self.registry._lock:
            old = {name: getattr(self, name) for name in parts}
            vars(self).update(parts)
            try:
                _cameo.Registry(tuple(self._definitions()), None)
            except Exception:
                vars(self).update(old)
                raise
            self.registry._changed()

    def _definitions(self) -> Iterator[tuple[Any, ...]]:
        """As the library takes it; a gradient in Python is a second operator."""
        title = f"{self.domain}.{self.name}"
        run = None
        if self._function is not None:
            run = Kernel(title, self._function, self._outputs, self._attributes, self._dynamic,
                          _signature(self._function)[2])
        infer = _inference(title, self._infer, self._attributes, len(self._outputs)) if self._infer else None
        text = self._gradient if isinstance(self._gradient, str) else None
        rule = _GradientRule(self, self._gradient) if callable(self._gradient) else None
        if rule is not None:
            yield rule.definition()
        yield (self.domain, self.name, self.version, [tuple(row) for row in self._inputs],
               [tuple(row) for row in self._outputs], _library_attributes(self._attributes), infer, run, self._body,
               text, rule.text if rule is not None else None, self._dynamic)


def _callable(what: str, function: Any) -> Any:
    if not callable(function):
        raise _cameo.ArgumentError(f"{what} is a function, not a {type(function).__name__}")
    return function


def _library_attributes(attributes: Sequence[Attribute]) -> list[tuple[Any, ...]]:
    return [(row.name, row.kind, row.required, None if row.kind > 3 else row.default) for row in attributes]


def _inference(title: str, function: Callable[..., Any], attributes: Sequence[Attribute],
               count: int) -> Callable[[list[Any], dict[str, Any]], list[Any]]:
    defaults = {row.name: row.default for row in attributes}

    def infer(inputs: list[Any], given: dict[str, Any]) -> list[Any]:
        types = [None if row is None else TensorType(dtype_of(row[0]), row[1]) for row in inputs]
        made = function(*types, **{**defaults, **given})
        if isinstance(made, TensorType) or (count == 1 and isinstance(made, tuple) and len(made) == 2):
            made = [made]
        if not isinstance(made, (list, tuple)):
            raise TypeError(f"{title}: its inference function gives a TensorType, a pair (dtype, shape) or a list of "
                            f"such, not {type(made).__name__}")
        rows: list[Any] = []
        for dtype, shape in made:
            sizes = None if shape is None else tuple(-1 if size is None else int(size) for size in shape)
            # What has no type in NumPy came in as unsigned numbers: such an output is like the input it was taken of.
            number = next((row[0] for row, known in zip(inputs, types)
                           if known is not None and dtype is known.dtype), None)
            rows.append((number_of(dtype) if number is None else number, sizes))
        return rows

    return infer


class _GradientRule:
    """A gradient in Python: the operator behind it, and the function of ONNX that calls it."""

    def __init__(self, of: Operator, function: Callable[..., Any]) -> None:
        self.of, self.function = of, function
        self.name = of.name + "_gradient"
        names, attributes, _ = _signature(function)
        self.takes = [name.rstrip("?*") for name in names]
        self.settings = [row for row in of._attributes if row.name in attributes]
        inputs = {row.name: row for row in of._inputs}
        outputs = {row.name: row for row in of._outputs}
        known = [*inputs, *outputs, *("d_" + name for name in outputs)]
        title = f"{of.domain}.{of.name}"
        for name in self.takes:
            if name not in known:
                raise _cameo.ArgumentError(f"the gradient of {title} takes '{name}', which is neither an input, an output nor "
                                           "'d_' followed by the name of an output")
        for name in attributes:
            if name not in [row.name for row in of._attributes]:
                raise _cameo.ArgumentError(f"the gradient of {title} takes '{name}', which is not an attribute")
        if any(row.kind == VARIADIC for row in of._outputs):
            raise _cameo.ArgumentError(f"{title} has a variadic output: its gradient must be a text")
        # The inputs themselves are there, whose shapes their gradients have; what is variadic comes last.
        needs = [name for name in known if name in self.takes or name in of._wrt]
        self.needs = [name for name in needs if name not in inputs or inputs[name].kind != VARIADIC]
        self.list = next((name for name in needs if name in inputs and inputs[name].kind == VARIADIC), None)
        self.wrt = [name for name in of._wrt if name != self.list]
        self.list_wrt = self.list in of._wrt
        self.singles = sum(row.kind != VARIADIC for row in of._inputs)

    def text(self, input_count: int, output_count: int) -> str:
        """The function of ONNX for a node with so many inputs."""
        more = [f"{self.list}_{i}" for i in range(max(input_count - self.singles, 0))] if self.list else []
        takes = ", ".join(self.needs + more)
        gives = ", ".join(["d_" + name for name in self.wrt] + (["d_" + name for name in more] if self.list_wrt else []))
        names = ", ".join(row.name for row in self.settings)
        refer = ", ".join(f"{row.name}: {KIND_NAMES[row.kind]} = @{row.name}" for row in self.settings)
        of = self.of
        return (f'<domain: "{of.domain}", opset_import: ["{of.domain}" : {of.version}]>\n'
                f"{of.name}_rule {f'<{names}>' if names else ''} ({takes}) => ({gives}) {{\n"
                f"  {gives} = {of.domain}.{self.name} {f'<{refer}>' if refer else ''} ({takes})\n}}")

    def definition(self) -> tuple[Any, ...]:
        of = self.of
        inputs: list[Any] = [(name, 0, OPTIONAL) for name in self.needs]
        outputs: list[Any] = [("d_" + name, NO_STRINGS, OPTIONAL) for name in self.wrt]
        if self.list:
            inputs.append((self.list, 0, VARIADIC))
        if self.list and self.list_wrt:
            outputs.append(("d_" + self.list, NO_STRINGS, VARIADIC))
        given = [Operand(*row) for row in outputs]
        kernel = Kernel(f"the gradient of {of.domain}.{of.name}", self._compute, given, self.settings, False, False)
        settings = [(name, kind, False, default) for name, kind, _, default in _library_attributes(self.settings)]
        return (of.domain, self.name, of.version, inputs, outputs, settings, self._infer, kernel, None, None, None, False)

    def _infer(self, inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
        like = [self.needs.index(name) for name in self.wrt]
        if self.list_wrt:
            like += range(len(self.needs), len(inputs))
        rows = [inputs[at] if at < len(inputs) else None for at in like]
        unknown = (1, None)  # of an input that the node does not have: nobody reads it
        return [unknown if row is None else
                (row[0], None if row[1] is None else tuple(-1 if size is None else size for size in row[1]))
                for row in rows]

    def _compute(self, *inputs: Any, **attributes: Any) -> Any:
        by_name: dict[str, Any] = dict(zip(self.needs, inputs))
        if self.list:
            by_name[self.list] = list(inputs[len(self.needs):])
        result = self.function(**{name: by_name.get(name) for name in self.takes}, **attributes)
        names = self.of._wrt
        if not isinstance(result, dict):
            single = len(names) == 1 and not (self.list_wrt or isinstance(result, tuple))
            parts = [result] if single or (len(names) == 1 and isinstance(result, list)) else list(result)
            if len(parts) != len(names):
                raise ValueError(f"the gradient of {self.of.domain}.{self.of.name} gives {len(parts)} arrays for "
                                 f"{len(names)} inputs: {', '.join(names)}")
            result = {"d_" + name: part for name, part in zip(names, parts)}
        for name in result:
            if name[:2] != "d_" or name[2:] not in names:
                raise ValueError(f"the gradient of {self.of.domain}.{self.of.name} gives '{name}', expected 'd_' "
                                 "followed by the name of an input")
        made = [_or_zeros(result.get("d_" + name), by_name[name]) for name in self.wrt]
        if self.list_wrt and self.list:
            parts = result.get("d_" + self.list) or [None] * len(by_name[self.list])
            if len(parts) != len(by_name[self.list]):
                raise ValueError(f"the gradient of {self.of.domain}.{self.of.name} gives {len(parts)} arrays for the "
                                 f"{len(by_name[self.list])} inputs '{self.list}'")
            made += [_or_zeros(part, like) for part, like in zip(parts, by_name[self.list])]
        return made[0] if len(made) == 1 and not self.list_wrt else made


def _or_zeros(value: Any, like: Any) -> Any:
    if value is not None:
        return value
    return None if like is None else numpy.zeros(like.shape, like.dtype)


class Registry(Fixed):
    """Operators that belong together. cameo.load, Session and Trainer take one; without it they use
    cameo.operators.default, where operator() puts what it is not told another registry for.

    It may be added to at any time, and an operator of the same name replaces the one before, as a cell of a notebook
    does that is run again. Sessions and trainers keep the operators that they were made with.
    """

    def __init__(self) -> None:
        self._operators: dict[tuple[str, str, int], Operator] = {}
        self._made: Any = None
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[Operator]:
        return iter(list(self._operators.values()))

    def __len__(self) -> int:
        return len(self._operators)

    def __repr__(self) -> str:
        return f"<cameo.Registry {', '.join(f'{op.domain}.{op.name}' for op in self)}>"

    def add(self, op: Operator) -> Operator:
        """Adds an operator of another registry."""
        with self._lock:
            self._operators[op.domain, op.name, op.version] = op
            self._changed()
        return op

    def remove(self, op: Operator) -> None:
        """Takes an operator out."""
        with self._lock:
            del self._operators[op.domain, op.name, op.version]
            self._changed()

    def _changed(self) -> None:
        with self._lock:
            self._made = None

    def _snapshot(self) -> Any:
        """As the library knows it."""
        made = self._made
        if made is None:
            with self._lock:
                if self._made is None:
                    rows = [row for op in self for row in op._definitions()]
                    self._made = _cameo.Registry(tuple(rows), self)
                made = self._made
        return made


default = Registry()
_registries.default = default


@overload
def operator(domain: str, name: Optional[str] = None, *, inputs: Optional[Sequence[str]] = None,
             outputs: Sequence[str] = ("y",), attributes: Optional[Mapping[str, Any]] = None, version: int = 1,
             types: Optional[Mapping[str, Any]] = None, dynamic: bool = False, body: None = None,
             registry: Optional[Registry] = None) -> Callable[[Callable[..., Any]], Operator]: ...


@overload
def operator(domain: str, name: Optional[str] = None, *, inputs: Optional[Sequence[str]] = None,
             outputs: Sequence[str] = ("y",), attributes: Optional[Mapping[str, Any]] = None, version: int = 1,
             types: Optional[Mapping[str, Any]] = None, dynamic: bool = False, body: str,
             registry: Optional[Registry] = None) -> Operator: ...


def operator(domain: str, name: Optional[str] = None, *, inputs: Optional[Sequence[str]] = None,
             outputs: Sequence[str] = ("y",), attributes: Optional[Mapping[str, Any]] = None, version: int = 1,
             types: Optional[Mapping[str, Any]] = None, dynamic: bool = False, body: Optional[str] = None,
             registry: Optional[Registry] = None) -> Any:
    """Makes a function the kernel of an operator: a decorator, which gives an Operator.

    Positional parameters are inputs (with a default: may be left out; `*xs`: one or more), parameters after `*` are
    attributes with their defaults, or with a type as annotation where nodes must have them. inputs ("x", "b?", "xs*")
    and attributes say otherwise. types limits the element types of operands. dynamic: sizes of outputs depend on
    values. body, a function in ONNX's text form, makes the Operator without a kernel.
    """
    def make(function: Optional[Callable[..., Any]]) -> Operator:
        own_inputs, own_attributes, _ = _signature(function) if function else ([], {}, False)
        title = name or str(getattr(function, "__name__", ""))
        known = _operands(own_inputs if inputs is None else inputs, types or {}, 0)
        made = Operator(registry if registry is not None else default, domain, title, known,
                        _operands(outputs, types or {}, NO_STRINGS if body is None else 0),
                        [_attribute(*item) for item in (own_attributes if attributes is None else attributes).items()],
                        version, dynamic, body)
        made._function = function
        _cameo.Registry(tuple(made._definitions()), None)  # what is wrong with it is said here
        return made.registry.add(made)

    return make if body is None else make(None)
