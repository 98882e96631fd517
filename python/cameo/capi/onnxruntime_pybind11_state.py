# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's names for what Cameo raises."""

from .._cameo import (ArgumentError as InvalidArgument, Error as EPFail, Error as Fail, Error as RuntimeException,
                      ModelError as InvalidGraph, ModelError as InvalidProtobuf, NotFoundError as NoModel,
                      NotFoundError as NoSuchFile, NotFoundError as NotFound, UnsupportedError as NotImplemented)

__all__ = ["InvalidArgument", "EPFail", "Fail", "RuntimeException", "InvalidGraph", "InvalidProtobuf", "NoModel",
           "NoSuchFile", "NotFound", "NotImplemented"]
