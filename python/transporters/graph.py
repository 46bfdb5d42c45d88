"""What fixes and translations work with: the graph between tracing and the target, and ONNX models.

The objects belong to the call that they are given to: using one later raises ExportError.
"""

from ._C import Expr, GraphNode, GraphProgram, GraphValue, Lowering, OnnxGraph, OnnxModel, OnnxNode, OnnxValue

__all__ = [
    "Expr",
    "GraphNode",
    "GraphProgram",
    "GraphValue",
    "Lowering",
    "OnnxGraph",
    "OnnxModel",
    "OnnxNode",
    "OnnxValue",
]
