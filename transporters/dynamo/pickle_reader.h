// Reads what torch.save wrote as far as it is plain data: containers, strings, numbers, tensors, and objects as a class
// name with their attributes. Nothing is imported or called, so a hostile file can do no more than fail to be read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "transporters/graph/tensor_data.h"

namespace transporters::dynamo {

struct PickleValue;
using PickleList = std::vector<PickleValue>;
using PickleDict = std::vector<std::pair<PickleValue, PickleValue>>;

// A class or function by module and name.
struct PickleGlobal {
  std::string module;
  std::string name;
};
// An instance of a class that is not known here; `state` is what its attributes were set from.
struct PickleObject {
  PickleGlobal type;
  std::shared_ptr<PickleValue> state;
};

struct PickleValue {
  // Containers are shared, as Python's are.
  std::variant<std::monostate, bool, int64_t, double, std::string, TensorData, PickleGlobal,
               std::shared_ptr<PickleList>, std::shared_ptr<PickleDict>, std::shared_ptr<PickleObject>>
      value;
  bool is_tuple = false;  // of a PickleList

  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&value);
  }
  const PickleList* list() const;
  const PickleDict* dict() const;
  const PickleObject* object() const;
  // Checked reads; throw Error, naming `what` was wanted.
  const TensorData& tensor(const std::string& what) const;
  std::vector<std::pair<std::string, PickleValue>> items(const std::string& what) const;  // of a dict with string keys
};

// The value in a file of torch.save (the zip format). Tensors refer to `bytes`, which `owner` keeps alive. Throws Error
// for damaged files and for what needs more than plain data.
PickleValue read_pickle_archive(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                const std::string& name);

// Points `data`, whose type, sizes and strides are set, at its place in a storage's bytes, `offset` elements from their
// start; bytes that are not aligned for the type are copied. Returns what is wrong if the tensor does not fit.
std::optional<std::string> place_in_storage(TensorData& data, std::string_view storage,
                                            const std::shared_ptr<const void>& owner, int64_t offset);

}  // namespace transporters::dynamo
