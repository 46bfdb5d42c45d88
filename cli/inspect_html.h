// What inspect finds, as one HTML page that needs nothing but itself.
#pragma once

#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/weights_report.h"

namespace transporters::cli {

struct GraphNode {
  std::string module;  // dotted path; empty when not known
  std::string op;
  std::string name;    // its outputs
  std::string type;    // theirs
  std::string inputs;  // names
};

// One graph or weights file: what the text report says, and every node and weight of it.
struct InspectedFile {
  std::string title;
  Json report;
  std::vector<GraphNode> nodes;
  std::vector<Weight> weights;
};

// The page. All text in it is escaped: names come from files of strangers. Same input, same bytes.
std::string html_page(const std::string& title, const Json& facts, const std::vector<InspectedFile>& files);

// Text for HTML, in content and in quoted attributes; bytes that are no UTF-8 and control characters become U+FFFD.
std::string html_text(const std::string& text);

}  // namespace transporters::cli
