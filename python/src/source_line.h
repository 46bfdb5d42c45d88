#pragma once

#include <string>

namespace transporters::python {

// The innermost line of the user's code on the Python stack, "modeling_llama.py:120", or "". Needs the GIL.
std::string source_line();

}  // namespace transporters::python
