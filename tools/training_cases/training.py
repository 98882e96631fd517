# Trainings in PyTorch.
# SPDX-License-Identifier: Apache-2.0
"""Losses, optimizers and schedules by the names that the training interface has for them."""

import math

import torch
import torch.nn.functional as F

LOSSES = {"cross-entropy": F.cross_entropy, "nll": F.nll_loss, "mse": F.mse_loss, "l1": F.l1_loss,
          "huber": F.huber_loss, "bce": F.binary_cross_entropy, "bce-logits": F.binary_cross_entropy_with_logits}


def optimizer_of(name, parameters, options, wrong):
    """torch.optim's own, with the options of the interface."""
    o = {key: options[key] for key in ("weight_decay", "momentum") if key in options}
    defaults = {"adagrad": 1e-2, "rmsprop": 1e-2}
    o["lr"] = options.get("lr", defaults.get(name, 1e-3)) * wrong
    if "epsilon" in options:
        o["eps"] = options["epsilon"]
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, alpha=options.get("beta2", 0.99), **o)
    if name in ("adam", "adamw"):
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        return kind(parameters, betas=(options.get("beta1", 0.9), options.get("beta2", 0.999)), **o)
    if name == "adagrad":
        return torch.optim.Adagrad(parameters, **o)
    o.setdefault("momentum", 0 if name == "sgd" else 0.9)
    return torch.optim.SGD(parameters, nesterov=name == "nesterov", **o)


def factor_of(options):
    """The learning rate's factor after t updates."""
    kind, warmup = options.get("schedule", "constant"), options.get("warmup", 0)
    steps, factor = options.get("schedule_steps", 0), options.get("schedule_factor", 0.1)

    def factor_at(t):
        rise = min(1, (t + 1) / warmup) if warmup else 1
        p = max(0, t - warmup)
        if kind == "step":
            return rise * factor ** (p // steps)
        q = min(1, p / (steps - warmup)) if kind in ("cosine", "linear") else 0
        return rise * ((1 + math.cos(math.pi * q)) / 2 if kind == "cosine" else 1 - q)
    return factor_at


def train(forward, loss, optimizer, options, trained):
    """A function for gen_training_tests.results. forward(weights, batch, training) gives the prediction, and changes
    running statistics among the weights where training; loss(prediction, batch)."""
    def compute(weights, batches, last, wrong):
        parameters = [weights[name].requires_grad_() for name in trained]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)  # of what a batch does not reach; None would leave it out
        method = optimizer_of(optimizer, parameters, options, wrong)
        schedule = torch.optim.lr_scheduler.LambdaLR(method, factor_of(options))
        every, losses = options.get("accumulate", 1), []
        for number, batch in enumerate(batches):
            value = loss(forward(weights, batch, True), batch)
            (value / every).backward()
            losses.append(value.item())
            if (number + 1) % every == 0:
                if options.get("clip_norm"):
                    torch.nn.utils.clip_grad_norm_(parameters, options["clip_norm"])
                method.step()
                schedule.step()
                method.zero_grad(set_to_none=False)
        with torch.no_grad():
            evaluated = loss(forward(weights, last, False), last).item()
        return losses, evaluated, {name: weight.detach() for name, weight in weights.items()}
    return compute
