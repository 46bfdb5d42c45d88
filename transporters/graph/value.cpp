#include "transporters/graph/value.h"

#include "transporters/error.h"

namespace transporters {

const TensorType& Value::tensor() const {
  if (const auto* type = std::get_if<TensorType>(&type_)) return *type;
  throw InternalError("value %" + name_ + " is a number, not a tensor");
}

}  // namespace transporters
