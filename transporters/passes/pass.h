// Passes over a program, and the driver that every pass goes through.
//
// A pass is one free function in a file of its name. It returns whether it changed anything.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters {

struct Pass {
  std::string name;  // the function's name: "eliminate_dead_code"
  std::function<bool(Program&)> run;
};

struct PassReport {
  std::string name;
  double seconds = 0;
  bool changed = false;
};

struct PassOptions {
  std::set<std::string> skip;  // names; an unknown one throws Error with near names
  bool verify = true;          // verify(program) after each pass that changed something
  // Called after each pass that changed something, with the report: for logging the graph.
  std::function<void(const PassReport&, const Program&)> after;
};

// Runs the passes in order. An exception of a pass, or of the verification after it, is rethrown as Error naming the
// pass and those before it.
std::vector<PassReport> run_passes(Program& program, const std::vector<Pass>& passes, const PassOptions& options = {});

}  // namespace transporters
