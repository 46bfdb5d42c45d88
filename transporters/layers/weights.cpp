#include "transporters/layers/weights.h"

#include <algorithm>
#include <cstring>

#include "transporters/checkpoint/config.h"
#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"

namespace transporters {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool equal_bytes(const TensorData& a, const TensorData& b) {
  if (a.is_same_as(b)) return true;
  return a.dtype == b.dtype && a.sizes == b.sizes && std::memcmp(a.data, b.data, a.nbytes()) == 0;
}

std::string sizes_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

// "\n  a\n  b" with at most twenty lines.
std::string lines(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i == 20) return text + "\n  and " + std::to_string(items.size() - i) + " more";
    text += "\n  " + items[i];
  }
  return text;
}

// Problems after which no more are looked for: a nonsense number of layers would take all memory with their names.
constexpr size_t kMaxProblems = 2000;

// A tensor of these sizes that takes no memory; nullopt when its elements can't be counted.
std::optional<at::Tensor> placeholder(at::IntArrayRef sizes, const at::TensorOptions& options) {
  int64_t bytes = static_cast<int64_t>(options.dtype().itemsize());
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return at::empty({}, options).expand(sizes);
}

}  // namespace

WeightStore::WeightStore(const Checkpoint& checkpoint, Naming naming, std::optional<at::ScalarType> dtype)
    : checkpoint_(checkpoint), naming_(std::move(naming)), dtype_(dtype) {
  for (const auto& name : checkpoint.names()) file_names_.emplace(modern_name(name), name);
  const std::string prefix = naming_.base_prefix + ".";
  for (const auto& [name, in_file] : file_names_)
    if (starts_with(name, prefix)) file_prefix_ = prefix;
}

std::string WeightStore::modern_name(std::string name) const {
  for (const auto& [old, now] : naming_.renames) {
    if (old.front() == '^') {
      if (starts_with(name, std::string_view(old).substr(1))) name.replace(0, old.size() - 1, now);
    } else if (const auto at = name.find(old); at != std::string::npos) {
      name.replace(at, old.size(), now);
    }
  }
  return name;
}

std::optional<std::string> WeightStore::find(const std::string& name) const {
  std::string wanted = name;
  const std::string prefix = naming_.base_prefix + ".";
  if (naming_.is_base) {
    wanted = file_prefix_ + name;
  } else if (file_prefix_.empty() && starts_with(name, prefix)) {
    wanted = name.substr(prefix.size());
  }
  if (file_names_.count(wanted) == 0) return std::nullopt;
  return wanted;
}

void WeightStore::tie(const std::string& name, const std::string& other) {
  const auto a = find(name);
  const auto b = find(other);
  if (a && b) {
    if (equal_bytes(checkpoint_.get(file_names_.at(*a)), checkpoint_.get(file_names_.at(*b)))) tied_[name] = other;
  } else if (b) {
    tied_[name] = other;
  } else {
    tied_[other] = name;
  }
}

at::Tensor WeightStore::take(const std::string& name, at::IntArrayRef sizes) {
  // In place of a tensor with a problem, which is noted already.
  const auto stand_in = [&](const at::TensorOptions& options) {
    const auto tensor = placeholder(sizes, options);
    if (!tensor || missing_.size() + mismatched_.size() > kMaxProblems) finish();
    return tensor.value_or(at::Tensor());
  };
  const auto tied = tied_.find(name);
  const std::string source = tied == tied_.end() ? name : tied->second;
  const auto found = find(source);
  if (!found) {
    // A tied pair of which neither is there is reported once.
    if (std::find(missing_.begin(), missing_.end(), source) == missing_.end()) missing_.push_back(source);
    return stand_in(at::TensorOptions().dtype(dtype_.value_or(at::kFloat)));
  }
  auto& tensor = taken_[*found];
  if (!tensor.defined()) {
    tensor = to_tensor(checkpoint_.get(file_names_.at(*found)));
    if (const auto dtype = dtype_of(name); dtype && tensor.is_floating_point()) tensor = tensor.to(*dtype);
  }
  if (!tensor.is_floating_point()) {
    mismatched_.push_back(name + ": expected a floating-point type, the checkpoint has " +
                          dtype_name(tensor.scalar_type()));
    return stand_in(at::TensorOptions().dtype(dtype_.value_or(at::kFloat)));
  }
  if (tensor.sizes() != sizes) {
    mismatched_.push_back(name + ": expected " + sizes_text(sizes) + ", the checkpoint has " +
                          sizes_text(tensor.sizes()));
    return stand_in(tensor.options());
  }
  return tensor;
}

bool WeightStore::is_obsolete(const std::string& name) const {
  return std::any_of(naming_.obsolete.begin(), naming_.obsolete.end(),
                     [&](const auto& end) { return name == end || ends_with(name, "." + end); });
}

std::optional<at::ScalarType> WeightStore::dtype_of(const std::string& name) const {
  if (dtype_ != at::kHalf) return dtype_;
  const auto is_in = [&](const std::string& member) { return name.find("." + member + ".") != std::string::npos; };
  return std::any_of(naming_.kept_float32.begin(), naming_.kept_float32.end(), is_in) ? at::kFloat : at::kHalf;
}

std::vector<std::string> WeightStore::finish() const {
  std::vector<std::string> unused;
  std::vector<std::string> unexpected;
  for (const auto& [name, in_file] : file_names_) {
    if (taken_.count(name) || is_obsolete(name)) continue;
    const bool in_base = starts_with(name, file_prefix_);
    const std::string inside = in_base ? name.substr(file_prefix_.size()) : name;
    const bool is_optional = std::any_of(naming_.optional.begin(), naming_.optional.end(), [&](const auto& member) {
      return inside == member || starts_with(inside, member + ".");
    });
    // A tensor that is tied to one that was taken is the same tensor.
    const bool is_tied = tied_.count(name) || tied_.count(naming_.base_prefix + "." + inside);
    if (is_tied) continue;
    (in_base && !is_optional ? unexpected : unused).push_back(in_file);
  }

  std::string message;
  if (!missing_.empty()) {
    std::vector<std::string> candidates = unexpected;
    candidates.insert(candidates.end(), unused.begin(), unused.end());
    std::vector<std::string> items;
    for (const auto& name : missing_) items.push_back(items.size() < 20 ? name + did_you_mean(name, candidates) : name);
    message += "\n" + std::to_string(missing_.size()) +
               " tensors are missing (weights are never filled at random; pick the class the checkpoint was saved "
               "from, or fine-tune the head first):" +
               lines(items);
  }
  if (!mismatched_.empty()) message += "\nsizes or types differ from what config.json says:" + lines(mismatched_);
  if (!unexpected.empty())
    message += "\n" + std::to_string(unexpected.size()) +
               " tensors belong to no part of the model that config.json describes:" + lines(unexpected);
  if (!message.empty())
    throw Error({.stage = "checkpoint", .file = checkpoint_.folder()},
                "config.json and the weights disagree" + message);
  return unused;
}

}  // namespace transporters
