# Models as functions that PyTorch differentiates.
# SPDX-License-Identifier: Apache-2.0
"""What cameo.torch is built on: a model cut into a forward and a backward half, and the autograd function that runs
them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy
import torch

from . import _cameo
from ._graph import ValueInfo
from ._model import Model, load, merge
from ._session import Session

# ONNX's numbers of the element types that have gradients.
BFLOAT16 = 16
FLOATS = {1: torch.float32, 10: torch.float16, 11: torch.float64, BFLOAT16: torch.bfloat16}


def _type_text(info: ValueInfo) -> str:
    """The type of an input or output as ONNX's text form has it: "float[N,3]"."""
    element, shape = info.type.split("[")[0], info.shape
    if shape is None:
        return element + "[]"
    sizes = [str(size) if isinstance(size, int) or re.fullmatch(r"[A-Za-z_]\w*", size or "") else "?" for size in shape]
    return element + f"[{','.join(sizes)}]" * bool(sizes)


def with_sum(model: Model, names: Sequence[str], prefix: str, weighted: bool = False) -> Model:
    """The model with copies of these outputs in their place, PREFIXout.0 and so on, and with the sum of all their
    elements, PREFIXsum; weighted: of their elements times those of inputs PREFIXweights.0 and so on."""
    types = {info.name: _type_text(info) for info in model.outputs}
    inputs, outputs, nodes, terms = [], [f'float "{prefix}sum"'], [], []
    for i, name in enumerate(names):
        inputs.append(f'{types[name]} "{prefix}in.{i}"')
        outputs.append(f'{types[name]} "{prefix}out.{i}"')
        nodes.append(f'"{prefix}out.{i}" = Identity ("{prefix}in.{i}")')
        term = "out"
        if weighted:
            inputs.append(f'{types[name]} "{prefix}weights.{i}"')
            nodes.append(f'"{prefix}product.{i}" = Mul ("{prefix}out.{i}", "{prefix}weights.{i}")')
            term = "product"
        nodes.append(f'"{prefix}cast.{i}" = Cast <to: int = 1> ("{prefix}{term}.{i}") '
                     f'"{prefix}sum.{i}" = ReduceSum <keepdims: int = 0> ("{prefix}cast.{i}")')
        terms.append(f'"{prefix}sum.{i}"')
    sums = load(f'<ir_version: {model.summary.ir_version}, opset_import: ["" : {model.opsets.get("", 17)}]>\n'
                f'sums ({", ".join(inputs)}) => ({", ".join(outputs)}) '
                f'{{ {" ".join(nodes)} "{prefix}sum" = Sum ({", ".join(terms)}) }}')
    return merge(model, sums, {name: f"{prefix}in.{i}" for i, name in enumerate(names)})


def part(model: Model, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    """What leads from inputs to outputs; the part has those of the inputs that outputs depend on."""
    used = set(_cameo.used_values(model._inside, set(inputs), outputs))
    return model.extract([name for name in inputs if name in used], outputs)


def to_torch(value: Any, number: int) -> Any:
    """An array of the library as a tensor over the same memory; what is to be read only is copied. number: its element
    type."""
    if not isinstance(value, numpy.ndarray):
        return value
    if not value.flags.writeable:
        value = value.copy()
    if number == BFLOAT16:  # which NumPy knows by way of ml_dtypes, or as numbers of two bytes
        return torch.from_numpy(value.view(numpy.uint16)).view(torch.bfloat16)
    return torch.from_numpy(value)


def lend(tensor: Any) -> Any:
    """A tensor as a session is fed it: its memory, not a copy."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    if tensor.layout != torch.strided:
        raise _cameo.ArgumentError(f"a tensor has layout '{tensor.layout}', expected 'torch.strided' (to_dense)")
    if tensor.device.type != "cpu":
        raise _cameo.ArgumentError(f"a tensor is on device '{tensor.device}', expected 'cpu'")
    return tensor.detach() if tensor.requires_grad else tensor


def _without_foreign_sizes(model: Model, origin: Model) -> Model:
    """The model without names of sizes at its inputs that the origin's inputs do not have: what outputs and values in
    between are said to be is not always true, and nothing but inputs is held to it."""
    known = {size for info in origin.inputs for size in info.shape or () if isinstance(size, str)}
    changed = {info.name: [None if isinstance(size, str) and size not in known else size for size in info.shape]
               for info in model.inputs if info.shape and any(isinstance(size, str) and size not in known
                                                              for size in info.shape)}
    return model.set_shapes(changed) if changed else model


class Runner:
    """A session that is fed tensors and gives tensors."""

    def __init__(self, model: Model, options: dict[str, Any]) -> None:
        self.session = Session(model, **options)
        self.inputs = {info.name for info in self.session.inputs}
        self.outputs = [info.name for info in self.session.outputs]
        self._numbers = [info.number for info in self.session.outputs]

    def __call__(self, tensors: Mapping[str, Any]) -> list[Any]:
        values = self.session.run(None, {name: lend(tensors[name]) for name in self.inputs})
        return list(map(to_torch, values, self._numbers))


class Plan:
    """How the gradients by some inputs are computed: two sessions, and what goes from one to the other."""

    def __init__(self, function: Function, wanted: tuple[str, ...]) -> None:
        floats = function.floats
        copies = [f"{function.prefix}out.{i}" for i in range(len(floats))]
        whole = function.joined().grad(function.prefix + "sum", wanted)
        self.wanted = wanted
        self.results = [copies[floats.index(name)] if name in floats else name for name in function.outputs]
        self.gradients = [info.name for info in whole.outputs][-len(wanted):]
        saved, fed, given, copied = _cameo.split_gradient(
            whole._inside, self.results, [f"{function.prefix}weights.{i}" for i in range(len(floats))], self.gradients)
        # A result that the backward half reads is kept as the tensor that the caller got: PyTorch then sees it if
        # the caller changes its elements.
        self.reused = [(name, copied[name]) for name in saved if name in copied]
        again = {name for name, _ in self.reused}
        self.saved = [name for name in saved if name not in again]
        self.forward = Runner(part(whole, function.inputs, [*self.results, *self.saved]), function.options)
        backward = _without_foreign_sizes(part(whole, [*fed, *given, *saved], self.gradients), function.model)
        self.backward = Runner(backward, function.options)
        self.given = given
        self._whole, self._function = whole, function
        self._derivative: Function | None = None

    def derivative(self) -> Function:
        """The gradients as a function, of the same inputs and of the gradients of the results."""
        if self._derivative is None:
            function = self._function
            drawn = function.random()
            if drawn:
                raise _cameo.UnsupportedError(f"the network has random operators ({drawn}), whose numbers would be "
                                              "drawn anew: its gradients cannot be differentiated (create_graph=True)")
            inputs = [*function.inputs, *self.given]
            model = part(self._whole, inputs, self.gradients)
            self._derivative = Function(model, inputs, (), function.options, function.level + 1,
                                        function.moving)
        return self._derivative


class Function:
    """A plain model as a function of its inputs that can be differentiated, any number of times."""

    def __init__(self, model: Model, inputs: Sequence[str], plain: Sequence[str], options: dict[str, Any],
                 level: int = 1, moving: Iterable[str] = ()) -> None:
        """inputs: names in the order of calls, of which the model may have some; plain: outputs that are not
        differentiated; moving: inputs that the caller changes after a call, which gradients do not depend on."""
        self.model = model
        self.inputs = list(inputs)
        self.outputs = [info.name for info in model.outputs]
        self.real = {info.name for info in model.inputs if info.number in FLOATS}
        self.floats = [info.name for info in model.outputs if info.number in FLOATS and info.name not in plain]
        self.options, self.level, self.moving = options, level, set(moving)
        self.prefix = f"cameo.{level}."
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._runner: Runner | None = None
        self._joined: Model | None = None
        self._lock = threading.RLock()

    def random(self) -> str:
        """Operators of the model that draw numbers; Dropout does where it is told that it trains."""
        names = {name for name in _cameo.random_operators(self.model._inside) if name != "Dropout"}
        names |= {"Dropout" for node in self.model.nodes if node.op_type == "Dropout" and len(node.inputs) > 2}
        return ", ".join(sorted(names))

    def joined(self) -> Model:
        if self._joined is None:
            self._joined = with_sum(self.model, self.floats, self.prefix, weighted=True)
        return self._joined

    def plan(self, wanted: tuple[str, ...]) -> Plan:
        with self._lock:
            if wanted not in self._plans:
                self._plans[wanted] = Plan(self, wanted)
            return self._plans[wanted]

    def plain(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._runner = Runner(self.model, self.options)
            return self._runner

    def __call__(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, for tensors in the order of the inputs."""
        wanted: tuple[str, ...] = ()
        if torch.is_grad_enabled() and self.floats:
            wanted = tuple(name for name, tensor in zip(self.inputs, tensors)
                           if isinstance(tensor, torch.Tensor) and tensor.requires_grad and name in self.real)
        if wanted:
            return Run.apply(self, self.plan(wanted), *tensors)  # type: ignore[no-any-return]
        return tuple(self.plain()(dict(zip(self.inputs, tensors))))


class Run(torch.autograd.Function):
    """One call of a function, with what its backward half needs."""

    @staticmethod
    def forward(ctx: Any, function: Function, plan: Plan, *tensors: Any) -> Any:
        kept = dict(zip(function.inputs, tensors))
        values = plan.forward(kept)
        results = values[:len(plan.results)]
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
            found = plan.backward(kept)
        gradients = dict(zip(plan.wanted, found))
        return (None, None, *(gradients.get(name) for name in function.inputs))
