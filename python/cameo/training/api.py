# ONNX Runtime Training's module, optimizer and scheduler on Cameo's sessions.
# SPDX-License-Identifier: Apache-2.0
"""Module, Optimizer, LinearLRScheduler, CheckpointState.

As there, a training model gives the loss and the gradients of parameters that are fed to it, and an optimizer turns
gradients into new parameters. Artifacts are those of cameo.training.artifacts, or of ONNX Runtime's own.
"""

from __future__ import annotations

import math
import os
import typing
import warnings

import numpy

from .. import _cameo
from .._binding import OrtValue
from .._check import Fixed
from .._model import Model, load
from .._session import Session
from . import _messages
from ._state import Array, CheckpointState, Parameter, Parameters, Properties

_BUFFER = ".accumulation.out"  # of ONNX Runtime: new sums of gradients, which Cameo keeps by itself
GRADIENT = "gradient."


def _trained(model: Model) -> list[str]:
    """What a training model gives the gradients of."""
    names = [output.name for output in model.outputs]
    return [name[len(GRADIENT):] for name in names if name.startswith(GRADIENT)] or \
        [name[:-len("_grad" + _BUFFER)] for name in names if name.endswith("_grad" + _BUFFER)]


def _with_gradients(model: Model, trained: list[str]) -> Model:
    """The model with Cameo's gradients, in place of ONNX Runtime's nodes that compute them."""
    names = [output.name for output in model.outputs]
    if any(name.startswith(GRADIENT) for name in names):
        return model
    outputs = [name for name in names if not name.endswith(_BUFFER)]
    return model.extract(outputs=outputs).grad(outputs[0], trained)


class Module(Fixed):
    """Steps of training and of evaluation, on the artifacts of a model."""

    training: bool

    def __init__(self, train_model_uri: str | os.PathLike[str], state: CheckpointState,
                 eval_model_uri: str | os.PathLike[str] | None = None, device: str = "cpu",
                 session_options: typing.Any = None) -> None:
        if device.split(":")[0] != "cpu":
            raise _cameo.UnsupportedError(f"device '{device}' is not supported: Cameo computes on the CPU")
        threads = session_options.intra_op_num_threads if session_options is not None else 0
        self.training = True
        self._state = state
        self._reset = True
        model = load(os.fspath(train_model_uri))
        trained = _trained(model)
        if not trained:
            raise _cameo.ArgumentError(f"'{train_model_uri}' is not a training model: it has no outputs of gradients")
        missing = [name for name in trained if name not in state._values]
        if missing:
            raise _cameo.ArgumentError("the checkpoint has no parameter " + ", ".join(f"'{name}'" for name in missing))
        state._trained = set(trained)
        self._trained = trained
        self._eval = Session(os.fspath(eval_model_uri), threads=threads) if eval_model_uri is not None else None
        self._train = self._training_session(model, threads)

    def _training_session(self, model: Model, threads: int) -> Session:
        try:
            return Session(_with_gradients(model, self._trained), threads=threads)
        except _cameo.UnsupportedError as error:
            if self._eval is None:
                raise
            warnings.warn(f"the training model cannot run ({error}): the evaluation model is trained instead, with dropout "
                          "and batch normalization as in inference", stacklevel=3)
            return Session(_with_gradients(self._eval.model, self._trained), threads=threads)

    def _session(self) -> Session:
        if self.training:
            return self._train
        if self._eval is None:
            raise _cameo.ArgumentError("the module has no evaluation model: give eval_model_uri")
        return self._eval

    def input_names(self) -> list[str]:
        """What a call is given, in order."""
        return [info.name for info in self._session().inputs if info.name not in self._state._values]

    def output_names(self) -> list[str]:
        """What a call gives, in order."""
        return [info.name for info in self._session().outputs if not info.name.startswith(GRADIENT)]

    def __call__(self, *user_inputs: typing.Any) -> typing.Any:
        """The loss, and other outputs behind it, of a batch. In training, the gradients are added to those there are."""
        session, names = self._session(), self.input_names()
        if len(user_inputs) != len(names):
            raise _cameo.ArgumentError(f"{len(user_inputs)} inputs are given, expected {len(names)}: {', '.join(names)}")
        as_values = all(isinstance(value, OrtValue) for value in user_inputs)
        given = [value._array if isinstance(value, OrtValue) else value for value in user_inputs]
        wanted = {info.name for info in session.inputs}
        feeds = {name: value for name, value in self._state._values.items() if name in wanted}
        feeds.update(zip(names, given))
        outputs = self.output_names()
        if self.training:
            results = session.run(outputs + [GRADIENT + name for name in self._trained], feeds)
            self._add(results[len(outputs):])
        else:
            results = session.run(outputs, feeds)
        shown = [OrtValue(value) if as_values else value for value in results[:len(outputs)]]
        return shown[0] if len(shown) == 1 else tuple(shown)

    def _add(self, gradients: list[Array]) -> None:
        sums = self._state._gradients
        for name, gradient in zip(self._trained, gradients):
            if self._reset or name not in sums:
                sums[name] = gradient
            else:
                sums[name] = sums[name] + gradient
        self._reset = False

    def train(self, mode: bool = True) -> Module:
        """Calls are steps of training."""
        self.training = mode
        return self

    def eval(self) -> Module:
        """Calls are evaluations."""
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """The next step of training begins with new gradients."""
        self._reset = True

    def _names(self, trainable_only: bool) -> list[str]:
        order = [info.name for info in self._train.inputs if info.name in self._state._values]
        return [name for name in order if not trainable_only or name in self._state._trained]

    def get_parameters_size(self, trainable_only: bool = True) -> int:
        """How many numbers the parameters are."""
        return sum(int(self._state._values[name].size) for name in self._names(trainable_only))

    def get_contiguous_parameters(self, trainable_only: bool = False) -> OrtValue:
        """All parameters one after the other."""
        parts = [self._state._values[name].reshape(-1) for name in self._names(trainable_only)]
        return OrtValue(numpy.concatenate(parts).astype(numpy.float32) if parts else numpy.zeros(0, numpy.float32))

    def copy_buffer_to_parameters(self, buffer: typing.Any, trainable_only: bool = True) -> None:
        """The other way."""
        flat = numpy.asarray(buffer._array if isinstance(buffer, OrtValue) else buffer)
        size = self.get_parameters_size(trainable_only)
        if flat.shape != (size,):
            raise _cameo.ArgumentError(f"the buffer has the shape {flat.shape}, expected ({size},)")
        at = 0
        for name in self._names(trainable_only):
            old = self._state._values[name]
            self._state._values[name] = flat[at:at + old.size].reshape(old.shape).astype(old.dtype)
            at += old.size

    def export_model_for_inferencing(self, inference_model_uri: str | os.PathLike[str],
                                     graph_output_names: typing.Sequence[str]) -> None:
        """Writes the evaluation model without its loss, with the parameters as they are now in it."""
        if self._eval is None:
            raise _cameo.ArgumentError("the module has no evaluation model: give eval_model_uri")
        model = self._eval.model.extract(outputs=list(graph_output_names))
        values = {info.name: self._state._values[info.name] for info in model.inputs if info.name in self._state._values}
        load(_messages.with_initializers(model.to_bytes(), values)).save(inference_model_uri)


# New parameters as models: g is the gradient, the rest is called as in ONNX Runtime's operators. one and two are the
# corrections of the moments' bias. The first is PyTorch's AdamW, the second Hugging Face's.
_ADAMW = ["""decay = Mul(rate, weight_decay) rest = Sub(unit, decay) shrunk = Mul(w, rest)
    even = Div(v_next, two) root = Sqrt(even) spread = Add(root, epsilon) scaled = Mul(spread, one)
    direction = Div(m_next, scaled) move = Mul(rate, direction) w_next = Sub(shrunk, move)""",
          """root = Sqrt(v_next) spread = Add(root, epsilon) even = Sqrt(two) part = Mul(rate, even)
    size = Div(part, one) direction = Div(m_next, spread) move = Mul(size, direction) moved = Sub(w, move)
    decay = Mul(rate, weight_decay) pull = Mul(moved, decay) w_next = Sub(moved, pull)"""]


def _adamw_text(settings: dict[str, float]) -> str:
    alpha, beta = settings["alpha"], settings["beta"]
    constants = {"alpha": alpha, "alpha_rest": 1 - alpha, "beta": beta, "beta_rest": 1 - beta,
                 "epsilon": settings["epsilon"], "weight_decay": settings["weight_decay"], "unit": 1.0}
    return f"""<ir_version: 8, opset_import: ["" : 17]>
adamw (float[] w, float[] g, float[] m, float[] v, float rate, float one, float two)
    => (float[] w_next, float[] m_next, float[] v_next)
    <{', '.join(f'float {name} = {{{value!r}}}' for name, value in constants.items())}> {{
    m_old = Mul(alpha, m) m_new = Mul(alpha_rest, g) m_next = Add(m_old, m_new)
    square = Mul(g, g) v_old = Mul(beta, v) v_new = Mul(beta_rest, square) v_next = Add(v_old, v_new)
    {_ADAMW[1 if settings["adam_mode"] else 0]}
}}"""


_SGD = """<ir_version: 8, opset_import: ["" : 17]>
sgd (float[] w, float[] g, float rate) => (float[] w_next) { move = Mul(rate, g) w_next = Sub(w, move) }"""

# Names of ONNX Runtime's operators, with the attributes' defaults.
_OPTIMIZERS: dict[str, dict[str, float]] = {
    "AdamWOptimizer": {"alpha": 0.9, "beta": 0.999, "epsilon": 1e-8, "weight_decay": 0.01, "adam_mode": 0,
                       "correct_bias": 1},
    "SGDOptimizerV2": {},
}


class Optimizer(Fixed):
    """Turns the gradients of a module into new parameters, as the optimizer model says."""

    def __init__(self, optimizer_uri: str | os.PathLike[str], module: Module) -> None:
        nodes = load(os.fspath(optimizer_uri)).nodes
        if len(nodes) != 1 or nodes[0].op_type not in _OPTIMIZERS:
            found = ", ".join(node.op_type for node in nodes) or "nothing"
            raise _cameo.UnsupportedError(f"the optimizer model has {found}, expected one of {', '.join(_OPTIMIZERS)}")
        self._module = module
        self._adam = nodes[0].op_type == "AdamWOptimizer"
        self._settings = {name: nodes[0].attributes.get(name, default)
                          for name, default in _OPTIMIZERS[nodes[0].op_type].items()}
        self._session = Session(_adamw_text(self._settings) if self._adam else _SGD)
        self._rate = module._state._rate or 0.001

    def step(self) -> None:
        """New parameters from the gradients."""
        state = self._module._state
        if not state._gradients:
            raise _cameo.ArgumentError("there are no gradients: a step of training comes first")
        state._step += 1
        feeds: dict[str, Array] = {"rate": numpy.float32(self._rate)}
        if self._adam:
            corrected = bool(self._settings["correct_bias"])
            for name, key in (("one", "alpha"), ("two", "beta")):
                feeds[name] = numpy.float32(1 - math.pow(self._settings[key], state._step) if corrected else 1)
        for name, gradient in state._gradients.items():
            value = state._values[name]
            feeds["w"], feeds["g"] = value, gradient
            if self._adam:
                moments = state._moments.get(name) or [numpy.zeros_like(value), numpy.zeros_like(value)]
                feeds["m"], feeds["v"] = moments
                state._values[name], *state._moments[name] = self._session.run(None, feeds)
            else:
                state._values[name], = self._session.run(None, feeds)

    def set_learning_rate(self, learning_rate: float) -> None:
        """The rate of the next steps."""
        self._rate = float(learning_rate)

    def get_learning_rate(self) -> float:
        """The rate of the next step."""
        return self._rate


class LinearLRScheduler(Fixed):
    """A rate that rises over warmup_step_count steps to initial_lr and falls to 0 at total_step_count."""

    def __init__(self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float) -> None:
        self._optimizer = optimizer
        self._warmup, self._total, self._initial = warmup_step_count, total_step_count, initial_lr
        optimizer._module._state._rate = initial_lr
        self.step()

    def step(self) -> None:
        """The rate for the next step."""
        done = self._optimizer._module._state._step
        if done < self._warmup:
            factor = done / max(1, self._warmup)
        else:
            factor = max(0.0, (self._total - done) / max(1, self._total - self._warmup))
        self._optimizer.set_learning_rate(self._initial * factor)


__all__ = ["CheckpointState", "Module", "Optimizer", "LinearLRScheduler", "Parameter", "Parameters", "Properties"]
