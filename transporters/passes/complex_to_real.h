// Complex numbers as pairs of real tensors, for targets without complex arithmetic.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Computes with real and imaginary parts in place of complex tensors: a complex value becomes two real ones, and an op
// on it the formula for its parts. What is known to be real (a real tensor converted, or a real operand) has no
// imaginary part to compute with. Complex parameters, buffers and constants are seen as two real ones, views of the
// same bytes. Ops without such a formula stay complex (the Fourier transforms _fft_c2c, _fft_r2c, _fft_c2r and what the
// table lacks), between view_as_complex and view_as_real; so do complex inputs and outputs of the program. Tested in
// tests/passes/test_complex_to_real.cpp.
bool complex_to_real(Program& program);

}  // namespace transporters
