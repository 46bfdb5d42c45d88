// Attributes and tensors of ONNX between Python and the model in memory.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "loans.h"
#include "transporters/onnx/model.h"

namespace transporters::python {

// bool, int, float, str, torch.dtype (as its ONNX number), torch.Tensor and lists of one kind. Throws Error naming the
// attribute for anything else.
onnx::AttributeValue to_attribute(pybind11::handle object, const std::string& name);
onnx::Attributes to_attributes(const pybind11::kwargs& given);
// A graph as a loan, a tensor as a torch.Tensor, None for what Python has no form of.
pybind11::object from_attribute(const onnx::AttributeValue& value, Loans& loans);
// A copy as a torch.Tensor; None for types that torch lacks.
pybind11::object from_tensor(const onnx::Tensor& tensor);

// Values by their loans, null for None. Throw Error for other objects.
onnx::Value* to_value(pybind11::handle object);
std::vector<onnx::Value*> to_values(const pybind11::sequence& objects);

}  // namespace transporters::python
