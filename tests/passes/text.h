// Text in, text out: runs a pass over a program given as text.
#pragma once

#include <string>

#include "transporters/graph/program.h"

namespace transporters {

// The program after the pass, verified; "unchanged" when the pass says so, after checking that the text is the same.
inline std::string after(bool (*pass)(Program&), const std::string& text) {
  Program program = parse_program(text);
  verify(program);
  const std::string before = program.str();
  const bool changed = pass(program);
  verify(program);
  const std::string result = program.str();
  if (changed == (before == result)) return "the pass tells wrong whether it changed anything:\n" + result;
  return changed ? result : "unchanged";
}

}  // namespace transporters
