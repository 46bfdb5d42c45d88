#include "transporters/onnx/op_table.h"

namespace transporters::onnx {
namespace {

TranslationTable make_table() {
  TranslationTable table;
  for (const auto rows :
       {activation_ops(),  arithmetic_ops(), attention_ops(),     comparison_ops(), concat_ops(),    conversion_ops(),
        convolution_ops(), embedding_ops(),  factory_ops(),       gather_ops(),     index_ops(),     loss_ops(),       matmul_ops(),
        normalization_ops(), padding_ops(),  pooling_ops(),       random_ops(),     recurrent_ops(), reduction_ops(),
        resize_ops(),      scan_ops(),       scatter_ops(),       slice_ops(),      softmax_ops(),   sort_ops(),
        triangular_ops(),  unary_ops(),      unfold_ops(),      view_ops()}) {
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

const OnnxTranslation* find_translation(std::string_view op) {
  auto entry = table().find(op);
  if (entry == table().end()) entry = table().find(op.substr(0, op.find('.')));
  return entry == table().end() ? nullptr : &entry->second;
}

std::vector<std::string> translated_ops() {
  std::vector<std::string> ops;
  for (const auto& [op, translate] : table()) ops.push_back(op);
  return ops;
}

}  // namespace transporters::onnx
