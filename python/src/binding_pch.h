// The precompiled header of the binding: pybind11 with torch's casters, and libtorch's headers that everything needs.
#pragma once

#include <ATen/ATen.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/utils/pybind.h>
