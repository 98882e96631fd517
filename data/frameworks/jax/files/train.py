"""Goes on with the training that training.msgpack holds; one JSON object a step."""

import argparse
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization
# IMPORT

from model import apply, init

# NAMES


# LOSS


def phase_rate(phase, position, group, groups):
    """The learning rate of a group in a phase of the schedule."""
    k, shape = position - phase["first"], phase["shape"]
    length, factor = phase.get("length", 0.0), phase.get("factor", 0.0)
    first = phase["from"][group] if "from" in phase else 0.0
    last = phase["to"][group] if "to" in phase else 0.0
    if shape == "table":
        rates = jnp.array(phase["rates"]).reshape(-1, groups)[:, group]
        return rates[jnp.clip(k, 0, len(rates) - 1)]
    if shape == "constant":
        return first
    part = k / length
    done = jnp.floor(part) if phase.get("stepped") else part
    if shape == "linear":
        return first + (last - first) * jnp.minimum(part, 1.0)
    if shape == "cosine":
        part = part if phase.get("swings_back") else jnp.minimum(part, 1.0)
        return last + (first - last) * (1 + jnp.cos(jnp.pi * part)) / 2
    if shape == "exponential":
        return first * factor**done
    if shape == "polynomial":
        return last + (first - last) * jnp.maximum(1 - part, 0.0) ** factor
    if shape == "inverse":
        return first / (1 + factor * done)
    if shape == "root":
        return first * jnp.sqrt(length / (jnp.maximum(k, 0) + length))
    part = jnp.log(jnp.maximum(k, 0) + 1) / np.log(length)
    return first + (last - first) * jnp.minimum(part, 1.0)


def schedule(state, group):
    """The learning rate of a group by the number of updates."""

    def rate(count):
        position = count + state["schedule"]["offset"]
        phases, groups = state["schedule"]["phases"], state["groups"]
        out = phase_rate(phases[0], position, group, groups)
        for phase in phases[1:]:
            here = phase_rate(phase, position, group, groups)
            out = jnp.where(position >= phase["first"], here, out)
        return out

    return rate


# OPTIMIZER


def restore(opt_state, state):
    """The state of the chain with what was saved, by field and name of the weight."""

    def leaf(path, value):
        fields = [i for i, key in enumerate(path) if hasattr(key, "name")]
        field = path[fields[-1]].name
        if field in ("count", "gradient_step"):
            return jnp.asarray(state["step"], value.dtype)
        saved = state["slots"].get(field)
        for key in path[fields[-1] + 1 :]:
            saved = None if saved is None else saved.get(key.key)
        return value if saved is None else jnp.asarray(saved, value.dtype)

    return jax.tree_util.tree_map_with_path(leaf, opt_state)


def read_data(path):
    """The arrays by the names of the model; one that is left over is the label."""
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    for name in [name for name in NAMES if name not in data]:
        left = [other for other in data if other not in NAMES]
        if len(left) != 1:
            raise SystemExit(f"{path}: there is no array '{name}'")
        data[name] = data.pop(left[0])
    return {name: convert(data[name], dtype) for name, dtype in NAMES.items()}


def convert(array, dtype):
    if array.dtype == np.uint8 and jnp.issubdtype(dtype, jnp.floating):
        array = array / 255  # bytes of an image
    narrow = jax.dtypes.canonicalize_dtype(dtype)
    if not np.array_equal(array.astype(narrow), array.astype(dtype)):
        raise SystemExit("the data has whole numbers that need 64 bits")
    return array.astype(narrow)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="an .npz file")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=100, help="batches")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--log", help="write the lines to this file, too")
    parser.add_argument("--out", help="write variables and training state to this file")
    args = parser.parse_args()
    folder = Path(__file__).parent
    state = serialization.msgpack_restore((folder / "training.msgpack").read_bytes())
    variables = init()
    optimizer = make_optimizer(state)
    opt_state = restore(optimizer.init(variables["params"]), state)

    def loss_of(params, variables, arrays, rng):
        inputs = [arrays[name] for name in INPUTS]
        variables = {**variables, "params": params}
        results, statistics = apply(variables, inputs, training=True, rng=rng)
        results = results if isinstance(results, tuple) else (results,)
        return compute_loss(results, arrays), statistics

    # JIT
    def update(variables, opt_state, arrays, rng):
        params = variables["params"]
        found, gradients = jax.value_and_grad(loss_of, has_aux=True)(
            params, variables, arrays, rng
        )
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        params = optax.apply_updates(params, updates)
        loss, statistics = found
        return {**variables, **statistics, "params": params}, opt_state, loss

    data = read_data(args.data)
    count = len(data[INPUTS[0]])
    batches = -(-count // args.batch_size)
    begun = state["step"] * state["accumulate"]
    if args.log:
        Path(args.log).write_text("")
    random, key = np.random.default_rng(begun), jax.random.key(begun)
    order = np.arange(count)
    for step in range(begun, begun + args.steps):
        place = step % batches
        if args.shuffle and (place == 0 or step == begun):
            order = random.permutation(count)
        rows = order[place * args.batch_size : (place + 1) * args.batch_size]
        arrays = {name: array[rows] for name, array in data.items()}
        rng = jax.random.fold_in(key, step)
        variables, opt_state, loss = update(variables, opt_state, arrays, rng)
        line = json.dumps({"step": step + 1, "loss": loss.item()})
        print(line, flush=True)
        if args.log:
            with open(args.log, "a") as log:
                print(line, file=log)
    if args.out:
        saved = {
            **variables,
            "step": (begun + args.steps) // state["accumulate"],
            "opt_state": serialization.to_state_dict(opt_state),
        }
        Path(args.out).write_bytes(serialization.to_bytes(saved))
    return 0


if __name__ == "__main__":
    sys.exit(main())
