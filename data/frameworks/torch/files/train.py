"""Goes on with the training that training.pt holds; one JSON object a step."""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
# IMPORT

from model import load

# NAMES


# LOSS


def rate(phase, position, group):
    """The learning rate of a group in a phase of the schedule."""
    k, shape = position - phase["first"], phase["shape"]
    length, factor = phase.get("length", 0.0), phase.get("factor", 0.0)
    first = phase["from"][group] if "from" in phase else 0.0
    last = phase["to"][group] if "to" in phase else 0.0
    if shape == "table":
        rates = phase["rates"]
        groups = phase["groups"]
        return rates[min(k, len(rates) // groups - 1) * groups + group]
    if shape == "constant":
        return first
    if shape == "linear":
        return first + (last - first) * min(k / length, 1.0)
    if shape == "cosine":
        if k > length and not phase.get("swings_back"):
            return last
        return last + (first - last) * (1 + math.cos(math.pi * k / length)) / 2
    if shape == "exponential":
        done = k // length if phase.get("stepped") else k / length
        return first * factor**done
    if shape == "polynomial":
        return last + (first - last) * max(1 - k / length, 0.0) ** factor
    if shape == "inverse":
        done = k // length if phase.get("stepped") else k / length
        return first / (1 + factor * done)
    if shape == "root":
        return first * math.sqrt(length / (k + length))
    return first + (last - first) * min(math.log(k + 1) / math.log(length), 1.0)


def set_rates(optimizer, schedule, step):
    position = step + schedule["offset"]
    begun = [p for p in schedule["phases"] if p["first"] <= position]
    for i, group in enumerate(optimizer.param_groups):
        group["lr"] = rate(
            (begun or schedule["phases"])[-1 if begun else 0], position, i
        )


def clip(parameters, kind, limit):
    if kind == "norm":
        torch.nn.utils.clip_grad_norm_(parameters, limit)
    elif kind == "value":
        torch.nn.utils.clip_grad_value_(parameters, limit)
    elif kind == "each":
        for p in parameters:
            p.grad.mul_(torch.clamp(limit / p.grad.norm(), max=1.0))
    else:
        norm = torch.stack([p.grad.norm() for p in parameters]).norm()
        for p in parameters:
            p.grad.mul_(torch.clamp(limit / norm, max=1.0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="an .npz file")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=100, help="batches")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--log", help="write the lines to this file, too")
    parser.add_argument("--out", help="write weights and training state to this file")
    args = parser.parse_args()
    folder = Path(__file__).parent
    state = torch.load(folder / "training.pt", weights_only=True)
    model = load().train()
    named = dict(model.named_parameters())
    groups = [{"params": [named[name] for name in names]} for names in state["names"]]
    moved = [p for group in groups for p in group["params"]]
    model.requires_grad_(False)
    for parameter in moved:
        parameter.requires_grad_()
    optimizer = torch.optim.OPTIMIZER(groups, lr=1.0)
    optimizer.load_state_dict(state["optimizer"])
    with np.load(args.data) as file:
        data = {name: torch.from_numpy(file[name]) for name in INPUTS + LABELS}
    count = len(data[INPUTS[0]])
    batches = -(-count // args.batch_size)
    every, begun = state["accumulate"], state["step"] * state["accumulate"]
    if args.log:
        Path(args.log).write_text("")
    order = torch.arange(count)
    for step in range(begun, begun + args.steps):
        place = step % batches
        if args.shuffle and (place == 0 or step == begun):
            order = torch.randperm(count)
        rows = order[place * args.batch_size : (place + 1) * args.batch_size]
        arrays = {name: array[rows] for name, array in data.items()}
        results = model(*(arrays[name] for name in INPUTS))
        if not isinstance(results, tuple):
            results = (results,)
        loss = compute_loss(results, arrays)
        (loss / every).backward()
        if "schedule" in state:
            set_rates(optimizer, state["schedule"], step // every)
        if (step + 1) % every == 0:
            if "clip" in state:
                clip(moved, state["clip"], state["clip_limit"])
            optimizer.step()
            optimizer.zero_grad()
        line = json.dumps({"step": step + 1, "loss": loss.item()})
        print(line, flush=True)
        if args.log:
            with open(args.log, "a") as log:
                print(line, file=log)
    if args.out:
        state["optimizer"] = optimizer.state_dict()
        state["step"] = (begun + args.steps) // every
        torch.save({"weights": model.state_dict(), "training": state}, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
