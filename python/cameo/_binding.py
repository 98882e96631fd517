# Values and bindings as ONNX Runtime has them.
# SPDX-License-Identifier: Apache-2.0
"""cameo.OrtValue, cameo.IOBinding, cameo.OrtDevice."""

from __future__ import annotations

import ctypes
import typing

import numpy

from . import _cameo
from ._arrays import DTYPES, NAMES, number_of, parse_type
from ._check import Fixed

if typing.TYPE_CHECKING:
    from .ort import InferenceSession

DeviceName = typing.Union[str, "OrtDevice"]


class OrtDevice(Fixed):
    """Where memory is: the CPU."""

    def __init__(self, name: str = "cpu", index: int = 0) -> None:
        if str(name).lower() not in ("cpu", "0"):
            raise _cameo.UnsupportedError(f"device '{name}' is not supported: Cameo computes on the CPU")
        self._index = index

    @classmethod
    def make(cls, name: str, index: int = 0) -> OrtDevice:
        """A device by name."""
        return cls(name, index)

    def device_type(self) -> str:
        """Its name."""
        return "cpu"

    def device_id(self) -> int:
        """Its number."""
        return self._index


def _on_cpu(device: typing.Any) -> None:
    if not isinstance(device, OrtDevice):
        OrtDevice(device)


def _dtype(element_type: typing.Any) -> numpy.dtype[typing.Any]:
    """Of a NumPy type, or of ONNX's number."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        known = DTYPES[element_type] if 0 <= element_type < len(DTYPES) else None
        if known is None:
            raise _cameo.UnsupportedError(f"memory of element type {element_type} is not supported")
        return known
    dtype: numpy.dtype[typing.Any] = numpy.dtype(element_type)
    return dtype


def _at(pointer: int, shape: typing.Sequence[int], element_type: typing.Any) -> numpy.ndarray[typing.Any, typing.Any]:
    """The caller's memory as an array."""
    dtype = _dtype(element_type)
    count = 1
    for size in shape:
        if size < 0:
            raise _cameo.ArgumentError(f"a shape has the size {size}")
        count *= int(size)
    if not pointer and count:
        raise _cameo.ArgumentError("memory is bound by a pointer that is 0")
    if not count:
        return numpy.empty(tuple(shape), dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
    return numpy.ndarray(tuple(shape), dtype, memoryview(memory))


class OrtValue(Fixed):
    """A tensor, sequence, map or optional.

    >>> import cameo as ort, numpy
    >>> value = ort.OrtValue.ortvalue_from_numpy(numpy.zeros((2, 3), numpy.float32))
    >>> value.data_type(), value.shape()
    ('tensor(float)', [2, 3])
    """

    def __init__(self, value: typing.Any, declared: str | None = None) -> None:
        self._array = value
        self._declared = parse_type(declared) if declared else None

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: typing.Any, device_type: DeviceName = "cpu", device_id: int = 0) -> OrtValue:
        """Over the array's own memory, where it is dense."""
        _on_cpu(device_type)
        array = numpy.asarray(numpy_obj)
        if array.dtype.kind not in "OUST":
            array = array if array.flags.c_contiguous and array.dtype.isnative else numpy.array(
                array, dtype=array.dtype.newbyteorder("="), order="C")
        return cls(array)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: typing.Any, onnx_element_type: int) -> OrtValue:
        """Of a narrow type, whose bits the array holds."""
        array = numpy.asarray(data)
        return cls(array.view(_dtype(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: typing.Sequence[int], element_type: typing.Any = numpy.float32,
                                     device_type: DeviceName = "cpu", device_id: int = 0) -> OrtValue:
        """New memory."""
        _on_cpu(device_type)
        return cls(numpy.zeros(tuple(shape), _dtype(element_type)))

    @classmethod
    def from_dlpack(cls, data: typing.Any, is_bool_tensor: bool = False) -> OrtValue:
        """Over the memory of another library's tensor."""
        array = numpy.from_dlpack(data)
        return cls(array.view(numpy.bool_) if is_bool_tensor else array)

    def __dlpack__(self, *, stream: typing.Any = None, **options: typing.Any) -> typing.Any:
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _tensor(self) -> numpy.ndarray[typing.Any, typing.Any]:
        if not isinstance(self._array, numpy.ndarray):
            raise _cameo.ArgumentError("the value is not a tensor")
        return self._array

    def numpy(self) -> typing.Any:
        """The tensor as an array, over the same memory."""
        return self._tensor()

    def update_inplace(self, np_arr: typing.Any) -> None:
        """New numbers in the same memory."""
        array, new = self._tensor(), numpy.asarray(np_arr)
        if new.shape != array.shape or new.dtype != array.dtype:
            raise _cameo.ArgumentError(f"the value has {array.dtype} of shape {array.shape}, not {new.dtype} of {new.shape}")
        array[...] = new

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._tensor().ctypes.data)

    def shape(self) -> list[int]:
        """Sizes."""
        return list(self._tensor().shape)

    def element_type(self) -> int:
        """ONNX's number of the element type."""
        return number_of(self._tensor().dtype) or 0

    def data_type(self) -> str:
        """The type, as in "tensor(float)"."""
        from .ort import _type_text
        if isinstance(self._array, numpy.ndarray):
            return f"tensor({NAMES[self.element_type()]})"
        return _type_text(self._declared)

    def tensor_size_in_bytes(self) -> int:
        """How much memory it takes."""
        return int(self._tensor().nbytes)

    def device_name(self) -> str:
        """Where its memory is."""
        return "cpu"

    def has_value(self) -> bool:
        """False for an optional without content."""
        return self._array is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._array, numpy.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return isinstance(self._array, list)

    def is_sparse_tensor(self) -> bool:
        """Cameo gives none."""
        return False


class IOBinding(Fixed):
    """Inputs and outputs in memory of the caller's, from one run to the next. InferenceSession.io_binding makes one.

    >>> import cameo as ort, numpy
    >>> session = ort.InferenceSession(ort.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... double (float[N] x) => (float[N] y) { y = Add(x, x) }'''))
    >>> binding, x, y = session.io_binding(), numpy.ones(2, numpy.float32), numpy.empty(2, numpy.float32)
    >>> binding.bind_cpu_input("x", x)
    >>> binding.bind_output("y", "cpu", 0, numpy.float32, y.shape, y.ctypes.data)
    >>> session.run_with_iobinding(binding)
    >>> y
    array([2., 2.], dtype=float32)
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, typing.Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def _known(self, name: str, outputs: bool) -> str:
        inside = self._session._inside
        rows = inside.outputs() if outputs else inside.inputs()
        for row in rows:
            if row[0] == name:
                return typing.cast(str, row[1])
        raise _cameo.ArgumentError(f"there is no {'output' if outputs else 'input'} '{name}'; the model has " +
                                   ", ".join(f"'{row[0]}'" for row in rows))

    def bind_cpu_input(self, name: str, arr_on_cpu: typing.Any) -> None:
        """An array, which is read where it lies whenever the session runs."""
        self._known(name, False)
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: DeviceName, device_id: int, element_type: typing.Any,
                   shape: typing.Sequence[int], buffer_ptr: int) -> None:
        """Memory at an address, which must stay until it is no longer bound."""
        _on_cpu(device_type)
        self._known(name, False)
        self._inputs[name] = _at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """A value."""
        self._known(name, False)
        self._inputs[name] = ortvalue._array

    def bind_output(self, name: str, device_type: DeviceName = "cpu", device_id: int = 0, element_type: typing.Any = None,
                    shape: typing.Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Memory at an address, of exactly the result's type and shape; without one, the library finds memory."""
        _on_cpu(device_type)
        self._known(name, True)
        if buffer_ptr is None:
            self._outputs[name] = None
        elif element_type is None or shape is None:
            raise _cameo.ArgumentError(f"output '{name}': memory by address needs element_type and shape")
        else:
            self._outputs[name] = OrtValue(_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """The memory of a value."""
        self._known(name, True)
        self._outputs[name] = ortvalue

    def _feeds(self) -> dict[str, typing.Any]:
        return self._inputs

    def _rooms(self) -> dict[str, typing.Any]:
        return {name: None if value is None else value._tensor() for name, value in self._outputs.items()}

    def _filled(self, results: list[typing.Any]) -> None:
        self._results = [value if value is not None else OrtValue(result, self._known(name, True))
                         for (name, value), result in zip(self._outputs.items(), results)]

    def get_outputs(self) -> list[OrtValue]:
        """The results of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[typing.Any]:
        """The same as arrays, lists and dicts; copies of what lies in bound memory, which the next run writes to."""
        bound = [value is not None for value in self._outputs.values()]
        return [value._array.copy() if copied else value._array for value, copied in zip(self._results, bound)]

    def clear_binding_inputs(self) -> None:
        """No input is bound."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """No output is bound."""
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for on the CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for on the CPU."""
