#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "transporters/trace/shape_rules/shape_rules.h"

using namespace transporters;

TEST_CASE("every family's file is in the list of tables") {
  std::set<std::string> listed, files;
  for (const auto& table : shape_rule_tables()) listed.emplace(table.name);
  for (const auto& entry : std::filesystem::directory_iterator("transporters/trace/shape_rules")) {
    const auto& path = entry.path();
    const std::string stem = path.stem();
    if (path.extension() == ".cpp" && stem != "shape_rules" && stem != "rule_support") files.insert(stem);
  }
  CHECK(listed == files);
}

TEST_CASE("every row names an op of the dispatcher, once") {
  std::set<std::string> bases, names;
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) {
    bases.insert(op.name);
    names.insert(op.overload_name.empty() ? op.name : op.name + "." + op.overload_name);
  }
  // What an exact row serves already; a row for all overloads must serve some other.
  const auto names_with_rows = ops_with_shape_rules();
  const std::set<std::string> rows(names_with_rows.begin(), names_with_rows.end());
  const auto serves_some = [&](const std::string& base) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == base || (name.starts_with(base + ".") && !rows.count(name));
    });
  };
  std::set<std::string> seen;
  size_t op_names = 0;
  for (const auto& name : ops_with_shape_rules()) {
    CHECK_MESSAGE((names.count(name) || (bases.count(name) && serves_some(name))), name);
    CHECK_MESSAGE(seen.insert(name).second, name);
    op_names += name.find('.') == std::string::npos;
  }
  CHECK(op_names >= 450);
}

TEST_CASE("an exact name wins over the row for all overloads") {
  // Compared outside CHECK, which can't print function pointers.
  const bool exact =
      find_shape_rule("aten::max.other") && find_shape_rule("aten::max.other") != find_shape_rule("aten::max.dim");
  const bool overload = find_shape_rule("aten::max.dim") == find_shape_rule("aten::max");
  const bool unknown = !find_shape_rule("aten::no_such_op") && !find_shape_rule("transporters::add");
  CHECK(exact);
  CHECK(overload);
  CHECK(unknown);
}
