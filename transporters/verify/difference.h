// How far a tensor is from what it should be.
#pragma once

#include <ATen/core/Tensor.h>

namespace transporters {

struct Difference {
  double absolute = 0;
  double relative = 0;  // to the largest finite value of the expected tensor
};

// Infinite where sizes differ, or where one side alone is not a number.
Difference largest_difference(const at::Tensor& actual, const at::Tensor& expected);

// The largest relative difference that counts as equal for computation in this type.
double default_tolerance(at::ScalarType dtype);

}  // namespace transporters
