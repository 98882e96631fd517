"""What the tests of generated code must know of each framework: how its values come of NumPy's and back."""
# SPDX-License-Identifier: Apache-2.0
import os

import numpy as np

WIDER = {
    "uint16": "int32", "uint32": "int64", "uint64": "int64", "uint4": "uint8", "int4": "int8", "uint2": "uint8",
    "int2": "int8", "float4_e2m1fn": "float32", "float8_e8m0fnu": "float32", "float6_e2m3fn": "float32",
    "float6_e3m2fn": "float32",
}  # fmt: skip
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


class PyTorch:
    """Tensors of the module's types; types that PyTorch lacks are held in a wider one."""

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.widened = set()

    def tensor(self, array):
        torch, name = self.torch, array.dtype.name
        if array.dtype == object or array.dtype.kind in "US":
            return array.astype(object)
        if name in WIDER:
            self.widened.add(name)
            return torch.from_numpy(np.array(array).astype(WIDER[name]))
        if name == "bfloat16" or name in FLOAT8:
            return torch.from_numpy(array.astype(np.float32)).to(getattr(torch, name))
        return torch.from_numpy(np.array(array))

    def numpy(self, value, like):
        """The value as an array of the expected one's type; fails where its own type is another."""
        torch = self.torch
        if isinstance(value, np.ndarray):
            return value
        name = like.dtype.name
        held = WIDER.get(name, name)
        if str(value.dtype) != f"torch.{held}":
            raise AssertionError(f"a result is {value.dtype}, expected {held}")
        value = value.detach()
        if value.dtype == torch.bfloat16 or held in FLOAT8:
            value = value.float()
        return value.numpy()

    def begin(self):
        pass

    def run(self, module, inputs):
        model = module.load()
        with self.torch.no_grad():
            return model(*inputs)


class Jax:
    """Arrays; types that are held in a wider one as in PyTorch, but for unsigned ones, which JAX has."""

    def __init__(self):
        # Compiling takes longer than running; each operator rounds its results, as in ONNX.
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_allow_excess_precision=false")
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.runs = jax, jnp, 0
        self.wider = {n: w for n, w in WIDER.items() if n not in ("uint16", "uint32", "uint64")}
        self.widened = set()

    def tensor(self, array):
        if array.dtype == object or array.dtype.kind in "US":
            return array.astype(object)
        name = array.dtype.name
        if name in self.wider:
            self.widened.add(name)
            return self.jnp.asarray(np.array(array).astype(self.wider[name]))
        return self.jnp.asarray(np.array(array))

    def numpy(self, value, like):
        if getattr(value, "dtype", None) == object:
            return value
        held = self.wider.get(like.dtype.name, like.dtype.name)
        if value.dtype.name != held:
            raise AssertionError(f"a result is {value.dtype}, expected {held}")
        value = np.asarray(value)
        return value.astype(np.float32) if held == "bfloat16" or held in FLOAT8 else value

    def begin(self):
        self.runs += 1
        if self.runs % 100 == 0:
            self.jax.clear_caches()
        self.jax.config.update("jax_enable_x64", False)  # the next model says what it needs

    def run(self, module, inputs):
        """Compiled as a whole, unless the code says that it cannot be."""
        apply = module.apply if "eagerly" in module.apply.__doc__ else self.jax.jit(module.apply)
        return apply(module.init(), inputs)


FRAMEWORKS = {"pytorch-code": PyTorch, "jax-code": Jax}
