#include "transporters/runners/onnxruntime.h"

#include <ATen/ATen.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "transporters/error.h"
#include "transporters/onnx/model.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/size_ranges.h"
#include "transporters/runners/onnxruntime_api.h"
#include "transporters/runners/onnxruntime_default.h"

namespace transporters {
namespace {

constexpr const char* kStage = "onnxruntime";

// What an exported model says of its inputs' sizes.
struct InputSizes {
  std::map<std::string, onnx::Shape> shapes;
  std::map<std::string, symbolic::Range> ranges;

  // Models of other exporters record no ranges, and name dims freely.
  static InputSizes read(const std::filesystem::path& file) {
    InputSizes sizes;
    try {
      const onnx::Model model = onnx::load(file);
      sizes.ranges = onnx::size_ranges(model);
      if (sizes.ranges.empty()) return sizes;
      for (const onnx::Value* input : model.graph->inputs())
        if (input->shape) sizes.shapes[input->name()] = *input->shape;
    } catch (const Error&) {
      // A file that only ONNX Runtime can read is none of ours.
    }
    return sizes;
  }

  void check(const std::map<std::string, at::Tensor>& inputs, const ErrorContext& context) const {
    std::map<std::string, std::pair<int64_t, std::string>> seen;
    for (const auto& [name, tensor] : inputs) {
      const auto shape = shapes.find(name);
      if (shape == shapes.end() || static_cast<size_t>(tensor.dim()) != shape->second.size()) continue;
      for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
        const std::string& param = shape->second[static_cast<size_t>(dim)].param;
        const auto range = ranges.find(param);
        if (range == ranges.end()) continue;
        const int64_t size = tensor.size(dim);
        const std::string where = "input '" + name + "' dim " + std::to_string(dim);
        const auto& [min, max] = range->second;
        if (size < min || size > max)
          throw Error(context,
                      where + ": expected '" + param + "' to be " +
                          (max == symbolic::Range::kInfinity ? "at least " + std::to_string(min)
                                                             : std::to_string(min) + " to " + std::to_string(max)) +
                          ", got " + std::to_string(size));
        const auto [first, is_new] = seen.try_emplace(param, size, where);
        if (!is_new && first->second.first != size)
          throw Error(context, where + ": expected '" + param + "' = " + std::to_string(first->second.first) + " (" +
                                   first->second.second + "), got " + std::to_string(size));
      }
    }
  }
};

struct Library {
  const ort::Api* api = nullptr;
  std::string version;
};

// Opens a library once and never closes it: it starts threads that outlive sessions.
Library open_library(const std::string& wanted) {
  const char* variable = std::getenv("TRANSPORTERS_ONNXRUNTIME");
  std::vector<std::string> places;
  if (!wanted.empty()) {
    places = {wanted};
  } else if (variable && *variable) {
    places = {variable};
  } else {
    if (*TRANSPORTERS_DEFAULT_ONNXRUNTIME) places.emplace_back(TRANSPORTERS_DEFAULT_ONNXRUNTIME);
    places.insert(places.end(), {"libonnxruntime.so.1", "libonnxruntime.so"});
  }
  std::string reasons;
  for (const auto& place : places) {
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
      continue;
    }
    const auto get_base = reinterpret_cast<ort::GetApiBase>(dlsym(handle, "OrtGetApiBase"));
    const ort::ApiBase* base = get_base ? get_base() : nullptr;
    const ort::Api* api = base ? base->get_api(ort::kApiVersion) : nullptr;
    if (!api) throw Error(ErrorContext{.stage = kStage, .file = place}, "this is not the ONNX Runtime library");
    return {api, base->get_version_string()};
  }
  throw Error(ErrorContext{.stage = kStage},
              "the ONNX Runtime library was not found (" + reasons +
                  "); install the onnxruntime wheel and set TRANSPORTERS_ONNXRUNTIME to its capi/libonnxruntime.so.*");
}

}  // namespace

struct OnnxRuntimeSession::State {
  Library library;
  std::string file;
  ort::Env* env = nullptr;
  ort::Session* session = nullptr;
  ort::MemoryInfo* memory = nullptr;
  std::vector<std::string> input_names;
  std::vector<std::string> defaulted_names;
  std::vector<std::string> output_names;
  InputSizes sizes;

  template <typename Entry, typename... Arguments>
  void call(Entry entry, Arguments... arguments) const {
    ort::Status* status = entry(library.api)(arguments...);
    if (!status) return;
    const std::string message = ort::GetErrorMessage(library.api)(status);
    ort::ReleaseStatus(library.api)(status);
    throw Error(ErrorContext{.stage = kStage, .file = file}, message);
  }

  template <typename CountEntry, typename NameEntry>
  std::vector<std::string> names(CountEntry count_entry, NameEntry name_entry) const {
    ort::Allocator* allocator = nullptr;
    call(ort::GetAllocatorWithDefaultOptions, &allocator);
    size_t count = 0;
    call(count_entry, session, &count);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      call(name_entry, session, i, allocator, &name);
      names.emplace_back(name);
      call(ort::AllocatorFree, allocator, static_cast<void*>(name));
    }
    return names;
  }

  std::shared_ptr<ort::Value> own(ort::Value* value) const {
    return {value, [api = library.api](ort::Value* owned) { ort::ReleaseValue(api)(owned); }};
  }

  std::shared_ptr<ort::Value> wrap(const at::Tensor& tensor) const {
    static char nothing = 0;  // tensors without elements have no address, which the library refuses
    ort::Value* value = nullptr;
    void* data = tensor.numel() ? tensor.data_ptr() : &nothing;
    call(ort::CreateTensorWithDataAsOrtValue, memory, data, tensor.nbytes(), tensor.sizes().data(),
         static_cast<size_t>(tensor.dim()), static_cast<int>(onnx::to_data_type(tensor.scalar_type())), &value);
    return own(value);
  }

  // A tensor that owns the value and reads its memory.
  at::Tensor unwrap(const std::shared_ptr<ort::Value>& owner) const {
    const ort::Api* api = library.api;
    ort::Value* value = owner.get();
    ort::TensorTypeAndShapeInfo* raw_info = nullptr;
    call(ort::GetTensorTypeAndShape, static_cast<const ort::Value*>(value), &raw_info);
    const std::shared_ptr<ort::TensorTypeAndShapeInfo> info(
        raw_info, [api](ort::TensorTypeAndShapeInfo* owned) { ort::ReleaseTensorTypeAndShapeInfo(api)(owned); });
    int type = 0;
    size_t rank = 0;
    call(ort::GetTensorElementType, static_cast<const ort::TensorTypeAndShapeInfo*>(raw_info), &type);
    call(ort::GetDimensionsCount, static_cast<const ort::TensorTypeAndShapeInfo*>(raw_info), &rank);
    std::vector<int64_t> sizes(rank);
    call(ort::GetDimensions, static_cast<const ort::TensorTypeAndShapeInfo*>(raw_info), sizes.data(), rank);
    const auto dtype = onnx::to_scalar_type(static_cast<onnx::DataType>(type));
    if (!dtype)
      throw Error(ErrorContext{.stage = kStage, .file = file},
                  "an output has ONNX type " + std::to_string(type) + ", which torch lacks");
    const auto options = at::TensorOptions().dtype(*dtype);
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return at::empty(sizes, options);
    void* data = nullptr;
    call(ort::GetTensorMutableData, value, &data);
    return at::from_blob(data, sizes, [owner](void*) {}, options);
  }

  void load(const std::filesystem::path& model, const OnnxRuntimeOptions& options) {
    call(ort::CreateEnv, ort::kLogFatal, "transporters", &env);
    call(ort::CreateCpuMemoryInfo, ort::kDeviceAllocator, ort::kDefaultMemory, &memory);
    ort::SessionOptions* raw_options = nullptr;
    call(ort::CreateSessionOptions, &raw_options);
    const ort::Api* api = library.api;
    const std::shared_ptr<ort::SessionOptions> owner(
        raw_options, [api](ort::SessionOptions* owned) { ort::ReleaseSessionOptions(api)(owned); });
    if (!options.optimize) call(ort::SetSessionGraphOptimizationLevel, raw_options, ort::kDisableAllOptimization);
    if (options.threads) call(ort::SetIntraOpNumThreads, raw_options, options.threads);
    try {
      call(ort::CreateSession, static_cast<const ort::Env*>(env), model.c_str(),
           static_cast<const ort::SessionOptions*>(raw_options), &session);
    } catch (const Error& error) {
      throw Error(error.context(), "the library can't load the model, which may be damaged; copy or export it again: " +
                                       error.message());
    }
    input_names = names(ort::SessionGetInputCount, ort::SessionGetInputName);
    defaulted_names = names(ort::SessionGetOverridableInitializerCount, ort::SessionGetOverridableInitializerName);
    output_names = names(ort::SessionGetOutputCount, ort::SessionGetOutputName);
    sizes = InputSizes::read(model);
  }

  ~State() {
    if (session) ort::ReleaseSession(library.api)(session);
    if (memory) ort::ReleaseMemoryInfo(library.api)(memory);
    if (env) ort::ReleaseEnv(library.api)(env);
  }
};

OnnxRuntimeSession::OnnxRuntimeSession(const std::filesystem::path& model, const OnnxRuntimeOptions& options)
    : state_(std::make_unique<State>()) {
  state_->file = model.string();
  if (!std::filesystem::exists(model))
    throw Error(ErrorContext{.stage = kStage, .file = state_->file}, "there is no such file");
  state_->library = open_library(options.library);
  state_->load(model, options);
}

OnnxRuntimeSession::OnnxRuntimeSession(OnnxRuntimeSession&&) noexcept = default;
OnnxRuntimeSession& OnnxRuntimeSession::operator=(OnnxRuntimeSession&&) noexcept = default;
OnnxRuntimeSession::~OnnxRuntimeSession() = default;

const std::vector<std::string>& OnnxRuntimeSession::input_names() const { return state_->input_names; }
const std::vector<std::string>& OnnxRuntimeSession::output_names() const { return state_->output_names; }
std::string OnnxRuntimeSession::version() const { return state_->library.version; }

std::vector<at::Tensor> OnnxRuntimeSession::run(const std::map<std::string, at::Tensor>& inputs,
                                                const std::map<std::string, at::Tensor>& targets) {
  const State& state = *state_;
  std::vector<std::string> known = state.input_names;
  known.insert(known.end(), state.defaulted_names.begin(), state.defaulted_names.end());
  std::vector<at::Tensor> tensors;
  std::vector<const char*> names;
  std::vector<std::shared_ptr<ort::Value>> owners;
  std::vector<const ort::Value*> values;
  for (const auto& [name, tensor] : inputs) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorContext{.stage = kStage, .file = state.file},
                  "the model has no input '" + name + "'" + did_you_mean(name, known));
    tensors.push_back(tensor.contiguous());
    names.push_back(name.c_str());
    owners.push_back(state.wrap(tensors.back()));
    values.push_back(owners.back().get());
  }
  for (const auto& name : state.input_names)
    if (!inputs.contains(name))
      throw Error(ErrorContext{.stage = kStage, .file = state.file}, "input '" + name + "' is missing");

  state.sizes.check(inputs, {.stage = kStage, .op = "", .module = "", .file = state.file});

  std::vector<const char*> output_names;
  for (const auto& name : state.output_names) output_names.push_back(name.c_str());
  std::vector<ort::Value*> outputs(output_names.size());
  std::map<std::string, std::shared_ptr<ort::Value>> written;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const auto target = targets.find(state.output_names[i]); target != targets.end())
      outputs[i] = (written[target->first] = state.wrap(target->second)).get();
  state.call(ort::Run, state.session, static_cast<const ort::RunOptions*>(nullptr),
             static_cast<const char* const*>(names.data()), static_cast<const ort::Value* const*>(values.data()),
             values.size(), static_cast<const char* const*>(output_names.data()), output_names.size(), outputs.data());
  owners.clear();
  for (size_t i = 0; i < outputs.size(); ++i)
    owners.push_back(written.contains(state.output_names[i]) ? nullptr : state.own(outputs[i]));
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < owners.size(); ++i)
    results.push_back(owners[i] ? state.unwrap(owners[i]) : targets.at(state.output_names[i]));
  return results;
}

}  // namespace transporters
