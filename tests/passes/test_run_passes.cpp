#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/passes/pass.h"

using namespace transporters;

namespace {

const char* const kProgram = R"(program
input %x: f32[4] = user "x"
%relu: f32[4] = aten::relu(self=%x)
%neg: f32[4] = aten::neg(self=%relu)
output %neg = user "y"
)";

bool do_nothing(Program&) { return false; }

bool read_input(Program& program) {
  // Through the graph alone: the driver brings the signature in step.
  program.graph->replace_all_uses(program.graph->find_value("neg"), program.graph->find_value("relu"));
  return true;
}

bool move_first_to_end(Program& program) {
  program.graph->move_before(program.graph->front(), nullptr);
  return true;
}

bool throw_error(Program&) { throw Error("no such thing"); }

}  // namespace

TEST_CASE("passes run in order and report what they did") {
  Program program = parse_program(kProgram);
  std::vector<std::string> seen;
  PassOptions options;
  options.after = [&](const PassReport& report, const Program& changed) {
    seen.push_back(report.name);
    CHECK(changed.outputs[0].value->name() == "relu");
  };
  const auto reports = run_passes(program, {{"do_nothing", do_nothing}, {"read_input", read_input}}, options);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].name == "do_nothing");
  CHECK_FALSE(reports[0].changed);
  CHECK(reports[1].changed);
  CHECK(reports[1].seconds >= 0);
  CHECK((seen == std::vector<std::string>{"read_input"}));
}

TEST_CASE("passes are skipped by name") {
  Program program = parse_program(kProgram);
  const auto reports =
      run_passes(program, {{"throw_error", throw_error}, {"do_nothing", do_nothing}}, {.skip = {"throw_error"}});
  CHECK(reports.size() == 1);
  CHECK_THROWS_WITH_AS(run_passes(program, {{"do_nothing", do_nothing}}, {.skip = {"do_nothin"}}),
                       "[passes] there is no pass 'do_nothin' to skip; did you mean 'do_nothing'?", Error);
}

TEST_CASE("a failure names the pass and those before it") {
  Program program = parse_program(kProgram);
  CHECK_THROWS_WITH_AS(run_passes(program, {{"do_nothing", do_nothing}, {"throw_error", throw_error}}),
                       "[passes] failed in pass 'throw_error' after 'do_nothing': no such thing", Error);
  CHECK_THROWS_WITH_AS(
      run_passes(program, {{"move_first_to_end", move_first_to_end}}),
      "[passes] invalid program left by pass 'move_first_to_end': invalid program: value %relu is read before it is "
      "defined in '%neg = aten::neg'",
      Error);
  program = parse_program(kProgram);
  CHECK_NOTHROW(run_passes(program, {{"move_first_to_end", move_first_to_end}}, {.verify = false}));
}
