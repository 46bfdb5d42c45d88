#include "transporters/runners/interpreter.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "transporters/error.h"
#include "transporters/graph/ivalue_torch.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/graph/text.h"
#include "transporters/runners/node_plan.h"

namespace transporters {
namespace {

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

std::string sizes_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

// The tensor itself when it has these strides, else a copy that has them.
at::Tensor with_strides(const at::Tensor& tensor, at::IntArrayRef strides) {
  if (tensor.strides() == strides) return tensor;
  return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
}

const ErrorContext kRun{.stage = "run"};

}  // namespace

class Interpreter::Plan {
 public:
  explicit Plan(const Program& program) : symbols_(program) {
    for (const auto* input : program.graph->inputs()) add_slot(input);
    for (const auto& node : *program.graph)
      for (const auto* output : node.outputs()) add_slot(output);
    registers_.resize(slots_.size());
    for (const auto& input : program.inputs) add_input(input, program);
    for (const auto& node : *program.graph) nodes_.emplace_back(node, slots_, symbols_);
    for (const auto& output : program.outputs) add_output(output);
    plan_last_uses(program);
    plan_in_place(program);
    for (size_t slot = 0; slot < registers_.size(); ++slot)
      if (!state_slots_.contains(slot)) run_slots_.push_back(slot);
    slots_.clear();
  }

  std::vector<c10::IValue> run(const std::vector<at::Tensor>& user_inputs) {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Cleanup cleanup{*this};
    symbols_.reset();
    bind_inputs(user_inputs);
    choose_in_place(user_inputs);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].run(registers_, symbols_, stack_);
      if (observer_) observer_(i, nodes_[i].outputs(registers_));
      nodes_[i].release(registers_);
    }
    return finish(user_inputs);
  }

  std::vector<at::Tensor> in_order(const std::map<std::string, at::Tensor>& by_name) const {
    for (const auto& [name, tensor] : by_name)
      if (std::find(input_names_.begin(), input_names_.end(), name) == input_names_.end())
        throw Error(kRun, "there is no input '" + name + "'" + did_you_mean(name, input_names_));
    std::vector<at::Tensor> inputs;
    for (const auto& name : input_names_) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) throw Error(kRun, "the input '" + name + "' is missing");
      inputs.push_back(found->second);
    }
    return inputs;
  }

  at::Tensor buffer(const std::string& target) const {
    const auto found = buffers_.find(target);
    if (found != buffers_.end()) return registers_[found->second].toTensor().clone();
    std::vector<std::string> known;
    for (const auto& [name, slot] : buffers_) known.push_back(name);
    throw Error(kRun, "there is no buffer '" + target + "'" + did_you_mean(target, known));
  }

  void observe(Observer observer) { observer_ = std::move(observer); }

  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }

 private:
  struct UserInput {
    size_t slot;
    std::string what;  // "input 'x'"
    bool is_tensor;
    ScalarType dtype = ScalarType::Undefined;
    std::string type;  // for messages
    std::vector<size_t> sizes;
    std::vector<size_t> strides;  // empty: contiguous
    std::vector<SymbolBinding> bindings;
  };
  struct Output {
    std::optional<size_t> slot;
    std::optional<size_t> expr;
    c10::IValue constant;
  };
  struct Mutation {
    size_t from;
    size_t to;                                    // register of the buffer, or position among user inputs
    std::optional<size_t> writer = std::nullopt;  // the node that can write to a user input directly
  };
  // Frees the values of a run, also when it throws; state stays.
  struct Cleanup {
    Plan& plan;
    ~Cleanup() {
      for (const size_t slot : plan.run_slots_) plan.registers_[slot] = {};
      plan.stack_.clear();
    }
  };

  void add_slot(const Value* value) { slots_.emplace(value, slots_.size()); }

  void add_input(const InputSpec& input, const Program& program) {
    if (input.value == nullptr) return;
    const size_t slot = slots_.at(input.value);
    if (input.kind == InputKind::UserInput) {
      add_user_input(input, slot);
      return;
    }
    const auto state = program.state.find(input.target);
    if (state == program.state.end() || (state->second.data == nullptr && state->second.numel() > 0))
      throw Error(kRun, "the program has no data for '" + input.target + "'; load its state first");
    registers_[slot] = to_tensor(state->second);
    state_slots_.insert(slot);
    if (input.kind == InputKind::Buffer) buffers_[input.target] = slot;
  }

  void add_user_input(const InputSpec& input, size_t slot) {
    UserInput row{slot, "input '" + input.target + "'", input.value->is_tensor()};
    row.type = to_text(input.value->type());
    row.bindings = symbols_.bindings(input.value);
    if (row.is_tensor) {
      row.dtype = input.value->dtype();
      for (const auto& size : input.value->sizes()) row.sizes.push_back(symbols_.add(size));
      for (const auto& stride : input.value->tensor().strides) row.strides.push_back(symbols_.add(stride));
    }
    user_inputs_.push_back(std::move(row));
    input_names_.push_back(input.target);
  }

  void add_output(const OutputSpec& output) {
    if (output.kind == OutputKind::BufferMutation) {
      buffer_mutations_.push_back({slots_.at(output.value), buffers_.at(output.target)});
    } else if (output.kind == OutputKind::UserInputMutation) {
      const auto found = std::find(input_names_.begin(), input_names_.end(), output.target);
      input_mutations_.push_back({slots_.at(output.value), static_cast<size_t>(found - input_names_.begin())});
    } else {
      Output row;
      const auto* expr = std::get_if<Expr>(&output.constant);
      if (output.value != nullptr) {
        row.slot = slots_.at(output.value);
      } else if (expr != nullptr) {
        row.expr = symbols_.add(*expr);
      } else if (const auto* text = std::get_if<std::string>(&output.constant)) {
        row.constant = *text;
      } else {
        row.constant = to_ivalue(output.constant, ArgumentKind::Scalar);
      }
      outputs_.push_back(std::move(row));
      output_names_.push_back(output.target);
    }
  }

  void plan_last_uses(const Program& program) {
    std::vector<std::optional<size_t>> last(registers_.size());
    size_t index = 0;
    for (const auto& node : *program.graph) {
      for (const auto* output : node.outputs()) last[slots_.at(output)] = index;
      node.for_each_input([&](const Value* value) { last[slots_.at(value)] = index; });
      ++index;
    }
    for (const auto* output : program.graph->outputs()) last[slots_.at(output)].reset();
    for (size_t slot = 0; slot < last.size(); ++slot)
      if (last[slot] && !state_slots_.contains(slot)) nodes_[*last[slot]].last_uses.push_back(slot);
  }

  // A user input that one node reads, to write to it, needs no second buffer.
  void plan_in_place(const Program& program) {
    std::unordered_map<size_t, std::vector<size_t>> readers;
    std::unordered_map<size_t, size_t> writers;
    size_t index = 0;
    for (const auto& node : *program.graph) {
      node.for_each_input([&](const Value* value) { readers[slots_.at(value)].push_back(index); });
      for (const auto* output : node.outputs()) writers[slots_.at(output)] = index;
      ++index;
    }
    std::set<size_t> returned;
    for (const auto& output : outputs_)
      if (output.slot) returned.insert(*output.slot);
    for (auto& mutation : input_mutations_) {
      const size_t input = user_inputs_[mutation.to].slot;
      const auto writer = writers.find(mutation.from);
      if (writer == writers.end() || readers[input] != std::vector<size_t>{writer->second}) continue;
      if (returned.contains(input) || nodes_[writer->second].first_input() != input) continue;
      if (nodes_[writer->second].find_in_place()) mutation.writer = writer->second;
    }
  }

  // Into the caller's memory only where nothing else that was given lies in it.
  void choose_in_place(const std::vector<at::Tensor>& user_inputs) {
    std::unordered_map<const c10::StorageImpl*, int> users;
    for (const auto& tensor : user_inputs) ++users[storage_of(tensor)];
    for (const size_t slot : state_slots_) ++users[storage_of(registers_[slot].toTensor())];
    for (const auto& mutation : input_mutations_) {
      if (!mutation.writer) continue;
      const at::Tensor& given = user_inputs[mutation.to];
      const bool is_own = registers_[user_inputs_[mutation.to].slot].toTensor().is_same(given);
      nodes_[*mutation.writer].is_in_place =
          is_own && users[storage_of(given)] == 1 && given.is_non_overlapping_and_dense();
    }
  }

  void bind_inputs(const std::vector<at::Tensor>& tensors) {
    if (tensors.size() != user_inputs_.size())
      throw Error(kRun, "expected " + std::to_string(user_inputs_.size()) + " inputs (" + join(input_names_) +
                            "), got " + std::to_string(tensors.size()));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const UserInput& input = user_inputs_[i];
      check_type(input, tensors[i]);
      registers_[input.slot] = input.is_tensor ? c10::IValue(tensors[i]) : c10::IValue(tensors[i].item());
      symbols_.bind(input.bindings, registers_[input.slot], kRun, input.what);
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      if (user_inputs_[i].is_tensor) check_sizes(user_inputs_[i], tensors[i]);
  }

  static void check_type(const UserInput& input, const at::Tensor& tensor) {
    if (!tensor.defined()) throw Error(kRun, input.what + ": expected " + input.type + ", got an undefined tensor");
    if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided)
      throw Error(kRun, input.what + ": expected a strided CPU tensor, got " + tensor.toString());
    if (!input.is_tensor) {
      if (tensor.numel() != 1)
        throw Error(kRun,
                    input.what + ": expected a number as a tensor of one element, got " + sizes_text(tensor.sizes()));
      return;
    }
    if (tensor.scalar_type() != input.dtype)
      throw Error(kRun, input.what + ": expected dtype " + std::string(dtype_text(input.dtype)) + ", got " +
                            std::string(dtype_text(tensor.scalar_type())));
    if (static_cast<size_t>(tensor.dim()) != input.sizes.size())
      throw Error(kRun, input.what + ": expected " + std::to_string(input.sizes.size()) + " dimensions (" + input.type +
                            "), got " + std::to_string(tensor.dim()) + " (" + sizes_text(tensor.sizes()) + ")");
  }

  // Sizes agree with the declared ones, and the strides that the graph was made for are there.
  void check_sizes(const UserInput& input, const at::Tensor& tensor) {
    std::vector<int64_t> strides(input.sizes.size());
    int64_t expected_stride = 1;
    bool same_strides = true;
    for (size_t dim = input.sizes.size(); dim-- > 0;) {
      const int64_t expected = symbols_.integer(input.sizes[dim]);
      const int64_t got = tensor.size(static_cast<int64_t>(dim));
      if (expected != got) {
        const Expr& expr = symbols_.expr(input.sizes[dim]);
        std::string message = input.what + " dim " + std::to_string(dim) + ": expected ";
        if (!expr.is_constant()) message += expr.str() + " = ";
        message += std::to_string(expected) + ", got " + std::to_string(got);
        throw Error(kRun, expr.is_constant() ? message : message + "; " + symbols_.explain(expr));
      }
      strides[dim] = input.strides.empty() ? expected_stride : symbols_.integer(input.strides[dim]);
      expected_stride *= std::max<int64_t>(got, 1);
      same_strides &= got <= 1 || tensor.stride(static_cast<int64_t>(dim)) == strides[dim];
    }
    if (!same_strides && tensor.numel() > 0) registers_[input.slot] = with_strides(tensor, strides);
  }

  std::vector<c10::IValue> finish(const std::vector<at::Tensor>& user_inputs) {
    std::vector<c10::IValue> results;
    for (const auto& output : outputs_) {
      if (output.slot) {
        results.push_back(registers_[*output.slot]);
      } else if (output.expr) {
        results.push_back(std::visit([](auto value) { return c10::IValue(value); }, symbols_.value(*output.expr)));
      } else {
        results.push_back(output.constant);
      }
    }
    protect(results, user_inputs);
    apply_mutations(results, user_inputs);
    // The new value of an input, returned as well, is the input.
    for (const auto& mutation : input_mutations_)
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (outputs_[i].slot == mutation.from) results[i] = user_inputs[mutation.to];
    return results;
  }

  // Results that share bytes with state, or with an input about to be overwritten, become copies.
  void protect(std::vector<c10::IValue>& results, const std::vector<at::Tensor>& user_inputs) {
    std::unordered_set<const c10::StorageImpl*> taken;
    for (const size_t slot : state_slots_) taken.insert(storage_of(registers_[slot].toTensor()));
    for (const auto& mutation : input_mutations_) taken.insert(storage_of(user_inputs[mutation.to]));
    const auto is_new_value = [&](const Output& output) {
      return std::any_of(input_mutations_.begin(), input_mutations_.end(),
                         [&](const Mutation& mutation) { return output.slot == mutation.from; });
    };
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].isTensor() && !is_new_value(outputs_[i]) && taken.contains(storage_of(results[i].toTensor())))
        results[i] = results[i].toTensor().clone();
  }

  void apply_mutations(const std::vector<c10::IValue>& results, const std::vector<at::Tensor>& user_inputs) {
    if (buffer_mutations_.empty() && input_mutations_.empty()) return;
    // New values are made independent of everything a caller holds and of each other before any of them is stored.
    std::unordered_set<const c10::StorageImpl*> taken;
    for (const auto& result : results)
      if (result.isTensor()) taken.insert(storage_of(result.toTensor()));
    for (const auto& tensor : user_inputs) taken.insert(storage_of(tensor));
    for (const size_t slot : state_slots_) taken.insert(storage_of(registers_[slot].toTensor()));
    const auto own = [&](size_t slot) {
      const at::Tensor& value = registers_[slot].toTensor();
      const at::Tensor owned = taken.contains(storage_of(value)) ? value.clone() : value;
      taken.insert(storage_of(owned));
      return owned;
    };
    std::vector<at::Tensor> buffers, inputs;
    for (const auto& mutation : buffer_mutations_) buffers.push_back(own(mutation.from));
    for (const auto& mutation : input_mutations_)
      inputs.push_back(is_written(mutation) ? at::Tensor() : own(mutation.from));
    for (size_t i = 0; i < buffers.size(); ++i) {
      auto& buffer = registers_[buffer_mutations_[i].to];
      buffer = with_strides(buffers[i], buffer.toTensor().strides());
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) user_inputs[input_mutations_[i].to].copy_(inputs[i]);
  }

  bool is_written(const Mutation& mutation) const { return mutation.writer && nodes_[*mutation.writer].is_in_place; }

  static std::string join(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  Slots slots_;  // while the plan is made
  SymbolValues symbols_;
  Registers registers_;
  std::vector<c10::IValue> stack_;
  std::vector<NodePlan> nodes_;
  Observer observer_;
  std::vector<UserInput> user_inputs_;
  std::vector<Output> outputs_;
  std::vector<Mutation> buffer_mutations_;
  std::vector<Mutation> input_mutations_;
  std::set<size_t> state_slots_;
  std::vector<size_t> run_slots_;  // all others: empty between runs
  std::map<std::string, size_t> buffers_;
  std::vector<std::string> input_names_;
  std::vector<std::string> output_names_;
};

Interpreter::Interpreter(const Program& program) : plan_(std::make_unique<Plan>(program)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

const std::vector<std::string>& Interpreter::input_names() const { return plan_->input_names(); }
const std::vector<std::string>& Interpreter::output_names() const { return plan_->output_names(); }

std::vector<c10::IValue> Interpreter::run(const std::vector<at::Tensor>& user_inputs) {
  return plan_->run(user_inputs);
}

std::map<std::string, c10::IValue> Interpreter::run_named(const std::map<std::string, at::Tensor>& user_inputs) {
  const auto results = plan_->run(plan_->in_order(user_inputs));
  std::map<std::string, c10::IValue> named;
  for (size_t i = 0; i < results.size(); ++i) named[plan_->output_names()[i]] = results[i];
  return named;
}

void Interpreter::observe(Observer observer) { plan_->observe(std::move(observer)); }

at::Tensor Interpreter::buffer(const std::string& target) const { return plan_->buffer(target); }

}  // namespace transporters
