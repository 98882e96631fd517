# A training of PyTorch as an ONNX file with training info.
# SPDX-License-Identifier: Apache-2.0
"""cameo.torch.export_training. PyTorch's own exporter exports the network. Weights, optimizer and schedule are written as a
checkpoint, which the library imports: names, states and schedules are understood in one place."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from . import _check, _cameo
from ._checkpoint import Checkpoint, import_checkpoint
from ._graph import last_operator
from ._model import Model, load

# Schedulers whose state the library continues. Others are computed ahead.
_SCHEDULERS = {"StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "LinearLR",
               "ConstantLR", "PolynomialLR", "OneCycleLR", "SequentialLR", "ChainedScheduler"}

# Functions of LambdaLR in transformers.optimization, by the names that get_scheduler has for them.
_WARMUPS = {
    "_get_constant_schedule_with_warmup_lr_lambda": "constant_with_warmup",
    "_get_linear_schedule_with_warmup_lr_lambda": "linear",
    "_get_cosine_schedule_with_warmup_lr_lambda": "cosine",
    "_get_cosine_with_hard_restarts_schedule_with_warmup_lr_lambda": "cosine_with_restarts",
    "_get_polynomial_decay_schedule_with_warmup_lr_lambda": "polynomial",
    "_get_inverse_sqrt_schedule_lr_lambda": "inverse_sqrt",
}

# Losses that data/training/losses has: its name, what the attributes of the class must be, and attributes that become
# class weights or settings.
_LOSSES: dict[type[nn.Module], tuple[str, dict[str, Any], dict[str, str]]] = {
    nn.CrossEntropyLoss: ("cross-entropy", {"reduction": "mean", "ignore_index": -100},
                          {"weight": "class_weights", "label_smoothing": "smoothing"}),
    nn.NLLLoss: ("nll", {"reduction": "mean", "ignore_index": -100}, {"weight": "class_weights"}),
    nn.MSELoss: ("mse", {"reduction": "mean"}, {}),
    nn.L1Loss: ("l1", {"reduction": "mean"}, {}),
    nn.SmoothL1Loss: ("huber", {"reduction": "mean", "beta": 1.0}, {}),
    nn.HuberLoss: ("huber", {"reduction": "mean", "delta": 1.0}, {}),
    nn.BCELoss: ("bce", {"reduction": "mean", "weight": None}, {}),
    nn.BCEWithLogitsLoss: ("bce-logits", {"reduction": "mean", "weight": None}, {"pos_weight": "class_weights"}),
    nn.KLDivLoss: ("kl-div", {"reduction": "mean", "log_target": False}, {}),
}
_FUNCTIONS: dict[Any, type[nn.Module]] = {
    nn.functional.cross_entropy: nn.CrossEntropyLoss, nn.functional.nll_loss: nn.NLLLoss,
    nn.functional.mse_loss: nn.MSELoss, nn.functional.l1_loss: nn.L1Loss,
    nn.functional.smooth_l1_loss: nn.SmoothL1Loss, nn.functional.huber_loss: nn.HuberLoss,
    nn.functional.binary_cross_entropy: nn.BCELoss,
    nn.functional.binary_cross_entropy_with_logits: nn.BCEWithLogitsLoss, nn.functional.kl_div: nn.KLDivLoss,
}
# Losses that contain this function: the library takes the network's own before the output away.
_CONTAINED = {"cross-entropy": "Softmax", "bce-logits": "Sigmoid"}
_CLASSES = {nn.CrossEntropyLoss, nn.NLLLoss}


# ---- the loss ----


class _Applied(nn.Module):
    """A loss as a network of two inputs."""

    def __init__(self, loss: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> Any:
        return self.loss(prediction, target)


def _as_module(loss: Any) -> Any:
    """A function of torch.nn.functional, with keywords or without, as the class of the same loss."""
    function, keywords = loss, {}
    if isinstance(loss, functools.partial) and not loss.args:
        function, keywords = loss.func, loss.keywords
    made = _FUNCTIONS.get(function) if not isinstance(function, nn.Module) else None
    return made(**keywords) if made else loss


def _known_loss(loss: Any) -> tuple[str, dict[str, Any]] | None:
    """The library's name of a loss and options of Model.prepare; None where it has none with these settings."""
    if isinstance(loss, nn.CosineEmbeddingLoss) and loss.reduction == "mean":
        return "cosine", {}
    name, expected, more = _LOSSES.get(type(loss), ("", {}, {}))
    if not name or any(getattr(loss, key) != value for key, value in expected.items()):
        return None
    options: dict[str, Any] = {}
    for attribute, option in more.items():
        value = getattr(loss, attribute)
        if isinstance(value, torch.Tensor) and value.dim() > 1:
            return None
        if value is None or isinstance(value, float) and value == 0:
            continue
        if option == "class_weights":
            options[option] = value.detach().flatten().double().tolist()
        else:
            options["settings"] = {option: float(value)}
    return name, options


def _example_target(loss: Any, prediction: torch.Tensor) -> torch.Tensor | None:
    """A target that a loss of PyTorch takes; None where its form is not known."""
    if type(loss) in _CLASSES:
        return torch.zeros(prediction.shape[:1] + prediction.shape[2:], dtype=torch.int64, device=prediction.device)
    if type(loss) in _LOSSES:
        return torch.full_like(prediction, 0.5)
    return None


def loss_file(loss: Any, prediction: torch.Tensor, target: torch.Tensor | None, path: str) -> str:
    """Exports a loss as a model of two inputs."""
    target = _example_target(loss, prediction) if target is None else target
    if target is None:
        raise _cameo.ArgumentError(f"the loss {called(loss)} is not one of the library's, so it is exported as a graph: give "
                                   "example_target=, a tensor such as the loss takes")
    if _has_soft_labels(loss, target):
        applied = functools.partial(_soft_cross_entropy, loss)
    else:
        applied = loss
    auto = [{axis: torch.export.Dim.AUTO for axis in range(tensor.dim())} for tensor in (prediction, target)]
    export(_Applied(applied), (prediction, target), {}, tuple(auto), path, f"the loss {called(loss)}",
           input_names=["prediction", "target"], output_names=["loss"])
    made = load(path)
    for x, y in ((prediction, target), twice((prediction, target))):  # sizes may have become constants
        with torch.no_grad():
            wanted = _on_cpu(applied(x, y)).double().mean().item()
        got = float(made.run(None, {"prediction": _on_cpu(x).numpy(), "target": _on_cpu(y).numpy()})["loss"].mean())
        if not abs(got - wanted) <= 1e-3 * max(abs(wanted), 1e-3) and wanted == wanted:
            raise _cameo.UnsupportedError(f"PyTorch's exporter wrote a loss {called(loss)} that computes something else: "
                                          f"{got:.6g} of a batch of {len(x)}, where PyTorch computes {wanted:.6g}")
    return path


def _has_soft_labels(loss: Any, target: torch.Tensor | None) -> bool:
    """Targets of cross-entropy may be probabilities of all classes."""
    return isinstance(loss, nn.CrossEntropyLoss) and target is not None and target.is_floating_point()


def _soft_cross_entropy(loss: nn.CrossEntropyLoss, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy with probabilities, which the exporter writes as an operator that takes class numbers alone."""
    log = torch.log_softmax(prediction, 1)
    if loss.label_smoothing:
        target = target * (1 - loss.label_smoothing) + loss.label_smoothing / prediction.shape[1]
    if loss.weight is not None:
        log = log * loss.weight.view([1, -1] + [1] * (prediction.dim() - 2))
    each = -(target * log).sum(1)
    return {"mean": torch.mean, "sum": torch.sum, "none": torch.clone}[loss.reduction](each)


def ends_with(model: Model, output: str | None, operator: str) -> bool:
    """Does the network itself end with what the loss contains? PyTorch applies both, the library's loss one."""
    names = [info.name for info in model.outputs if output is None or info.name == output]
    return any(last_operator(model.nodes, name) == operator for name in names)


def results(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """What the network computes of the example in evaluation."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with torch.no_grad():
            return [x for x in torch.utils._pytree.tree_leaves(module(*args, **kwargs)) if isinstance(x, torch.Tensor)]
    finally:
        for part, mode in modes.items():
            part.training = mode


def _prediction(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], model: Model,
                output: str | None) -> torch.Tensor:
    """What the loss reads, for the example."""
    names = [info.name for info in model.outputs]
    floats = [x for name, x in zip(names, results(module, args, kwargs))
              if (name == output if output is not None else x.is_floating_point())]
    if len(floats) != 1:
        raise _cameo.ArgumentError(f"output is {output!r}, expected one of {', '.join(map(repr, names))}")
    return floats[0]


def called(thing: Any) -> str:
    return getattr(thing, "__name__", None) or type(thing).__name__


# ---- the network ----


def _unwrapped(module: Any) -> Any:
    """The network inside torch.compile's and DistributedDataParallel's."""
    while isinstance(module, nn.Module):
        if isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            break
    return module


def _frozen_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """A batch normalization that keeps its statistics in training, as arithmetic: a BatchNormalization would be trained."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    made = (x - norm.running_mean.view(shape)) / torch.sqrt(norm.running_var.view(shape) + norm.eps)
    return made * norm.weight.view(shape) + norm.bias.view(shape) if norm.affine else made


def _padded_embedding(embedding: nn.Embedding, tokens: torch.Tensor) -> torch.Tensor:
    """An embedding whose row of padding is zeros and stays so: without this, ONNX would train the row."""
    rows = nn.functional.embedding(tokens, embedding.weight)
    return rows * (tokens != embedding.padding_idx).unsqueeze(-1).to(rows.dtype)


def _stand_ins(module: nn.Module) -> list[tuple[nn.Module, Callable[..., torch.Tensor]]]:
    """Parts whose forward says more than the operator that the exporter writes."""
    made: list[tuple[nn.Module, Callable[..., torch.Tensor]]] = []
    for part in module.modules():
        if _has_statistics(part) and not part.training:
            made.append((part, functools.partial(_frozen_norm, part)))
        elif type(part) is nn.Embedding and part.padding_idx is not None and not part.weight[part.padding_idx].any():
            made.append((part, functools.partial(_padded_embedding, part)))
    return made


def _has_statistics(part: nn.Module) -> bool:
    return isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None


@contextlib.contextmanager
def training_form(module: nn.Module) -> Iterator[None]:
    """The network as it trains, for the exporter: Dropout is there. BatchNormalization has its running statistics; the
    library's training step switches it to those of the batch."""
    modes = {part: part.training for part in module.modules()}
    if not module.training:
        module.train()
    stand_ins = _stand_ins(module)
    try:
        for part in filter(_has_statistics, modes):
            part.eval()
        for part, forward in stand_ins:
            part.forward = forward
        yield
    finally:
        for part, _ in stand_ins:
            del part.forward
        for part, mode in modes.items():
            part.training = mode


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells of packages that it does not need."""
    import logging
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def export(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, path: str, what: str,
            **options: Any) -> None:
    """Writes a module as PyTorch's exporter does, without its optimizer, which would fold parameters."""
    try:
        with _quiet():
            program = torch.onnx.export(module, args, kwargs=kwargs or None, dynamo=True, optimize=False, verbose=False,
                                        dynamic_shapes=shapes, **options)
            assert program is not None
            program.save(path)
    except Exception as error:  # of many classes
        first: BaseException = error
        while first.__cause__:
            first = first.__cause__
        said = next((line.strip() for line in str(first).splitlines() if line.strip()), type(first).__name__)
        raise _cameo.UnsupportedError(f"PyTorch's exporter does not take {what}: {said[:500]}") from error


def twice(tree: Any) -> Any:
    """The same with a batch of twice the size: axis 0 of tensors that have the same size there as the first."""
    flat = [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, torch.Tensor) and x.dim()]
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda x: torch.cat([x, x]) if x.dim() and x.shape[0] == flat[0].shape[0] else x, tree)


def examples(inputs: Any, repeat: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of forward. A batch of 1 is repeated: the exporter writes a size of 1 as a constant."""
    args, kwargs = ((), dict(inputs)) if isinstance(inputs, Mapping) else (inputs, {})
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and x.dim()]
    if repeat and tensors and all(x.shape[0] == 1 for x in tensors):
        args, kwargs = twice((args, kwargs))
    return args, kwargs


def batch_shapes(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """dynamic_shapes of torch.export with one open batch dimension, axis 0 of the inputs that have the same size there as the
    first."""
    import inspect
    bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    flat = [x for x in torch.utils._pytree.tree_leaves(bound) if isinstance(x, torch.Tensor) and x.dim()]
    batch = torch.export.Dim("batch")
    return torch.utils._pytree.tree_map(  # type: ignore[no-any-return]
        lambda x: {0: batch} if isinstance(x, torch.Tensor) and x.dim() and x.shape[0] == flat[0].shape[0] else None,
        dict(bound))


# ---- the schedule ----


def _is_known(scheduler: Any) -> bool:
    """Does the library continue it from its state?"""
    parts = getattr(scheduler, "_schedulers", ())
    return (type(scheduler).__module__ == "torch.optim.lr_scheduler" and type(scheduler).__name__ in _SCHEDULERS
            and all(map(_is_known, parts)))


def _warmup(scheduler: Any) -> dict[str, Any] | None:
    """A schedule of transformers, as arguments of its Trainer; None: it is none."""
    found = [f for f in getattr(scheduler, "lr_lambdas", ()) if isinstance(f, functools.partial) and not f.args]
    if not found or len(found) < len(scheduler.lr_lambdas) or any(f.func is not found[0].func or f.keywords != found[0].keywords
                                                                 for f in found):
        return None
    name = _WARMUPS.get(found[0].func.__name__)
    if not name or found[0].func.__module__ != "transformers.optimization":
        return None
    more = {key: value for key, value in found[0].keywords.items() if value is not None}
    made = {"lr_scheduler_type": name, "warmup_steps": more.pop("num_warmup_steps", 0),
            "max_steps": more.pop("num_training_steps", -1)}
    more.pop("lr_init", None)  # the rate of the group
    return {**made, "lr_scheduler_kwargs": more}


def _coming_rates(optimizer: torch.optim.Optimizer, scheduler: Any, updates: int, every: int) -> list[list[float]]:
    """The rates of the coming updates, computed by a copy of the scheduler, which is stepped after `every` updates."""
    shell = torch.optim.SGD([{**{key: value for key, value in group.items() if key not in ("params", "param_names")},
                              "params": [torch.zeros(1)]} for group in optimizer.param_groups], lr=0.0)
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that optimizer.step() was not called
        ahead = copy.deepcopy(scheduler, {id(optimizer): shell})
        for update in range(1, updates + 1):
            rates.append([float(group["lr"]) for group in shell.param_groups])
            if update % every == 0:
                ahead.step()
    return rates


# ---- the optimizer ----


def _plain(value: Any) -> Any:
    """A setting without tensors."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else value.tolist()
    return type(value)(map(_plain, value)) if type(value) in (tuple, list) else value


def _optimizer_state(optimizer: torch.optim.Optimizer, names: dict[int, str], problems: list[str]) -> dict[str, Any]:
    """The state dictionary with names; parameters that need no gradient are left out, as the optimizer does."""
    state = optimizer.state_dict()
    groups = []
    for number, (group, saved) in enumerate(zip(optimizer.param_groups, state["param_groups"])):
        kept = [(key, p) for key, p in zip(saved["params"], group["params"]) if p.requires_grad]
        strangers = [list(p.shape) for _, p in kept if id(p) not in names]
        if strangers:
            problems.append(f"group {number} of the optimizer has {len(strangers)} parameters that the network has not, such as "
                            f"one of shape {strangers[0]}: give the optimizer parameters of the network alone")
        groups.append({**{key: _plain(value) for key, value in saved.items()}, "params": [key for key, _ in kept],
                       "param_names": [names.get(id(p), "") for _, p in kept]})
    moved = {key for group in groups for key in group["params"]}
    return {"state": {key: value for key, value in state["state"].items() if key in moved}, "param_groups": groups}


def _on_cpu(tree: Any) -> Any:
    """Tensors of other devices as tensors of this one; what shares memory there does here."""
    known: dict[Any, torch.Tensor] = {}

    def moved(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.device.type == "cpu":
            return x.detach() if isinstance(x, torch.Tensor) else x
        key = (x.data_ptr(), x.dtype, tuple(x.shape), x.stride())
        return known.setdefault(key, x.detach().cpu())

    return torch.utils._pytree.tree_map(moved, tree)


# ---- the result ----


def compare(model: Model, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses a model that computes something else of the example than the network does, in evaluation."""
    given = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    names = [info.name for info in model.inputs if not info.has_default]
    if len(given) != len(names):
        return  # the exporter left out what the network does not read
    made = model.run(None, dict(zip(names, (_on_cpu(x).numpy() for x in given))))
    for (name, got), wanted in zip(made.items(), map(_on_cpu, results(module, args, kwargs))):
        found = torch.as_tensor(got)
        scale = wanted.double().abs().max().item() if wanted.numel() else 0.0
        if found.shape == wanted.shape and torch.allclose(found.double(), wanted.double(), 1e-2, 1e-3 * scale, equal_nan=True):
            continue
        raise _cameo.UnsupportedError(f"PyTorch's exporter wrote a network that computes something else: output '{name}' of the "
                                      "example differs; check=False lets it be, for a network that is random in evaluation")


# ---- all of it ----


def _checkpoint(folder: str, module: nn.Module, state: dict[str, Any], scheduler: Any, warmup: dict[str, Any] | None) -> str:
    """Writes what the training has reached, as PyTorch's users do; with a schedule of transformers, as its Trainer."""
    weights = _on_cpu(dict(module.state_dict()))
    state = _on_cpu(state)
    if not warmup:
        saved = {"model_state_dict": weights, "optimizer_state_dict": state}
        if scheduler is not None:
            saved["scheduler_state_dict"] = scheduler.state_dict()
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(saved, path)
        return path
    path = os.path.join(folder, "checkpoint")
    os.mkdir(path)
    for name, value in (("pytorch_model.bin", weights), ("optimizer.pt", state), ("scheduler.pt", scheduler.state_dict()),
                        ("training_args.bin", warmup)):
        torch.save(value, os.path.join(path, name))
    place = {"global_step": scheduler.last_epoch, "max_steps": warmup["max_steps"]}
    _cameo.write_file(os.path.join(path, "trainer_state.json"), json.dumps(place).encode())
    return path


def refuse(problems: list[str]) -> None:
    if len(problems) == 1:
        raise _cameo.UnsupportedError(f"the training cannot be exported: {problems[0]}")
    if problems:
        raise _cameo.UnsupportedError(f"the training cannot be exported, for {len(problems)} reasons:\n  "
                                      + "\n  ".join(problems))


def with_training(model: Model, checkpoint: str, partial: bool, settings: Mapping[str, Any],
                  options: dict[str, Any]) -> None:
    """Imports a checkpoint; an error has all that the checkpoint lacks."""
    try:
        import_checkpoint(model, checkpoint, False, partial, None, settings or None, options)
    except _cameo.Error as error:
        raise _with_reasons(error, Checkpoint(checkpoint).missing) from None


def _with_reasons(error: Any, missing: list[str]) -> Any:
    """What the import says, and what it did not understand of the optimizer and the scheduler."""
    made = type(error)("\n  ".join([str(error), *(f"not known: {sentence}" for sentence in missing)]))
    made._rows = error._rows
    return made


def _look_at_scheduler(optimizer: torch.optim.Optimizer, scheduler: Any, updates: int, every: int,
                       problems: list[str]) -> tuple[dict[str, Any] | None, list[list[float]] | None]:
    """Arguments of the Trainer, or a table of rates; neither: the library continues the scheduler's state."""
    name = type(scheduler).__name__
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        problems.append("the scheduler ReduceLROnPlateau follows a measured value, which is not known ahead")
        return None, None
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        problems.append(f"the scheduler {name} belongs to another optimizer")
        return None, None
    warmup = _warmup(scheduler)
    if every == 1 and (warmup or _is_known(scheduler)):
        return warmup, None
    if not updates:
        problems.append(f"the scheduler {name} is " + ("stepped once in several updates" if every > 1 else
                        "a function that ONNX does not have") + ": give updates=, the number of coming updates that its rates "
                        "are computed for")
        return None, None
    return None, _coming_rates(optimizer, scheduler, updates, every)


def _look_at_module(module: nn.Module, problems: list[str]) -> None:
    for name, part in module.named_modules():
        if _has_statistics(part) and part.momentum is None:
            problems.append(f"'{name}' ({type(part).__name__}) has momentum=None, an average over all batches, which ONNX's "
                            "BatchNormalization has not: set a momentum")


def _look_at_optimizer(optimizer: Any, problems: list[str]) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise _cameo.ArgumentError(f"optimizer is a {type(optimizer).__name__}, expected one of torch.optim")
    if not type(optimizer).__module__.startswith("torch.optim"):
        problems.append(f"the optimizer {type(optimizer).__name__} of {type(optimizer).__module__} is not one of torch.optim")


def export_training(module: nn.Module, inputs: Any, loss: Any, optimizer: torch.optim.Optimizer, scheduler: Any = None,
                    path: str | os.PathLike[str] | None = None, *, output: str | None = None, target: str = "target",
                    example_target: torch.Tensor | None = None, dynamic_shapes: Any = None,
                    input_names: list[str] | None = None, output_names: list[str] | None = None,
                    opset_version: int | None = None, clip_norm: float | None = None, clip_value: float | None = None,
                    accumulate: int = 1, updates: int = 0, updates_per_scheduler_step: int = 1, partial: bool = False,
                    settings: Mapping[str, Any] | None = None, check: bool = True) -> Model:
    """A training of PyTorch as a model with training info, which `cameo train` goes on with; written to path if one is given.

    inputs are examples: a tensor, a tuple of what forward takes, or a dict by name. Their first axis is open, unless
    dynamic_shapes (of torch.export) says otherwise. loss is a module of torch.nn, a function of torch.nn.functional, the
    name of one of the library's losses ("output:NAME" where the network computes it), or a callable of prediction and target,
    which is exported as a graph and needs example_target. output is what the loss reads where there are several, target
    what the labels are called. optimizer and scheduler are those of the training, where it is now. clip_norm, clip_value and
    accumulate are what the training loop does. updates is how many coming updates the rates of a scheduler are computed for
    that no file can describe; updates_per_scheduler_step is for one that is stepped once an epoch. input_names, output_names
    and opset_version are those of torch.onnx.export, partial and settings those of Model.import_checkpoint. With check the
    results for the example are compared.
    """
    module = _unwrapped(module)
    if not isinstance(module, nn.Module):
        raise _cameo.ArgumentError(f"module is a {type(module).__name__}, expected a torch.nn.Module")
    problems: list[str] = []
    _look_at_optimizer(optimizer, problems)
    _check.whole("updates", updates)
    _check.whole("updates_per_scheduler_step", updates_per_scheduler_step, 1)
    _look_at_module(module, problems)
    warmup = rates = None
    if scheduler is not None:
        warmup, rates = _look_at_scheduler(optimizer, scheduler, updates, updates_per_scheduler_step, problems)
    names = {id(p): name for name, p in module.named_parameters()}
    state = _optimizer_state(optimizer, names, problems)
    loss = _as_module(loss)
    known = (loss, {}) if isinstance(loss, str) else _known_loss(loss)
    if known is None and not callable(loss):
        raise _cameo.ArgumentError(f"loss is a {type(loss).__name__}, expected a module, a function or a name")
    refuse(problems)

    said: dict[str, Any] = dict(settings or {})
    for key, value in (("clip_norm", clip_norm), ("clip_value", clip_value), ("rates", rates)):
        if value is not None:
            said.setdefault(key, value)
    args, kwargs = examples(inputs, dynamic_shapes is None)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        shapes = batch_shapes(module, args, kwargs) if dynamic_shapes is None else dynamic_shapes
        with training_form(module):
            export(module, args, kwargs, shapes, file, f"the network {called(module)}", input_names=input_names,
                    output_names=output_names, opset_version=opset_version)
        model = load(file)
        if known and known[0] in _CONTAINED and not isinstance(loss, str) and ends_with(model, output, _CONTAINED[known[0]]):
            known = None  # PyTorch applies it twice
        if known is None or not isinstance(loss, str) and _has_soft_labels(loss, example_target):
            known = loss_file(loss, _prediction(module, args, kwargs, model, output), example_target,
                               os.path.join(folder, "loss.onnx")), {}
        checkpoint = _checkpoint(folder, module, state, None if rates else scheduler, warmup)
        with_training(model, checkpoint, partial, said,
                      {"loss": known[0], "output": output, "target": target, "accumulate": accumulate, **known[1]})
        if check:
            compare(model, module, *((args, kwargs) if dynamic_shapes is not None else twice((args, kwargs))))
        return kept(model, path)


def kept(model: Model, path: str | os.PathLike[str] | None) -> Model:
    """The model, which no longer needs files of the temporary folder."""
    report = model.report
    if path is None:
        return Model(load(model.to_bytes())._inside, report)
    model.save(path)
    return Model(load(path)._inside, report)
