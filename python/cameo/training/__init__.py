# SPDX-License-Identifier: Apache-2.0
"""Training with the verbs of ONNX Runtime Training 1.19: cameo.training.api and cameo.training.artifacts.

A script that says `from onnxruntime.training import api, artifacts` may say `from cameo.training import api, artifacts`.
"""

from . import api, artifacts

__all__ = ["api", "artifacts"]
