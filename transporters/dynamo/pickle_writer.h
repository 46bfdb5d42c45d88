// Writes what torch.save writes: Python values and tensors in a zip file that torch.load reads (pickle protocol 2,
// storages as records of the zip). Written without libtorch, so that objects of Python classes can be described too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/tensor_data.h"

namespace transporters::dynamo {

// A stream of pickle opcodes; each call pushes one value onto the unpickler's stack or folds the topmost ones.
class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  void none() { bytes_ += 'N'; }
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void integer(int64_t value);
  void real(double value);
  void string(std::string_view value);
  // A class or function by module and name.
  void global(std::string_view module, std::string_view name);
  // A tensor on the CPU. Its bytes must live until archive().
  void tensor(const TensorData& data);

  // begin(); values; end_tuple() or end_list(). Dictionaries: begin_dict(); key, value, ...; end_dict().
  void begin() { bytes_ += '('; }
  void end_tuple() { bytes_ += 't'; }
  void begin_list() { bytes_ += "]("; }
  void end_list() { bytes_ += 'e'; }
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { bytes_ += 'u'; }
  // callable, argument tuple -> callable(*arguments)
  void call() { bytes_ += 'R'; }
  // class, argument tuple -> class.__new__(class, *arguments)
  void make_object() { bytes_ += '\x81'; }
  // object, dictionary -> the object with these attributes
  void set_state() { bytes_ += 'b'; }

  // The zip file with the value that is left on the stack. The writer is done then.
  std::string archive();

 private:
  std::string bytes_;
  std::vector<TensorData> storages_;
};

}  // namespace transporters::dynamo
