"""Cases of test_onnx_ops: name, function, inputs for a size b. Importing a family adds its cases."""

from onnx_cases import (  # noqa: F401
    complex_numbers,
    convolutions,
    elementwise,
    factories,
    indexing,
    matrices,
    networks,
    reductions,
    shapes,
)
from onnx_cases.support import CASES

__all__ = ["CASES"]
