#include "cli/inspect_html.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

namespace transporters::cli {
namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bar: #4a7dcf88; }
body { font: 14px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
code, td.name, summary b { font-family: ui-monospace, monospace; font-size: 13px; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .12rem .9rem .12rem 0; vertical-align: top; }
th { border-bottom: 1px solid var(--line); font-weight: 600; } td, summary { unicode-bidi: isolate; overflow-wrap: anywhere; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.share { min-width: 10rem; } td.share span { display: block; height: .8rem; margin-top: .25rem; background: var(--bar); }
details { margin-left: .6rem; padding-left: .7rem; border-left: 1px solid var(--line); }
summary { cursor: pointer; padding: .1rem 0; } summary small, p small { opacity: .75; }
details > table { margin: .2rem 0 .6rem; background: var(--soft); }
input, button { font: inherit; padding: .15rem .5rem; } .hidden { display: none; }
</style>
)";

// Opens and closes the tree, and shows only nodes and weights with the text that is typed.
constexpr const char* kScript = R"(<script>
for (const tools of document.querySelectorAll('.tools')) {
  const tree = tools.nextElementSibling;
  const all = tree.querySelectorAll('details');
  tools.querySelector('.open').onclick = () => all.forEach(d => d.open = true);
  tools.querySelector('.close').onclick = () => all.forEach(d => d.open = false);
  const seek = tools.querySelector('input');
  seek.oninput = () => {
    const text = seek.value.toLowerCase();
    for (const d of [...all].reverse()) {
      const hit = text && d.querySelector(':scope > summary').textContent.toLowerCase().includes(text);
      let any = false;
      for (const row of d.querySelectorAll(':scope > table > tbody > tr')) {
        const show = !text || hit || row.textContent.toLowerCase().includes(text);
        row.classList.toggle('hidden', !show);
        any = any || show;
      }
      const inner = [...d.querySelectorAll(':scope > details')].some(c => !c.classList.contains('hidden'));
      d.classList.toggle('hidden', Boolean(text) && !any && !hit && !inner);
      if (text) d.open = any || inner;
    }
  };
}
</script>
)";

// Length of the UTF-8 sequence that starts at `i`, 0 when there is none.
size_t sequence_length(const std::string& text, size_t i) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
  const unsigned lead = byte(i);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                                                      : 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(i + 1);
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
      (lead == 0xf4 && second > 0x8f))
    return 0;
  return length;
}

std::string share_cell(uint64_t part, uint64_t whole) {
  char text[96];
  std::snprintf(text, sizeof(text), "<td class=\"share\"><span style=\"width:%.2f%%\"></span></td>",
                whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

std::string name_cell(const std::string& text) { return "<td class=\"name\">" + html_text(text) + "</td>"; }
std::string number_cell(const std::string& text) { return "<td class=\"number\">" + text + "</td>"; }

std::string cell(const std::string& key, const Json& value) {
  const bool is_bytes = key == "bytes" || key.ends_with("_bytes");
  if (value.is_number_integer() && value >= 0)
    return number_cell(is_bytes ? bytes_text(value.get<uint64_t>()) : count_text(value.get<uint64_t>()));
  if (value.is_string()) return name_cell(value.get<std::string>());
  return name_cell(value.is_null() ? "none" : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string table_head(const std::vector<std::string>& columns) {
  std::string html = "<table><thead><tr>";
  for (const auto& column : columns) html += "<th>" + html_text(column) + "</th>";
  return html + "</tr></thead><tbody>\n";
}

// Rows that are objects with the same keys; the column `measure` is drawn, too.
std::string table(const std::string& title, const Json& rows, const std::string& measure = "") {
  if (rows.empty()) return "";
  std::vector<std::string> columns;
  uint64_t largest = 0;
  for (const auto& row : rows) {
    for (const auto& [key, value] : row.items())
      if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
    if (!measure.empty()) largest = std::max(largest, row.at(measure).get<uint64_t>());
  }
  std::string html = "<h3>" + html_text(title) + "</h3>\n";
  auto head = columns;
  if (!measure.empty()) head.emplace_back();
  html += table_head(head);
  for (const auto& row : rows) {
    html += "<tr>";
    for (const auto& column : columns) html += row.contains(column) ? cell(column, row[column]) : "<td></td>";
    if (!measure.empty()) html += share_cell(row.at(measure).get<uint64_t>(), largest);
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

// Scalars and small objects as name and value.
std::string facts_table(const Json& facts) {
  std::string html = "<table><tbody>\n";
  for (const auto& [key, value] : facts.items()) {
    if (value.is_array()) continue;
    if (!value.is_object()) {
      html += "<tr><th>" + html_text(key) + "</th>" + cell(key, value) + "</tr>\n";
      continue;
    }
    for (const auto& [inner, held] : value.items())
      html += "<tr><th>" + html_text(key + " " + inner) + "</th>" + cell(inner, held) + "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

// ── The tree of modules ──

struct Module {
  std::string name;  // last part of the path
  std::vector<std::unique_ptr<Module>> children;
  std::map<std::string, Module*> by_name;
  std::vector<const GraphNode*> nodes;
  std::vector<const Weight*> weights;
  // Of this module and those below.
  std::map<std::string, uint64_t> ops;
  uint64_t node_count = 0;
  uint64_t bytes = 0;
};

Module& find_module(Module& root, const std::string& path) {
  // A stranger's path must not make the page nest without bound.
  constexpr int kDeepest = 64;
  Module* module = &root;
  size_t start = 0;
  for (int depth = 0; start <= path.size() && !path.empty(); ++depth) {
    const size_t dot = depth == kDeepest ? std::string::npos : path.find('.', start);
    const std::string part = path.substr(start, dot == std::string::npos ? std::string::npos : dot - start);
    Module*& child = module->by_name[part];
    if (!child) {
      module->children.push_back(std::make_unique<Module>());
      child = module->children.back().get();
      child->name = part;
    }
    module = child;
    if (dot == std::string::npos) break;
    start = dot + 1;
  }
  return *module;
}

// "model.norm.weight" lies in "model.norm".
std::string owner(std::string name) {
  constexpr std::string_view kTransposed = ".transposed";
  if (name.ends_with(kTransposed)) name.resize(name.size() - kTransposed.size());
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

void sum_up(Module& module) {
  for (const GraphNode* node : module.nodes) ++module.ops[node->op];
  module.node_count = module.nodes.size();
  for (const Weight* weight : module.weights) module.bytes += weight->bytes;
  for (const auto& child : module.children) {
    sum_up(*child);
    module.node_count += child->node_count;
    module.bytes += child->bytes;
    for (const auto& [op, count] : child->ops) module.ops[op] += count;
  }
}

std::string counts_text(const std::map<std::string, uint64_t>& ops) {
  std::vector<std::pair<std::string, uint64_t>> sorted(ops.begin(), ops.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [op, count] : sorted) text += (text.empty() ? "" : ", ") + count_text(count) + " " + op;
  return text;
}

void add_module(std::string& html, const Module& module, const std::string& path, bool is_open) {
  html += std::string("<details") + (is_open ? " open" : "") + "><summary title=\"" + html_text(path) + "\"><b>" +
          html_text(module.name) + "</b> <small>";
  std::string sums;
  if (module.node_count) sums = count_text(module.node_count) + (module.node_count == 1 ? " node" : " nodes");
  if (module.bytes) sums += (sums.empty() ? "" : ", ") + bytes_text(module.bytes);
  html += sums + "</small></summary>\n";
  if (!module.ops.empty()) html += "<p><small>" + html_text(counts_text(module.ops)) + "</small></p>\n";
  if (!module.weights.empty()) {
    html += table_head({"weight", "type", "bytes"});
    for (const Weight* weight : module.weights)
      html += "<tr>" + name_cell(weight->name) + name_cell(type_text(*weight)) +
              number_cell(bytes_text(weight->bytes)) + "</tr>\n";
    html += "</tbody></table>\n";
  }
  if (!module.nodes.empty()) {
    html += table_head({"op", "output", "type", "inputs"});
    for (const GraphNode* node : module.nodes)
      html += "<tr>" + name_cell(node->op) + name_cell(node->name) + name_cell(node->type) + name_cell(node->inputs) +
              "</tr>\n";
    html += "</tbody></table>\n";
  }
  for (const auto& child : module.children)
    add_module(html, *child, path.empty() ? child->name : path + "." + child->name, false);
  html += "</details>\n";
}

std::string module_tree(const InspectedFile& file, const UniqueWeights& unique) {
  Module root;
  for (const GraphNode& node : file.nodes) find_module(root, node.module).nodes.push_back(&node);
  for (const Weight& weight : unique.weights) find_module(root, owner(weight.name)).weights.push_back(&weight);
  sum_up(root);
  root.name = file.report.value("architecture", std::string("graph"));
  std::string html =
      "<h3>Modules</h3>\n<p class=\"tools\"><button class=\"open\">Open all</button> <button class=\"close\">Close "
      "all</button> <input type=\"search\" placeholder=\"Find a node, weight or module\"></p>\n<div>\n";
  add_module(html, root, "", true);
  return html + "</div>\n";
}

// ── Weights ──

std::string weights_section(const InspectedFile& file, const UniqueWeights& unique) {
  if (!file.report.contains("weights")) return "";
  const Json& weights = file.report["weights"];
  const auto bytes = weights.value("bytes", uint64_t{0});
  std::string html = "<h3>Weights</h3>\n<p>" + count_text(unique.weights.size()) +
                     (unique.weights.size() == 1 ? " tensor, " : " tensors, ") + bytes_text(bytes) + "</p>\n";
  html += table("Bytes by type", weights["by_dtype"], "bytes");
  html += table("Bytes by module, layers together", weights["by_module"], "bytes");
  if (!unique.tied.empty()) {
    html += "<h3>Tied weights, counted once</h3>\n" + table_head({"weight", "is"});
    for (const auto& [name, same] : unique.tied) html += "<tr>" + name_cell(name) + name_cell(same) + "</tr>\n";
    html += "</tbody></table>\n";
  }
  if (unique.weights.empty()) return html;
  html += "<h3>Tensors, largest first</h3>\n" + table_head({"tensor", "type", "bytes", ""});
  for (const Weight& weight : unique.weights)
    html += "<tr>" + name_cell(weight.name) + name_cell(type_text(weight)) + number_cell(bytes_text(weight.bytes)) +
            share_cell(weight.bytes, unique.weights.front().bytes) + "</tr>\n";
  return html + "</tbody></table>\n";
}

std::string file_section(const InspectedFile& file) {
  const Json& report = file.report;
  const UniqueWeights unique = unique_weights(file.weights);
  Json facts = report;
  facts.erase("weights");
  std::string html = "<h2>" + html_text(file.title) + "</h2>\n" + facts_table(facts);
  const auto rows = [&](const char* title, const char* key, const char* measure = "") {
    if (report.contains(key)) html += table(title, report[key], measure);
  };
  rows("Inputs", "inputs");
  rows("Outputs", "outputs");
  rows("Symbolic sizes", "constraints");
  rows("Files", "files");
  rows("Ops", "ops", "count");
  if (!file.nodes.empty() || !unique.weights.empty()) html += module_tree(file, unique);
  return html + weights_section(file, unique);
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string html;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    if (length == 0 || is_control) {
      html += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    switch (text[i]) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html.append(text, i, length);
    }
    i += length;
  }
  return html;
}

std::string html_page(const std::string& title, const Json& facts, const std::vector<InspectedFile>& files) {
  std::string html = kHead;
  html += "<title>" + html_text(title) + "</title>\n</head>\n<body>\n<h1>" + html_text(title) + "</h1>\n";
  if (!facts.empty()) html += facts_table(facts);
  for (const InspectedFile& file : files) html += file_section(file);
  return html + kScript + "</body>\n</html>\n";
}

}  // namespace transporters::cli
