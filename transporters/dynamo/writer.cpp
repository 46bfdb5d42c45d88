#include <algorithm>

#include "transporters/dynamo/model_json.h"
#include "transporters/dynamo/names.h"
#include "transporters/dynamo/payload_writer.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/dynamo/sample_inputs.h"
#include "transporters/dynamo/schema.h"
#include "transporters/dynamo/zip_writer.h"
#include "transporters/error.h"
#include "transporters/export/atomic_file.h"

namespace transporters::dynamo {
namespace {

using Json = nlohmann::ordered_json;

// Parameters and persistent buffers are weights, the rest constants.
void split_state(const Program& program, std::vector<PayloadTensor>& weights, std::vector<PayloadTensor>& constants) {
  for (const InputSpec& input : program.inputs) {
    if (input.kind == InputKind::UserInput) continue;
    const auto found = program.state.find(input.target);
    if (found == program.state.end())
      throw Error({.stage = "dynamo"}, "the program has no data for '" + input.target + "'; load its weights first");
    const bool is_parameter = input.kind == InputKind::Parameter;
    const bool is_weight = is_parameter || (input.kind == InputKind::Buffer && input.persistent);
    (is_weight ? weights : constants).push_back({input.target, found->second, is_parameter});
  }
}

// What torch's schema has no place for.
std::string extra_json(const Program& program, const SymbolNames& symbols) {
  Json names = Json::object();
  for (const auto& [symbol, name] : symbols.all()) names[name] = symbol;
  Json inputs = Json::array(), outputs = Json::array();
  for (const InputSpec& input : program.inputs)
    if (input.kind == InputKind::UserInput) inputs.push_back(input.target);
  for (const OutputSpec& output : program.outputs)
    if (output.kind == OutputKind::UserOutput) outputs.push_back(output.target);
  return Json{{"version", 1},
              {"architecture", program.architecture},
              {"symbols", std::move(names)},
              {"inputs", std::move(inputs)},
              {"outputs", std::move(outputs)}}
      .dump(-1, ' ', /*ensure_ascii=*/true);
}

}  // namespace

void save(const std::vector<NamedProgram>& programs, OutputFile& file, const SaveOptions& options) {
  std::vector<std::vector<PayloadTensor>> weights, constants;
  std::vector<std::string> models, sample_inputs, extras;
  // Everything that can fail for a program's sake comes before the first byte.
  for (const auto& [name, program] : programs) {
    split_state(*program, weights.emplace_back(), constants.emplace_back());
    const SymbolNames symbols(*program);
    models.push_back(model_json(*program, symbols));
    sample_inputs.push_back(write_sample_inputs(*program));
    extras.push_back(extra_json(*program, symbols));
  }
  ZipWriter zip("model", [&](const void* data, size_t size) { file.write(data, size); });
  const auto add_all = [&](const std::vector<std::string>& texts, const std::string& folder, const char* suffix) {
    for (size_t i = 0; i < programs.size(); ++i) zip.add(folder + programs[i].name + suffix, texts[i]);
  };
  add_all(write_payloads(zip, weights, record::kWeightFolder, record::kWeightPrefix), record::kWeightFolder,
          record::kWeightConfigSuffix);
  add_all(write_payloads(zip, constants, record::kConstantFolder, record::kConstantPrefix), record::kConstantFolder,
          record::kConstantConfigSuffix);
  add_all(models, record::kModelFolder, ".json");
  add_all(sample_inputs, record::kSampleInputFolder, ".pt");
  for (size_t i = 0; i < programs.size(); ++i) zip.add(extra_record(programs[i].name), extras[i]);
  for (const auto& [name, text] : options.extra_files) zip.add(record::kExtraFolder + name, text);
  zip.add(record::kFormat, record::kFormatValue);
  zip.add(record::kArchiveVersion, record::kArchiveVersionValue);
  zip.add(record::kVersion, record::kVersionValue);
  zip.add(record::kByteOrder, record::kByteOrderValue);
  zip.finish();
}

void save(const Program& program, OutputFile& file, const SaveOptions& options) {
  save({{kOnlyModel, &program}}, file, options);
}

void save(const Program& program, const std::filesystem::path& path, const SaveOptions& options) {
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  AtomicFiles files(absolute.parent_path());
  save(program, files.create(absolute.filename().string()), options);
  files.commit();
}

}  // namespace transporters::dynamo
