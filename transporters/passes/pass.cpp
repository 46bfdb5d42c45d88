#include "transporters/passes/pass.h"

#include <algorithm>
#include <chrono>

#include "transporters/error.h"

namespace transporters {
namespace {

void check_skipped(const std::vector<Pass>& passes, const std::set<std::string>& skip) {
  std::vector<std::string> known;
  for (const auto& pass : passes) known.push_back(pass.name);
  for (const auto& name : skip)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error({.stage = "passes"}, "there is no pass '" + name + "' to skip" + did_you_mean(name, known));
}

[[noreturn]] void fail(const std::string& pass, const std::vector<PassReport>& before, const std::string& what,
                       const std::string& message) {
  std::string after;
  for (const auto& report : before) after += (after.empty() ? " after '" : ", '") + report.name + "'";
  throw Error({.stage = "passes"}, what + " '" + pass + "'" + after + ": " + message);
}

}  // namespace

std::vector<PassReport> run_passes(Program& program, const std::vector<Pass>& passes, const PassOptions& options) {
  check_skipped(passes, options.skip);
  std::vector<PassReport> reports;
  for (const auto& pass : passes) {
    if (options.skip.contains(pass.name)) continue;
    PassReport report{pass.name};
    const auto start = std::chrono::steady_clock::now();
    try {
      report.changed = pass.run(program);
      program.update_outputs();
    } catch (const std::exception& error) {
      fail(pass.name, reports, "failed in pass", error.what());
    }
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (report.changed) {
      try {
        if (options.verify) verify(program);
      } catch (const std::exception& error) {
        fail(pass.name, reports, "invalid program left by pass", error.what());
      }
      if (options.after) options.after(report, program);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace transporters
