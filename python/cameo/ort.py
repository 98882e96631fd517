# ONNX Runtime's calls on Cameo's sessions.
# SPDX-License-Identifier: Apache-2.0
"""A script that says `import onnxruntime as ort` may say `import cameo as ort`: InferenceSession and what goes with it.

Options that only say how a result is reached are taken and change nothing; those that would change results and that
Cameo does not have are told by a warning.
"""

from __future__ import annotations

import copy
import datetime
import enum
import json
import os
import threading
import time
import typing
import warnings

from . import _cameo
from ._arrays import NAMES, parse_type
from ._binding import IOBinding, OrtDevice, OrtValue
from ._check import Fixed, mapping
from ._model import Model, load
from ._session import Session

PROVIDERS = ["CPUExecutionProvider"]

_seed = 0


class GraphOptimizationLevel(enum.IntEnum):
    """How much of a graph may be rewritten. Cameo's passes do not change what is computed; all levels are one."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether nodes may run side by side."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """In which order nodes run."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


# Entries of add_session_config_entry that say how, not what.
_HARMLESS = ("session.intra_op", "session.inter_op", "session.disable_prepacking", "session.use_env_allocators",
             "session.dynamic_block_base", "session.force_spinning_stop", "session.load_model_format",
             "session.save_model_format", "session.use_device_allocator_for_initializers", "memory.", "session.use_ort",
             "session.disable_cpu_ep_fallback", "session.debug", "session.optimized_model_external_initializers",
             "session.minimal_build_optimizations", "session.use_memory_efficient", "optimization.")


class SessionOptions:
    """What a session is made with.

    >>> import cameo as ort
    >>> options = ort.SessionOptions()
    >>> options.intra_op_num_threads = 2
    """

    __slots__ = ("intra_op_num_threads", "inter_op_num_threads", "graph_optimization_level", "execution_mode",
                 "execution_order", "enable_profiling", "profile_file_prefix", "log_severity_level", "log_verbosity_level",
                 "logid", "optimized_model_filepath", "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse",
                 "use_deterministic_compute", "use_per_session_threads", "_entries", "_sizes", "_initializers")

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """An option by name. Those that would change results are told by a warning: Cameo has none of them."""
        if not key.startswith(_HARMLESS):
            warnings.warn(f"session option '{key}' is not known and has no effect", stacklevel=2)
        self._entries[key] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """What add_session_config_entry was given."""
        if key not in self._entries:
            raise _cameo.NotFoundError(f"session option '{key}' was not added")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Gives dimensions of this name a size."""
        self._sizes[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Not supported: Cameo does not read denotations."""
        raise _cameo.UnsupportedError(f"dimensions by denotation ('{denotation}') are not supported; "
                                      "use add_free_dimension_override_by_name")

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Values for an initializer of the model, in place of those it has."""
        self._initializers[name] = value

    def add_external_initializers(self, names: typing.Sequence[str], values: typing.Sequence[OrtValue]) -> None:
        """The same of several."""
        self._initializers.update(zip(names, values))

    def register_custom_ops_library(self, path: str) -> None:
        """Not supported: such libraries are compiled for ONNX Runtime."""
        raise _cameo.UnsupportedError(f"'{path}': operator libraries that are compiled for ONNX Runtime cannot be loaded; "
                                      "operators are written in Python with cameo.operators, or in C with cameo.h")


class RunOptions:
    """What one run is made with; setting terminate, from any thread, stops it.

    >>> import cameo as ort
    >>> options = ort.RunOptions()
    >>> options.terminate = True
    """

    __slots__ = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "_entries",
                 "_cancel", "_terminate")

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}
        self._cancel = _cameo.Cancel()
        self._terminate = False

    @property
    def terminate(self) -> bool:
        """Whether runs with these options are to end."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if self._terminate:
            self._cancel.set()
        else:
            self._cancel.clear()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """An option by name; it has no effect, since all that ONNX Runtime has are about its own memory and devices."""
        self._entries[key] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """What add_run_config_entry was given."""
        if key not in self._entries:
            raise _cameo.NotFoundError(f"run option '{key}' was not added")
        return self._entries[key]


def _type_text(declared: typing.Any) -> str:
    """A type as ONNX Runtime writes it."""
    if declared is None:
        return "undefined"
    if declared[0] == "tensor":
        return f"tensor({NAMES[declared[1]]})"
    if declared[0] == "map":
        return f"map({NAMES[declared[1]]},{_type_text(declared[2])})"
    return f"{declared[0]}({_type_text(declared[1])})"


class NodeArg:
    """An input or output: name, shape (numbers, names, None) and type, as in "tensor(float)"."""

    __slots__ = ("name", "type", "shape")

    def __init__(self, row: tuple[typing.Any, ...]) -> None:
        self.name: str = row[0]
        self.type: str = _type_text(parse_type(row[1]))
        self.shape: list[int | str | None] = list(row[3] or ())

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What a model says of itself."""

    __slots__ = ("producer_name", "graph_name", "domain", "description", "graph_description", "version",
                 "custom_metadata_map")

    def __init__(self, model: Model) -> None:
        summary = model.summary
        self.producer_name: str = summary.producer_name
        self.graph_name: str = summary.graph
        self.domain: str = summary.domain
        self.description: str = summary.doc_string
        self.graph_description: str = summary.graph_doc_string
        self.version: int = summary.model_version
        self.custom_metadata_map: dict[str, str] = dict(model.metadata)


class InferenceSession(Fixed):
    """A model made ready to run, with the calls of ONNX Runtime's class of this name.

    >>> import cameo as ort, numpy
    >>> model = ort.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N] x) => (float[N] y) <float w = {2}> { y = Mul(x, w) }''')
    >>> session = ort.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    >>> session.get_inputs()[0].type, session.get_inputs()[0].shape
    ('tensor(float)', ['N'])
    >>> session.run(None, {"x": numpy.array([1, 2, 3], numpy.float32)})
    [array([2., 4., 6.], dtype=float32)]
    """

    def __init__(self, path_or_bytes: typing.Any, sess_options: SessionOptions | None = None,
                 providers: typing.Sequence[typing.Any] | None = None,
                 provider_options: typing.Sequence[dict[str, typing.Any]] | None = None,
                 disabled_optimizers: typing.Sequence[str] | None = None, **more: typing.Any) -> None:
        options = sess_options or SessionOptions()
        for provider in providers or ():
            name = provider if isinstance(provider, str) else provider[0]
            if name not in PROVIDERS:
                warnings.warn(f"provider '{name}' is not available; the model runs on the CPU", stacklevel=2)
        for name in more:
            warnings.warn(f"session option '{name}' is not known and has no effect", stacklevel=2)
        model = load(path_or_bytes)
        if options._sizes:
            model = model.set_shapes(options._sizes)
        if options._initializers:
            model = copy.copy(model)
            model.initializers.update({name: value._array for name, value in options._initializers.items()})
        if options.optimized_model_filepath:
            model.optimize().save(options.optimized_model_filepath)
        self._options = options
        self._began = time.perf_counter_ns()
        self._session = Session(model, threads=options.intra_op_num_threads, seed=_seed)
        self._inside = self._session._inside
        self._run: typing.Callable[..., list[typing.Any]] = self._inside.run
        self._events: list[dict[str, typing.Any]] | None = [] if options.enable_profiling else None
        self._note("Session", "session_initialization", self._began, time.perf_counter_ns() - self._began, {})

    def __repr__(self) -> str:
        return f"<cameo.InferenceSession {', '.join(map(repr, [*self.get_inputs(), *self.get_outputs()]))}>"

    # ---- running ----

    def run(self, output_names: typing.Sequence[str] | None, input_feed: dict[str, typing.Any],
            run_options: RunOptions | None = None) -> list[typing.Any]:
        """Runs once: names of outputs (None: all) and a dict of inputs; a list of results."""
        if run_options is None and self._events is None:
            return self._run(output_names or None, input_feed)
        return self._fetch(output_names or None, input_feed, run_options)

    def _fetch(self, names: typing.Sequence[str] | None, feeds: dict[str, typing.Any], options: RunOptions | None,
               rooms: dict[str, typing.Any] | None = None) -> list[typing.Any]:
        cancel = options._cancel if options is not None else None
        rows: list[dict[str, typing.Any]] | None = None if self._events is None else []
        began = time.perf_counter_ns()
        arguments = (names, feeds, cancel, rows)
        results = self._run(*arguments) if rooms is None else self._run(*arguments, rooms)
        if rows is not None:
            self._note_run(rows, began)
        return results

    def run_async(self, output_names: typing.Sequence[str] | None, input_feed: dict[str, typing.Any],
                  callback: typing.Callable[[list[typing.Any], typing.Any, str], None], user_data: typing.Any,
                  run_options: RunOptions | None = None) -> None:
        """Runs on a thread of its own, which then calls callback(results, user_data, error)."""
        mapping("input_feed", input_feed)

        def work() -> None:
            results: list[typing.Any] = []
            error = ""
            try:
                results = self.run(output_names, input_feed, run_options)
            except Exception as caught:  # whatever it is, somebody waits for the callback
                error = str(caught) or type(caught).__name__
            callback(results, user_data, error)
        threading.Thread(target=work).start()

    def run_with_ort_values(self, output_names: typing.Sequence[str] | None, input_dict_ort_values: dict[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """The same with OrtValues in and out."""
        feeds = {name: value._array for name, value in input_dict_ort_values.items()}
        names = list(output_names) if output_names else [row[0] for row in self._inside.outputs()]
        types = {row[0]: row[1] for row in self._inside.outputs()}
        return [OrtValue(result, types.get(name)) for name, result in zip(names, self.run(names, feeds, run_options))]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that stay bound from one run to the next."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs once on what is bound."""
        iobinding._filled(self._fetch(None, iobinding._feeds(), run_options, iobinding._rooms()))

    # ---- what the session is ----

    def get_inputs(self) -> list[NodeArg]:
        """What must be fed."""
        return [NodeArg(row) for row in self._inside.inputs() if not row[5]]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that have a value where none is fed."""
        return [NodeArg(row) for row in self._inside.inputs() if row[5]]

    def get_outputs(self) -> list[NodeArg]:
        """What comes out."""
        return [NodeArg(row) for row in self._inside.outputs()]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return ModelMetadata(self._session.model)

    def get_session_options(self) -> SessionOptions:
        """What the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Who computes: the CPU alone."""
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """There are none."""
        return {name: {} for name in PROVIDERS}

    def set_providers(self, providers: typing.Sequence[typing.Any] | None = None,
                      provider_options: typing.Sequence[dict[str, typing.Any]] | None = None) -> None:
        """Warns of those that are not available."""
        for provider in providers or ():
            name = provider if isinstance(provider, str) else provider[0]
            if name not in PROVIDERS:
                warnings.warn(f"provider '{name}' is not available; the model runs on the CPU", stacklevel=2)

    def enable_fallback(self) -> None:
        """Nothing to fall back to: the CPU is all there is."""

    def disable_fallback(self) -> None:
        """Nothing to fall back to: the CPU is all there is."""

    # ---- profiles ----

    def _note(self, category: str, name: str, began: int, took: int, args: dict[str, typing.Any]) -> None:
        if self._events is not None:
            self._events.append({"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": took // 1000,
                                 "ts": (began - self._began) // 1000, "ph": "X", "name": name, "args": args})

    def _note_run(self, rows: list[dict[str, typing.Any]], began: int) -> None:
        for row in rows:
            args = {"op_name": row["op"], "provider": PROVIDERS[0], "node_index": str(row["id"]), "kernel": row["kernel"],
                    "flops": row["flops"], "live_bytes": row["live_bytes"]}
            self._note("Node", f"{row['node'] or row['op']}_kernel_time", began + row["begin_ns"],
                       row["end_ns"] - row["begin_ns"], args)
        self._note("Session", "model_run", began, time.perf_counter_ns() - began, {})

    def end_profiling(self) -> str:
        """Writes what was profiled so far, in the JSON form of ONNX Runtime and of Chrome's tracing; the file's name."""
        if self._events is None:
            return ""
        path = f"{self._options.profile_file_prefix}_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S-%f}.json"
        text = "[\n" + ",\n".join(json.dumps(event) for event in self._events) + "\n]\n"
        _cameo.write_file(path, text.encode())
        self._events = None
        return path

    def get_profiling_start_time_ns(self) -> int:
        """When the profile's time 0 was, by the monotonic clock."""
        return self._began


def get_available_providers() -> list[str]:
    """Who can compute: the CPU alone."""
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    """The same."""
    return list(PROVIDERS)


def get_device() -> str:
    """What computes."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Taken and not needed: Cameo prints nothing."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Taken and not needed: Cameo prints nothing."""


def set_seed(seed: int) -> None:
    """The seed of random operators that bring none, for sessions that are made from now on."""
    global _seed
    _seed = int(seed)


def get_version_string() -> str:
    """The version of Cameo."""
    return str(_cameo.version())


def get_build_info() -> str:
    """Who computes, and in which version."""
    return f"Cameo {_cameo.version()}"


def enable_telemetry_events() -> None:
    """Taken and not needed: Cameo sends nothing."""


def disable_telemetry_events() -> None:
    """Taken and not needed: Cameo sends nothing."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True,
                 directory: str | None = None) -> None:
    """Taken and not needed: Cameo runs on the CPU."""


def has_collective_ops() -> bool:
    """Whether several processes can compute together: no."""
    return False


__all__ = ["InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "OrtDevice", "IOBinding", "NodeArg",
           "ModelMetadata", "GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "get_available_providers",
           "get_all_providers", "get_device", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
           "get_version_string", "get_build_info", "enable_telemetry_events", "disable_telemetry_events",
           "preload_dlls", "has_collective_ops"]
