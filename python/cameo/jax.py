# An ONNX network as a function of JAX, and a training of JAX as an ONNX file with training info.
# SPDX-License-Identifier: Apache-2.0
"""A training of JAX as an ONNX file: export_training. The function of the network is traced, its primitives become ONNX
operators, one each; parameters and the state of optax are written as flax does, and the library imports them.

A network as a function, which jax.grad differentiates and jax.jit compiles: to_function. Nothing of Cameo runs in it.

>>> import cameo, cameo.jax, jax
>>> apply, variables = cameo.jax.to_function('''<ir_version: 8, opset_import: ["" : 17]>
... line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {0.5}> {
...     p = MatMul(x, w) y = Add(p, b)
... }''')
>>> apply(variables, [jax.numpy.array([[3.0, 4.0]])]).tolist()
[[11.5]]
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy

try:
    import jax
except ModuleNotFoundError as missing:
    if missing.name != "jax":
        raise
    raise ModuleNotFoundError("cameo.jax needs JAX, which is not installed for this Python: pip install jax",
                              name="jax") from None

from . import _cameo
from ._checkpoint import Checkpoint, import_checkpoint
from ._generated import take
from ._model import Model, load

__all__ = ["export_training", "to_function"]

OPSET, BATCH = 20, "batch"

# Primitives that are one operator of the same operands.
_PLAIN = {"add": "Add", "add_any": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "neg": "Neg",
          "exp": "Exp", "log": "Log", "tanh": "Tanh", "logistic": "Sigmoid", "sqrt": "Sqrt", "abs": "Abs", "sign": "Sign",
          "erf": "Erf", "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil", "pow": "Pow", "eq": "Equal", "lt": "Less",
          "gt": "Greater", "le": "LessOrEqual", "ge": "GreaterOrEqual", "and": "And", "or": "Or", "not": "Not",
          "stop_gradient": "Identity", "copy": "Identity", "copy_p": "Identity", "optimization_barrier": "Identity"}
_REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd"}
# Primitives that hold a traced function.
_CALLS = ("pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat",
          "checkpoint", "remat2")


class _Writer:
    """Nodes of a graph, made of the equations of a traced function."""

    def __init__(self, batch_of: str) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.unknown: dict[str, None] = {}
        self.batch_of = batch_of  # an input whose axis 0 is the batch
        self.count = 0

    def emit(self, operator: str, *inputs: str, **attributes: Any) -> str:
        import onnx.helper
        self.count += 1
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """A value that is not trained: a Constant node."""
        import onnx.numpy_helper
        return self.emit("Constant", value=onnx.numpy_helper.from_array(numpy.asarray(value)))

    def size(self, size: Any) -> str:
        """A size as a tensor of one number: a constant, or a multiple of the batch."""
        if isinstance(size, int):
            return self.constant(numpy.array([size], numpy.int64))
        one, two, three = (int(size._evaluate({BATCH: batch})) for batch in (1, 2, 3))
        if two != 2 * one or three != 3 * one:
            self.unknown[f"a size '{size}' that is computed of the batch"] = None
        batch = self.emit("Shape", self.batch_of, start=0, end=1)
        return batch if one == 1 else self.emit("Mul", batch, self.constant(numpy.array([one], numpy.int64)))

    def shape(self, sizes: Any) -> str:
        """Sizes as a tensor."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(numpy.array(sizes, numpy.int64))
        return self.emit("Concat", *map(self.size, sizes), axis=0)

    def reshape(self, x: str, sizes: Any) -> str:
        free = [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
        if len(free) == 1:
            return self.emit("Reshape", x, self.constant(numpy.array([-1 if axis in free else size for axis, size
                                                                      in enumerate(sizes)], numpy.int64)))
        return self.emit("Reshape", x, self.shape(sizes))

    # ---- equations ----

    def function(self, jaxpr: Any, constants: list[Any], inputs: list[str]) -> list[str]:
        """The results of a traced function."""
        known: dict[Any, str] = dict(zip(jaxpr.invars, inputs))
        for variable, value in zip(jaxpr.constvars, constants):
            known[variable] = value if isinstance(value, str) else self.constant(value)

        def name_of(x: Any) -> str:
            if hasattr(x, "val"):
                return self.constant(numpy.asarray(x.val, x.aval.dtype))
            return known[x]

        for equation in jaxpr.eqns:
            given = [name_of(x) for x in equation.invars]
            for variable, made in zip(equation.outvars, self.equation(equation, given)):
                known[variable] = made
        return [name_of(x) for x in jaxpr.outvars]

    def equation(self, equation: Any, given: list[str]) -> list[str]:
        name, params = equation.primitive.name, equation.params
        sizes = equation.outvars[0].aval.shape
        if name in _PLAIN:
            return [self.emit(_PLAIN[name], *given)]
        if name in _REDUCTIONS:
            axes = self.constant(numpy.array(params["axes"], numpy.int64))
            return [self.emit(_REDUCTIONS[name], given[0], axes, keepdims=0)]
        if name in _CALLS:
            inner = params.get("jaxpr") or params.get("call_jaxpr") or params.get("fun_jaxpr")
            closed = hasattr(inner, "jaxpr")
            return self.function(inner.jaxpr if closed else inner, list(inner.consts) if closed else [], given)
        rule = getattr(self, "do_" + name.replace("-", "_"), None)
        if rule is None:
            self.unknown[f"the primitive '{name}'"] = None
            return [given[0] if given else "" for _ in equation.outvars]
        return [rule(equation, params, sizes, *given)]

    def one_like(self, equation: Any) -> str:
        return self.constant(numpy.ones((), equation.outvars[0].aval.dtype))

    def do_dim_as_value(self, equation: Any, params: Any, sizes: Any) -> str:
        import onnx.helper
        number = self.emit("Squeeze", self.size(params["dim"]))
        return self.emit("Cast", number, to=onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(equation.outvars[0].aval.dtype)))

    def do_rsqrt(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Reciprocal", self.emit("Sqrt", x))

    def do_square(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Mul", x, x)

    def do_integer_pow(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Pow", x, self.constant(numpy.asarray(params["y"], equation.outvars[0].aval.dtype)))

    def do_log1p(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Log", self.emit("Add", x, self.one_like(equation)))

    def do_expm1(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Sub", self.emit("Exp", x), self.one_like(equation))

    def do_erfc(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Sub", self.one_like(equation), self.emit("Erf", x))

    def do_ne(self, equation: Any, params: Any, sizes: Any, x: str, y: str) -> str:
        return self.emit("Not", self.emit("Equal", x, y))

    def do_select_n(self, equation: Any, params: Any, sizes: Any, which: str, *cases: str) -> str:
        if len(cases) != 2 or equation.invars[0].aval.dtype != bool:
            self.unknown["the primitive 'select_n' of more than two cases"] = None
        return self.emit("Where", which, cases[-1], cases[0])

    def do_clamp(self, equation: Any, params: Any, sizes: Any, low: str, x: str, high: str) -> str:
        return self.emit("Min", self.emit("Max", x, low), high)

    def do_convert_element_type(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        import onnx.helper
        return self.emit("Cast", x, to=onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(params["new_dtype"])))

    def do_reshape(self, equation: Any, params: Any, sizes: Any, x: str, *more: str) -> str:
        return self.reshape(x, sizes)

    def do_squeeze(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Squeeze", x, self.constant(numpy.array(params["dimensions"], numpy.int64)))

    def do_expand_dims(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Unsqueeze", x, self.constant(numpy.array(params["dimensions"], numpy.int64)))

    def do_transpose(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.emit("Transpose", x, perm=list(params["permutation"]))

    def do_concatenate(self, equation: Any, params: Any, sizes: Any, *given: str) -> str:
        return self.emit("Concat", *given, axis=params["dimension"])

    def do_broadcast_in_dim(self, equation: Any, params: Any, sizes: Any, x: str, *more: str) -> str:
        held = equation.invars[0].aval.shape
        kept = list(params["broadcast_dimensions"])
        wide = [1] * len(sizes)
        for axis, place in enumerate(kept):
            wide[place] = held[axis]
        added = [axis for axis in range(len(sizes)) if axis not in kept]
        made = self.emit("Unsqueeze", x, self.constant(numpy.array(added, numpy.int64))) if added else x
        return made if list(sizes) == wide else self.emit("Expand", made, self.shape(sizes))

    def do_slice(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        held = equation.invars[0].aval.shape
        cut = [axis for axis in range(len(held)) if not (isinstance(params["start_indices"][axis], int)
               and params["start_indices"][axis] == 0 and params["limit_indices"][axis] == held[axis])
               or (params["strides"] and params["strides"][axis] != 1)]
        lists = [[values[axis] if values else 1 for axis in cut] for values in
                 (params["start_indices"], params["limit_indices"], params["strides"])]
        if not all(isinstance(value, int) for values in lists for value in values):
            self.unknown["a slice whose ends are computed of the batch"] = None
            return x
        first, last, steps = (self.constant(numpy.array(values, numpy.int64)) for values in lists)
        return self.emit("Slice", x, first, last, self.constant(numpy.array(cut, numpy.int64)), steps) if cut else x

    def do_iota(self, equation: Any, params: Any, sizes: Any, *more: str) -> str:
        if not all(isinstance(size, int) for size in sizes):
            self.unknown["the primitive 'iota' over the batch"] = None
            return ""
        along = numpy.arange(sizes[params["dimension"]], dtype=params["dtype"])
        return self.constant(numpy.broadcast_to(along.reshape([-1 if axis == params["dimension"] else 1 for axis
                                                               in range(len(sizes))]), sizes).copy())

    def do_argmax(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        import onnx.helper
        found = self.emit("ArgMax", x, axis=params["axes"][0], keepdims=0)
        return self.emit("Cast", found, to=onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(params["index_dtype"])))

    def do_dot_general(self, equation: Any, params: Any, sizes: Any, x: str, y: str) -> str:
        (cut_x, cut_y), (same_x, same_y) = params["dimension_numbers"]
        ranks = [len(variable.aval.shape) for variable in equation.invars]
        if not same_x and ranks[1] == 2 and tuple(cut_x) == (ranks[0] - 1,) and tuple(cut_y) == (0,):
            return self.emit("MatMul", x, y)
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        left = [next(letters) for _ in range(ranks[0])]
        right = [next(letters) for _ in range(ranks[1])]
        for a, b in [*zip(cut_x, cut_y), *zip(same_x, same_y)]:
            right[b] = left[a]
        out = [left[a] for a in same_x] + [left[a] for a in range(ranks[0]) if a not in cut_x and a not in same_x] \
            + [right[b] for b in range(ranks[1]) if b not in cut_y and b not in same_y]
        return self.emit("Einsum", x, y, equation=f"{''.join(left)},{''.join(right)}->{''.join(out)}")

    def do_conv_general_dilated(self, equation: Any, params: Any, sizes: Any, x: str, w: str) -> str:
        numbers = params["dimension_numbers"]
        if any(size != 1 for size in params["lhs_dilation"]) or params["batch_group_count"] != 1:
            self.unknown["a transposed convolution"] = None
        made = self.emit("Conv", self.emit("Transpose", x, perm=list(numbers.lhs_spec)),
                         self.emit("Transpose", w, perm=list(numbers.rhs_spec)), strides=list(params["window_strides"]),
                         dilations=list(params["rhs_dilation"]), group=params["feature_group_count"],
                         pads=[low for low, _ in params["padding"]] + [high for _, high in params["padding"]])
        return self.emit("Transpose", made, perm=[int(axis) for axis in numpy.argsort(numbers.out_spec)])

    def pool(self, operator: str, params: Any, x: str, **more: Any) -> str:
        """A window over inner axes, which ONNX has last."""
        window, rank = params["window_dimensions"], len(params["window_dimensions"])
        over = [axis for axis in range(1, rank) if window[axis] != 1 or params["window_strides"][axis] != 1]
        if not over and not any(low or high for low, high in params["padding"]):
            return x
        if window[0] != 1 or not over or any(size != 1 for size in (*params["base_dilation"], *params["window_dilation"])):
            self.unknown["a window over the batch, or with dilation"] = None
            return x
        if len(over) == rank - 1:
            self.unknown["a window over all axes"] = None
            return x
        perm = [axis for axis in range(rank) if axis not in over] + over
        pads = [params["padding"][axis] for axis in over]
        inner = self.emit("Transpose", x, perm=perm)
        made = self.emit(operator, inner, kernel_shape=[window[axis] for axis in over],
                         strides=[params["window_strides"][axis] for axis in over],
                         pads=[low for low, _ in pads] + [high for _, high in pads], **more)
        return self.emit("Transpose", made, perm=[int(axis) for axis in numpy.argsort(perm)])

    def do_reduce_window_max(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        return self.pool("MaxPool", params, x)

    def do_reduce_window_sum(self, equation: Any, params: Any, sizes: Any, x: str) -> str:
        made = self.pool("AveragePool", params, x, count_include_pad=1)
        return self.emit("Mul", made, self.constant(numpy.asarray(numpy.prod(params["window_dimensions"]),
                                                                  equation.outvars[0].aval.dtype)))

    def do_gather(self, equation: Any, params: Any, sizes: Any, x: str, places: str) -> str:
        """Rows of a table."""
        numbers, held = params["dimension_numbers"], equation.invars[0].aval.shape
        rank, wanted = len(held), len(sizes)
        if (tuple(numbers.collapsed_slice_dims) != (0,) or tuple(numbers.start_index_map) != (0,)
                or tuple(params["slice_sizes"][1:]) != tuple(held[1:])
                or tuple(numbers.offset_dims) != tuple(range(wanted - rank + 1, wanted))
                or tuple(numbers.operand_batching_dims)):
            self.unknown["a gather of more than rows of a table"] = None
            return x
        return self.emit("Gather", x, self.emit("Squeeze", places, self.constant(numpy.array([-1], numpy.int64))), axis=0)


# ---- models ----


def _key(key: Any) -> Any:
    """What an entry of a path is called: that of a dict, a list, or an attribute."""
    return next((getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)), key)


def _named(tree: Any) -> list[tuple[str, Any]]:
    """Leaves with names as flax has them: keys, with '/' between them."""
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [("/".join(str(_key(key)) for key in path), leaf)
            for path, leaf in found]


def _model(function: Callable[..., Any], held: list[tuple[str, Any]], structure: Any, inputs: dict[str, Any], output: str,
           what: str) -> bytes:
    """A function of parameters and inputs as a model; the first axis of all inputs is open."""
    import onnx.helper
    import onnx.numpy_helper
    batch, = jax.export.symbolic_shape(BATCH)
    opened = [jax.ShapeDtypeStruct((batch, *x.shape[1:]) if x.ndim else (), x.dtype) for x in inputs.values()]

    def flat(leaves: Any, *given: Any) -> Any:
        return function(jax.tree_util.tree_unflatten(structure, leaves), *given)

    try:
        traced = jax.make_jaxpr(flat)([leaf for _, leaf in held], *opened)
    except Exception as error:  # of many classes
        raise _cameo.UnsupportedError(f"JAX cannot trace {what} with an open batch: {str(error).splitlines()[0]}") from error
    writer = _Writer(next(iter(inputs)))
    results = writer.function(traced.jaxpr, list(traced.consts), [name for name, _ in held] + list(inputs))
    if len(results) != 1:
        writer.unknown[f"{len(results)} results"] = None
    if writer.unknown:
        raise _cameo.UnsupportedError(f"{what} cannot be written as ONNX: it has " + ", ".join(writer.unknown))
    writer.nodes.append(onnx.helper.make_node("Identity", results[:1], [output]))

    def info(name: str, aval: Any) -> Any:
        return onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(aval.dtype)),
            [size if isinstance(size, int) else str(size) for size in aval.shape])

    graph = onnx.helper.make_graph(writer.nodes, "network", [info(name, x) for name, x in zip(inputs, opened)],
                                   [info(output, traced.out_avals[0])],
                                   [onnx.numpy_helper.from_array(numpy.asarray(leaf), name) for name, leaf in held])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=9)
    return bytes(model.SerializeToString())


def _twice(fed: dict[str, Any]) -> dict[str, Any]:
    """A batch of twice the size: what became a constant is noticed."""
    return {name: numpy.concatenate([x, x]) if x.ndim else x for name, x in fed.items()}


def _agrees(got: Any, wanted: Any) -> bool:
    wanted = numpy.asarray(wanted, numpy.float64)
    return got.shape == wanted.shape and numpy.allclose(got, wanted, 1e-2, 1e-3 * abs(wanted).max(initial=0), equal_nan=True)


def export_training(apply: Callable[..., Any], params: Any, inputs: Any, loss: Any, opt_state: Any = None,
                    path: str | os.PathLike[str] | None = None, *, settings: Mapping[str, Any] | None = None, step: int = 0,
                    target: str = "target", example_target: Any = None, class_axis: int = -1, clip_norm: float | None = None,
                    input_names: list[str] | None = None, partial: bool = False, check: bool = True) -> Model:
    """A training of JAX as a model with training info, which `cameo train` goes on with; written to path if one is given.

    apply(params, *inputs) gives the prediction; inputs are examples, an array or a list of them, whose first axis is open. loss
    is the name of one of the library's losses, or a function of prediction and target, which is exported as a graph and needs
    example_target. opt_state is the state of an optax optimizer. optax stores no settings: settings has them as
    Model.import_checkpoint takes them, {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.01, ..}. step is how many updates
    were done, target what the labels are called, class_axis the axis over classes; clip_norm is that of
    optax.clip_by_global_norm. With check the results for the example are compared.
    """
    for package in ("onnx", "flax"):
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"cameo.jax.export_training needs the package {package}, which is not installed for this "
                                      f"Python: pip install {package}", name=package)
    from flax import serialization
    given = [numpy.asarray(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    names = input_names or (["x"] if len(given) == 1 else [f"x{number}" for number in range(len(given))])
    fed = dict(zip(names, given))
    held = [("params/" + name, leaf) for name, leaf in _named(params)]
    structure = jax.tree_util.tree_structure(params)
    said = dict(settings or {})
    if clip_norm is not None:
        said.setdefault("clip_norm", clip_norm)
    with tempfile.TemporaryDirectory() as folder:
        made = load(_model(apply, held, structure, fed, "prediction", "the network"))
        prediction = numpy.asarray(apply(params, *given))
        if check and not _agrees(made.run(None, _twice(fed))["prediction"], apply(params, *_twice(fed).values())):
            raise _cameo.UnsupportedError("the exported network computes something else of the example than JAX does; "
                                          "check=False lets it be")
        options: dict[str, Any] = {"loss": loss, "target": target, "class_axis": class_axis}
        if not isinstance(loss, str):
            options = {"loss": _loss_file(loss, prediction, example_target, os.path.join(folder, "loss.onnx")),
                       "target": target}
        checkpoint = os.path.join(folder, "checkpoint.msgpack")
        saved = {"params": params, "step": step, **({} if opt_state is None else {"opt_state": opt_state})}
        _cameo.write_file(checkpoint, serialization.to_bytes(saved))
        try:
            import_checkpoint(made, checkpoint, False, partial, None, said or None, options)
        except _cameo.Error as error:
            lacking = [f"not known: {sentence}" for sentence in Checkpoint(checkpoint).missing]
            raise type(error)("\n  ".join([str(error), *lacking])) from None
        report = made.report
        if path is None:
            return Model(load(made.to_bytes())._inside, report)
        made.save(path)
        return Model(load(path)._inside, report)


def _loss_file(loss: Any, prediction: Any, target: Any, path: str) -> str:
    """A loss as a model of two inputs."""
    if not callable(loss) or target is None:
        raise _cameo.ArgumentError("loss is not the name of one of the library's losses: give a function of prediction and "
                                   "target, and example_target, an array such as it takes")
    target = numpy.asarray(target)
    structure = jax.tree_util.tree_structure([])
    fed = {"prediction": prediction, "target": target}
    data = _model(lambda _, *given: loss(*given), [], structure, fed, "loss", "the loss")
    fed = _twice(fed)
    if not _agrees(load(data).run(None, fed)["loss"], loss(*fed.values())):
        raise _cameo.UnsupportedError("the exported loss computes something else of the example than JAX does")
    _cameo.write_file(path, data)
    return path


def to_function(model: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The network as apply(variables, inputs, training=False, rng=None), and its variables: a nested dict with flax's
    collections; those of "params" are trained. apply returns what the model does; with training=True also the running
    statistics as they are then: outputs, {"batch_stats": ..}. inputs is a list in the order of the model's inputs.
    A model with elements of 64 bits sets jax_enable_x64. The code is that of `cameo export --to jax-code`."""
    apply, variables = take(model, "jax-code", lambda module, _: (module.apply, module.init()))
    return apply, variables
