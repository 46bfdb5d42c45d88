"""Every family of ops: lowered to ONNX, run by ONNX Runtime, compared with torch, at sizes other than the traced one.

A case is a function and what makes its inputs for a size `b`; what changes with `b` is dynamic. It is lowered from
torch.export's graph as it is and from its core ATen decomposition."""

import onnx_cases
import pytest
from onnx_lowering import OTHERS, TRACED, Lowerer, check, check_file, export


@pytest.fixture(scope="module")
def lower(build_dir, tmp_path_factory):
    lowerer = Lowerer(build_dir / "tests" / "lower_onnx", tmp_path_factory.mktemp("onnx"))
    yield lowerer
    lowerer.close()


@pytest.mark.parametrize("case", onnx_cases.CASES, ids=lambda case: case.name)
def test_op(case, lower):
    program = export(case.function, case.inputs, case.is_static)
    core = program.run_decompositions()
    sizes = (TRACED,) if case.is_static else (TRACED, *OTHERS)
    for opset, level in ((20, program), (20, core), (18, program), (23, program), (24, program)):
        if opset < case.first_opset:
            continue
        path = lower(level, opset)
        check_file(path)
        for size in sizes:
            check(path, case.function, case.inputs(size), case.tolerance)
