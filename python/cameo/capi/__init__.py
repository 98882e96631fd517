# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime keeps the names of its exceptions."""
