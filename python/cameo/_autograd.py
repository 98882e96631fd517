# Models as functions that PyTorch differentiates.
# SPDX-License-Identifier: Apache-2.0
"""What cameo.torch is built on: a model cut into a forward and a backward half, and the autograd function that runs
them."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import torch

from . import _cameo

# ONNX's numbers of the element types that have gradients.
FLOATS = {1: torch.float32, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}


def type_text(row: tuple[Any, ...]) -> str:
    """The type of an input or output as ONNX's text form has it: "float[N,3]"."""
    element, shape = row[1].split("[")[0], row[3]
    if shape is None:
        return element + "[]"
    sizes = [str(size) if isinstance(size, int) or re.fullmatch(r"[A-Za-z_]\w*", size or "") else "?" for size in shape]
    return element + f"[{','.join(sizes)}]" * bool(sizes)


def sum_graph(prefix: str, types: Sequence[str], weighted: bool = False) -> str:
    """A graph in ONNX's text form: copies of its inputs, and the sum of all their elements, or of their elements times
    weights."""
    inputs, outputs, nodes, terms = [], [f'float "{prefix}sum"'], [], []
    for i, kind in enumerate(types):
        inputs.append(f'{kind} "{prefix}in.{i}"')
        outputs.append(f'{kind} "{prefix}out.{i}"')
        nodes.append(f'"{prefix}out.{i}" = Identity ("{prefix}in.{i}")')
        term = "out"
        if weighted:
            inputs.append(f'{kind} "{prefix}weights.{i}"')
            nodes.append(f'"{prefix}product.{i}" = Mul ("{prefix}out.{i}", "{prefix}weights.{i}")')
            term = "product"
        nodes.append(f'"{prefix}cast.{i}" = Cast <to: int = 1> ("{prefix}{term}.{i}") '
                     f'"{prefix}sum.{i}" = ReduceSum <keepdims: int = 0> ("{prefix}cast.{i}")')
        terms.append(f'"{prefix}sum.{i}"')
    return (f'sums ({", ".join(inputs)}) => ({", ".join(outputs)}) '
            f'{{ {" ".join(nodes)} "{prefix}sum" = Sum ({", ".join(terms)}) }}')


def to_torch(value: Any) -> Any:
    """A result of the library as a tensor over the same memory."""
    return torch.from_dlpack(value) if isinstance(value, _cameo.Value) else value


def lend(tensor: Any) -> Any:
    """A tensor as a session is fed it: its memory, not a copy."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    if tensor.device.type != "cpu":
        raise _cameo.ArgumentError(f"a tensor is on device '{tensor.device}', expected 'cpu'")
    return tensor.detach() if tensor.requires_grad else tensor


def _names(session: Any) -> set[str]:
    return {row[0] for row in session.inputs()}


class Plan:
    """How the gradients by some inputs are computed: two sessions, and what goes from one to the other."""

    def __init__(self, function: Function, wanted: tuple[str, ...]) -> None:
        part = _cameo.vjp_part
        floats = function.floats
        copies = [f"{function.prefix}out.{i}" for i in range(len(floats))]
        whole = _cameo.gradient(function.joined(), function.prefix + "sum", wanted)
        self.wanted = wanted
        self.results = [copies[floats.index(name)] if name in floats else name for name in function.outputs]
        self.gradients = [row[0] for row in whole.outputs()][-len(wanted):]
        saved, fed, given, copied = _cameo.vjp_split(
            whole, self.results, [f"{function.prefix}weights.{i}" for i in range(len(floats))], self.gradients)
        # A result that the backward half reads is kept as the tensor that the caller got: PyTorch then sees it if
        # the caller changes its elements.
        self.reused = [(name, (copied.index(name) if name in copied else self.results.index(name)))
                       for name in saved if name in copied or name in self.results]
        again = {name for name, _ in self.reused}
        self.saved = [name for name in saved if name not in again]
        self.forward = function.session(part(whole, function.inputs, [*self.results, *self.saved]))
        self.backward = function.session(part(whole, [*fed, *given, *saved], self.gradients))
        self.given = given
        self.used = _names(self.forward)
        self.read = _names(self.backward)
        self._whole, self._function = whole, function
        self._derivative: Function | None = None

    def derivative(self) -> Function:
        """The gradients as a function, of the same inputs and of the gradients of the results."""
        if self._derivative is None:
            function = self._function
            inputs = [*function.inputs, *self.given]
            inside = _cameo.vjp_part(self._whole, inputs, self.gradients)
            self._derivative = Function(inside, inputs, (), function.options, function.level + 1,
                                        function.moving)
        return self._derivative


class Function:
    """A plain model as a function of its inputs that can be differentiated, any number of times."""

    def __init__(self, inside: Any, inputs: Sequence[str], plain: Sequence[str], options: dict[str, Any],
                 level: int = 1, moving: Sequence[str] = ()) -> None:
        """inputs: names in the order of calls, of which the model may have some; plain: outputs that are not
        differentiated; moving: inputs that the caller changes after a call, which gradients do not depend on."""
        self.inside = inside
        rows, results = inside.inputs(), inside.outputs()
        self.inputs = list(inputs)
        self.used = {row[0] for row in rows}
        self.outputs = [row[0] for row in results]
        self.real = {row[0] for row in rows if row[2] in FLOATS}
        self.floats = [row[0] for row in results if row[2] in FLOATS and row[0] not in plain]
        self._types = {row[0]: type_text(row) for row in results}
        self.options, self.level, self.moving = options, level, set(moving)
        self.prefix = f"cameo.{level}."
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._session: Any = None
        self._joined: Any = None
        self._lock = threading.RLock()

    def session(self, inside: Any) -> Any:
        return _cameo.Session(inside, **self.options)

    def joined(self) -> Any:
        if self._joined is None:
            self._joined = _cameo.vjp_join(
                self.inside, sum_graph(self.prefix, [self._types[name] for name in self.floats], True),
                [(name, f"{self.prefix}in.{i}") for i, name in enumerate(self.floats)])
        return self._joined

    def plan(self, wanted: tuple[str, ...]) -> Plan:
        with self._lock:
            if wanted not in self._plans:
                self._plans[wanted] = Plan(self, wanted)
            return self._plans[wanted]

    def plain_session(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self.session(self.inside)
            return self._session

    def __call__(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, for tensors in the order of the inputs."""
        wanted: tuple[str, ...] = ()
        if torch.is_grad_enabled() and self.floats:
            wanted = tuple(name for name, tensor in zip(self.inputs, tensors)
                           if isinstance(tensor, torch.Tensor) and tensor.requires_grad and name in self.real)
        if wanted:
            return Run.apply(self, self.plan(wanted), *tensors)  # type: ignore[no-untyped-call,no-any-return]
        feeds = {name: lend(tensor) for name, tensor in zip(self.inputs, tensors) if name in self.used}
        return tuple(map(to_torch, self.plain_session().run(feeds, self.outputs)))


class Run(torch.autograd.Function):
    """One call of a function, with what its backward half needs."""

    @staticmethod
    def forward(ctx: Any, function: Function, plan: Plan, *tensors: Any) -> Any:
        feeds = {name: lend(tensor) for name, tensor in zip(function.inputs, tensors) if name in plan.used}
        values = list(map(to_torch, plan.forward.run(feeds, [*plan.results, *plan.saved])))
        results = values[:len(plan.results)]
        kept = dict(zip(function.inputs, tensors))
        kept.update(zip(plan.saved, values[len(plan.results):]))
        kept.update((name, results[index]) for name, index in plan.reused)
        ctx.others = {name: value for name, value in kept.items()
                      if name in function.moving or not isinstance(value, torch.Tensor)}
        ctx.names = [name for name in kept if name not in ctx.others]
        ctx.save_for_backward(*(kept[name] for name in ctx.names))
        ctx.function, ctx.plan = function, plan
        ctx.mark_non_differentiable(*(result for name, result in zip(function.outputs, results)
                                      if name not in function.floats))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        function, plan = ctx.function, ctx.plan
        kept = dict(zip(ctx.names, ctx.saved_tensors)) | ctx.others
        given = [cotangent for name, cotangent in zip(function.outputs, cotangents) if name in function.floats]
        if torch.is_grad_enabled():
            found = plan.derivative()([*(kept[name] for name in function.inputs), *given])
        else:
            kept.update(zip(plan.given, given))
            feeds = {name: lend(kept[name]) for name in plan.read}
            found = tuple(map(to_torch, plan.backward.run(feeds, plan.gradients)))
        gradients = dict(zip(plan.wanted, found))
        return (None, None, *(gradients.get(name) for name in function.inputs))
