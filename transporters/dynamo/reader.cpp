#include <algorithm>

#include "transporters/checkpoint/mapped_file.h"
#include "transporters/dynamo/functionalize.h"
#include "transporters/dynamo/graph_reader.h"
#include "transporters/dynamo/payload_reader.h"
#include "transporters/dynamo/pickle_reader.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/dynamo/sample_inputs.h"
#include "transporters/dynamo/schema.h"
#include "transporters/dynamo/zip_reader.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

// The layout of torch 2.5 and 2.6: four records without folders.
constexpr const char* kFlatModel = "serialized_exported_program.json";
constexpr const char* kFlatState = "serialized_state_dict.pt";
constexpr const char* kFlatConstants = "serialized_constants.pt";
constexpr const char* kFlatSampleInputs = "serialized_example_inputs.pt";

ExtraNames read_extra(const ZipReader& zip, const std::string& model) {
  ExtraNames extra;
  const std::string name = extra_record(model.empty() ? kOnlyModel : model);
  if (!zip.contains(name)) return extra;
  with_json(zip.get_checked(name), zip.path(), name, [&](const ConstJson& json) {
    if (integer(field(json, "version")) != 1) return;  // of a later version: torch's own names serve
    extra.architecture = string(field(json, "architecture"));
    for (const auto& [name, symbol] : object(field(json, "symbols")).items()) extra.symbols[name] = string(symbol);
    for (const ConstJson& path : array(field(json, "inputs"))) extra.inputs.push_back(string(path));
    for (const ConstJson& path : array(field(json, "outputs"))) extra.outputs.push_back(string(path));
  });
  return extra;
}

std::vector<std::string> list_models(const ZipReader& zip) {
  std::vector<std::string> models;
  const std::string folder = record::kModelFolder, suffix = ".json";
  for (const std::string& name : zip.names())
    if (name.starts_with(folder) && name.ends_with(suffix))
      models.push_back(name.substr(folder.size(), name.size() - folder.size() - suffix.size()));
  return models;
}

// The model of that name, or the only one of the archive.
std::string find_model(const ZipReader& zip, const std::string& wanted) {
  const std::vector<std::string> models = list_models(zip);
  if (models.empty()) zip.fail("the archive has no model (models/*.json)");
  std::string list;
  for (const std::string& model : models) {
    if (model == wanted) return model;
    list += (list.empty() ? "'" : ", '") + model + "'";
  }
  if (!wanted.empty()) zip.fail("the archive has no model '" + wanted + "'; it has " + list);
  if (models.size() > 1)
    zip.fail("the archive has " + std::to_string(models.size()) + " models, expected one; choose from " + list);
  return models[0];
}

void check_format(const ZipReader& zip) {
  const auto text = [&](const char* name) { return std::string(zip.get_checked(name)); };
  if (!zip.contains(record::kFormat))
    zip.fail("a zip file, but not a .pt2 archive: the record 'archive_format' is missing");
  if (text(record::kFormat) != record::kFormatValue)
    zip.fail("the archive's format is '" + text(record::kFormat).substr(0, 40) + "', expected 'pt2'");
  if (zip.contains(record::kArchiveVersion) && text(record::kArchiveVersion) != record::kArchiveVersionValue)
    zip.fail("archive version " + text(record::kArchiveVersion).substr(0, 40) + " is not supported, expected 0");
  if (zip.contains(record::kByteOrder) && text(record::kByteOrder) != record::kByteOrderValue)
    zip.fail("the archive was written on a big-endian machine");
}

std::map<std::string, TensorData> read_flat(const ZipReader& zip, const char* name) {
  std::map<std::string, TensorData> tensors;
  if (!zip.contains(name) || zip.get(name).empty()) return tensors;
  const std::string where = zip.path() + ":" + name;
  for (const auto& [key, value] : read_pickle_archive(zip.get(name), zip.owner(), where).items(where))
    tensors.emplace(key, value.tensor(key));
  return tensors;
}

// Every tensor of the signature is there and is as the graph says.
void attach_state(Program& program, std::map<std::string, TensorData> tensors, const ZipReader& zip) {
  for (const InputSpec& input : program.inputs) {
    if (input.kind == InputKind::UserInput) continue;
    const auto found = tensors.find(input.target);
    if (found == tensors.end()) zip.fail("the archive has no data for '" + input.target + "'");
    const TensorType& type = input.value->tensor();
    const TensorData& data = found->second;
    const bool same = type.dtype == data.dtype &&
                      std::equal(type.sizes.begin(), type.sizes.end(), data.sizes.begin(), data.sizes.end(),
                                 [](const Expr& wanted, int64_t actual) { return wanted.is(actual); });
    if (!same) zip.fail("the data for '" + input.target + "' has another type or other sizes than the graph expects");
    program.state[input.target] = data;
  }
}

Program load_archive(const ZipReader& zip, const std::string& wanted) {
  const bool flat = zip.contains(kFlatModel);
  if (!flat) check_format(zip);
  const std::string name = flat ? "" : find_model(zip, wanted);
  const std::string model = flat ? kFlatModel : record::kModelFolder + name + ".json";
  const ExtraNames extra = read_extra(zip, name);

  Program program;
  with_json(zip.get_checked(model), zip.path(), model,
            [&](const ConstJson& json) { program = read_graph(json, extra); });
  functionalize(program);

  auto tensors =
      flat ? read_flat(zip, kFlatState) : read_payloads(zip, name, record::kWeightFolder, record::kWeightConfigSuffix);
  tensors.merge(flat ? read_flat(zip, kFlatConstants)
                     : read_payloads(zip, name, record::kConstantFolder, record::kConstantConfigSuffix));
  attach_state(program, std::move(tensors), zip);

  const std::string samples = flat ? kFlatSampleInputs : record::kSampleInputFolder + name + ".pt";
  if (zip.contains(samples) && !zip.get(samples).empty())
    program.example_inputs = read_sample_inputs(zip.get(samples), zip.owner(), program);
  // What the JSON alone does not show: the file is at fault then, not this library.
  try {
    verify(program);
  } catch (const InternalError& error) {
    zip.fail(std::string(error.what()) + "; the file is damaged, export it again");
  }
  return program;
}

// Calls f with the archive; its Errors name the file.
template <typename F>
auto with_archive(const std::filesystem::path& path, F f) try {
  return f(ZipReader(MappedFile::open(path.string())));
} catch (const Error& error) {
  ErrorContext context = error.context();
  if (!context.file.empty()) throw;
  context.stage = "dynamo";
  context.file = path.string();
  throw Error(std::move(context), error.message());
}

}  // namespace

Program load(const std::filesystem::path& path, const std::string& model) {
  return with_archive(path, [&](const ZipReader& zip) { return load_archive(zip, model); });
}

std::vector<std::string> model_names(const std::filesystem::path& path) {
  return with_archive(path, [](const ZipReader& zip) {
    if (zip.contains(kFlatModel)) return std::vector<std::string>{kOnlyModel};
    check_format(zip);
    return list_models(zip);
  });
}

}  // namespace transporters::dynamo
