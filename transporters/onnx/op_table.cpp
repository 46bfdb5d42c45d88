#include "transporters/onnx/op_table.h"

namespace transporters::onnx {
namespace {

TranslationTable make_table() {
  TranslationTable table;
  for (const auto rows :
       {activation_ops(), arithmetic_ops(),  attention_ops(), comparison_ops(),    complex_ops(), concat_ops(),
        conversion_ops(), convolution_ops(), embedding_ops(), factory_ops(),       gather_ops(),  grouped_ops(),
        index_ops(),      loss_ops(),        matmul_ops(),    normalization_ops(), padding_ops(), pooling_ops(),
        random_ops(),     recurrent_ops(),   reduction_ops(), resize_ops(),        scan_ops(),    scatter_ops(),
        slice_ops(),      softmax_ops(),     sort_ops(),      triangular_ops(),    unary_ops(),   unfold_ops(),
        view_ops()}) {
    for (const OpRow& row : rows) {
      if (!table.emplace(row.op, row.translate).second) {
        throw InternalError("two ONNX translations for '" + std::string(row.op) + "'");
      }
    }
  }
  return table;
}

const TranslationTable& table() {
  static const TranslationTable made = make_table();
  return made;
}

}  // namespace

const OnnxTranslation* find_translation(std::string_view op) { return find_translation(table(), op); }

const OnnxTranslation* find_translation(const TranslationTable& table, std::string_view op) {
  for (const std::string_view key : {op, op.substr(0, op.find('.'))})
    if (const auto found = table.find(key); found != table.end()) return &found->second;
  return nullptr;
}

std::vector<std::string> translated_ops() {
  std::vector<std::string> ops;
  for (const auto& [op, translate] : table()) ops.push_back(op);
  return ops;
}

}  // namespace transporters::onnx
