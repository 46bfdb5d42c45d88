#include "transporters/graph/value.h"

#include <algorithm>

#include "transporters/error.h"

namespace transporters {

bool TensorType::is_contiguous() const {
  if (strides.empty()) return true;
  if (std::any_of(sizes.begin(), sizes.end(), [](const Expr& size) { return size.is(0); })) return true;
  Expr expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i].is(1)) continue;
    if (!(strides[i] == expected)) return false;
    expected = expected * sizes[i];
  }
  return true;
}

void Value::set_type(ValueType type) {
  type_ = std::move(type);
  if (auto* tensor = std::get_if<TensorType>(&type_); tensor != nullptr && tensor->is_contiguous())
    tensor->strides.clear();
}

const TensorType& Value::tensor() const {
  if (const auto* type = std::get_if<TensorType>(&type_)) return *type;
  throw InternalError("value %" + name_ + " is a number, not a tensor");
}

}  // namespace transporters
