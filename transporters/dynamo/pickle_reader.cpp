#include "transporters/dynamo/pickle_reader.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <unordered_map>

#include "transporters/dynamo/zip_reader.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

std::optional<ScalarType> storage_dtype(const std::string& name) {
  static const std::map<std::string, ScalarType> table = {
      {"ByteStorage", ScalarType::Byte},
      {"UntypedStorage", ScalarType::Byte},
      {"CharStorage", ScalarType::Char},
      {"ShortStorage", ScalarType::Short},
      {"IntStorage", ScalarType::Int},
      {"LongStorage", ScalarType::Long},
      {"HalfStorage", ScalarType::Half},
      {"FloatStorage", ScalarType::Float},
      {"DoubleStorage", ScalarType::Double},
      {"BFloat16Storage", ScalarType::BFloat16},
      {"BoolStorage", ScalarType::Bool},
      {"ComplexFloatStorage", ScalarType::ComplexFloat},
      {"ComplexDoubleStorage", ScalarType::ComplexDouble},
  };
  const auto found = table.find(name);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ScalarType> torch_dtype(const std::string& name) {
  static const std::map<std::string, ScalarType> table = {
      {"uint8", ScalarType::Byte},
      {"int8", ScalarType::Char},
      {"int16", ScalarType::Short},
      {"int32", ScalarType::Int},
      {"int64", ScalarType::Long},
      {"float16", ScalarType::Half},
      {"float32", ScalarType::Float},
      {"float64", ScalarType::Double},
      {"bfloat16", ScalarType::BFloat16},
      {"bool", ScalarType::Bool},
      {"complex32", ScalarType::ComplexHalf},
      {"complex64", ScalarType::ComplexFloat},
      {"complex128", ScalarType::ComplexDouble},
      {"uint16", ScalarType::UInt16},
      {"uint32", ScalarType::UInt32},
      {"uint64", ScalarType::UInt64},
      {"float8_e4m3fn", ScalarType::Float8_e4m3fn},
      {"float8_e5m2", ScalarType::Float8_e5m2},
      {"float8_e4m3fnuz", ScalarType::Float8_e4m3fnuz},
      {"float8_e5m2fnuz", ScalarType::Float8_e5m2fnuz},
      {"float8_e8m0fnu", ScalarType::Float8_e8m0fnu},
  };
  const auto found = table.find(name);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

// Deeper containers come from damaged files.
constexpr int kMaxDepth = 200;
constexpr uint64_t kMaxRepeated = 64 << 20;
constexpr const char* kRebuildFromType = "torch._tensor._rebuild_from_type_v2";

// The opcodes of pickle's protocols 2 to 5 that data without code needs (Lib/pickletools.py describes them).
class Unpickler {
 public:
  Unpickler(const ZipReader& zip, std::string_view code) : zip_(zip), code_(code) {}
  Unpickler(const Unpickler&) = delete;
  Unpickler& operator=(const Unpickler&) = delete;
  // What was not given out goes container by container: nested ones would free each other in a recursion without bound.
  ~Unpickler() {
    if (finished_) return;
    for (const PickleValue& container : containers_) {
      if (const auto* list = container.get_if<std::shared_ptr<PickleList>>()) (*list)->clear();
      if (const auto* dict = container.get_if<std::shared_ptr<PickleDict>>()) (*dict)->clear();
      if (const auto* object = container.get_if<std::shared_ptr<PickleObject>>()) (*object)->state.reset();
    }
  }

  PickleValue run() {
    PickleValue value = execute();
    // Also those that the value does not hold: they go now.
    for (const PickleValue& container : containers_) height(container, 0);
    finished_ = true;
    return value;
  }

 private:
  PickleValue execute() {
    while (true) {
      const char opcode = take(1)[0];
      switch (opcode) {
        case '\x80':  // PROTO
          take(1);
          break;
        case '\x95':  // FRAME
          take(8);
          break;
        case '.':  // STOP
          return pop();
        case 'N':
          push({});
          break;
        case '\x88':
          push({true});
          break;
        case '\x89':
          push({false});
          break;
        case 'J':
          push({int64_t{static_cast<int32_t>(number(4))}});
          break;
        case 'K':
          push({static_cast<int64_t>(number(1))});
          break;
        case 'M':
          push({static_cast<int64_t>(number(2))});
          break;
        case '\x8a':
          push({long_integer(number(1))});
          break;
        case 'G':
          push({real()});
          break;
        case 'X':
          push({std::string(take(number(4)))});
          break;
        case '\x8c':
          push({std::string(take(number(1)))});
          break;
        case '\x8d':
          push({std::string(take(number(8)))});
          break;
        case ')':
          push(tuple({}));
          break;
        case ']':
          push(container(std::make_shared<PickleList>()));
          break;
        case '}':
          push(container(std::make_shared<PickleDict>()));
          break;
        case '(':
          marks_.push_back(stack_.size());
          break;
        case 't':
          push(tuple(pop_mark()));
          break;
        case '\x85':
          push(tuple(pop_several(1)));
          break;
        case '\x86':
          push(tuple(pop_several(2)));
          break;
        case '\x87':
          push(tuple(pop_several(3)));
          break;
        case 'a':
          append(pop_several(1));
          break;
        case 'e':
          append(pop_mark());
          break;
        case 's':
          set_items(pop_several(2));
          break;
        case 'u':
          set_items(pop_mark());
          break;
        case 'q':
          memo_[number(1)] = top();
          break;
        case 'r':
          memo_[number(4)] = top();
          break;
        case '\x94':
          memo_[memo_.size()] = top();
          break;
        case 'h':
          push(remembered(number(1)));
          break;
        case 'j':
          push(remembered(number(4)));
          break;
        case 'c': {
          PickleGlobal global;
          global.module = line();
          global.name = line();
          push({std::move(global)});
          break;
        }
        case '\x93': {  // STACK_GLOBAL
          const PickleValue name = pop(), module = pop();
          push({PickleGlobal{text(module), text(name)}});
          break;
        }
        case 'Q':  // BINPERSID
          push(storage(pop()));
          break;
        case 'R':
        case '\x81': {  // REDUCE, NEWOBJ
          const PickleValue arguments = pop(), callable = pop();
          push(call(callable, arguments, opcode == '\x81'));
          break;
        }
        case 'b':
          set_state();
          break;
        case '0':
          pop();
          break;
        default:
          fail("holds the pickle opcode " + std::to_string(static_cast<unsigned char>(opcode)) +
               ", which plain data does not need");
      }
    }
  }

  [[noreturn]] void fail(const std::string& message) const { zip_.fail("data.pkl " + message); }

  std::string_view take(uint64_t size) {
    if (size > code_.size() - at_) fail("ends too early");
    const std::string_view bytes = code_.substr(at_, size);
    at_ += size;
    return bytes;
  }

  uint64_t number(int size) {
    const std::string_view bytes = take(static_cast<uint64_t>(size));
    uint64_t value = 0;
    for (int i = 0; i < size; ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes[static_cast<size_t>(i)])} << (8 * i);
    return value;
  }

  int64_t long_integer(uint64_t size) {
    if (size > 8) fail("holds an integer of more than 64 bits");
    if (size == 0) return 0;
    const int bits = static_cast<int>(size) * 8;
    // The highest bit is the sign.
    return static_cast<int64_t>(number(static_cast<int>(size)) << (64 - bits)) >> (64 - bits);
  }

  double real() {
    uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    return std::bit_cast<double>(bits);
  }

  std::string line() {
    const auto end = code_.find('\n', at_);
    if (end == std::string_view::npos) fail("ends too early");
    std::string text(code_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }

  void push(PickleValue value) { stack_.push_back(std::move(value)); }

  PickleValue& top() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() >= stack_.size())) fail("takes from an empty stack");
    return stack_.back();
  }

  PickleValue pop() {
    PickleValue value = std::move(top());
    stack_.pop_back();
    return value;
  }

  PickleList pop_several(size_t count) {
    PickleList values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }

  PickleList pop_mark() {
    if (marks_.empty()) fail("takes from an empty stack");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    PickleList values(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    return values;
  }

  template <typename T>
  PickleValue container(std::shared_ptr<T> shared) {
    containers_.push_back({std::move(shared)});
    return containers_.back();
  }

  PickleValue tuple(PickleList values) {
    PickleValue value = container(std::make_shared<PickleList>(std::move(values)));
    value.is_tuple = true;
    return value;
  }

  // How deep containers nest below `value`, which itself is at `depth`; fails for those too deep or without end.
  int height(const PickleValue& value, int depth) {
    const PickleList* list = value.list();
    const PickleDict* dict = value.dict();
    const PickleObject* object = value.object();
    const void* address = list != nullptr ? list : dict != nullptr ? static_cast<const void*>(dict) : object;
    if (address == nullptr) return 0;
    const auto known = heights_.find(address);
    int result = known == heights_.end() ? 0 : known->second;
    if (depth + result > kMaxDepth) fail("nests containers deeper than " + std::to_string(kMaxDepth) + " levels");
    if (known != heights_.end()) return result;
    const auto look = [&](const PickleValue& inner) { result = std::max(result, 1 + height(inner, depth + 1)); };
    if (list != nullptr)
      for (const PickleValue& element : *list) look(element);
    if (dict != nullptr) {
      for (const auto& [key, element] : *dict) {
        look(key);
        look(element);
      }
    }
    if (object != nullptr && object->state != nullptr) look(*object->state);
    heights_[address] = result;
    return result;
  }

  const PickleValue& remembered(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail("refers to a value that it does not hold");
    // A short file could name one long text many times.
    const PickleValue& value = found->second;
    if (const auto* text = value.get_if<std::string>()) repeated_ += text->size();
    if (const auto* tensor = value.get_if<TensorData>()) repeated_ += tensor->sizes.size() * 2 * sizeof(int64_t);
    if (repeated_ > kMaxRepeated) fail("repeats more than " + std::to_string(kMaxRepeated) + " bytes of text");
    return value;
  }

  std::string text(const PickleValue& value) const {
    const auto* text = value.get_if<std::string>();
    if (text == nullptr) fail("has another value where a string should be");
    return *text;
  }

  int64_t integer(const PickleValue& value) const {
    const auto* integer = value.get_if<int64_t>();
    if (integer == nullptr) fail("has another value where an integer should be");
    return *integer;
  }

  void append(PickleList values) {
    const auto* list = top().get_if<std::shared_ptr<PickleList>>();
    if (list == nullptr) fail("appends to what is no list");
    for (PickleValue& value : values) (*list)->push_back(std::move(value));
  }

  void set_items(PickleList values) {
    const auto* dict = top().get_if<std::shared_ptr<PickleDict>>();
    if (dict == nullptr || values.size() % 2 != 0) fail("sets items of what is no dictionary");
    for (size_t i = 0; i < values.size(); i += 2) (*dict)->emplace_back(std::move(values[i]), std::move(values[i + 1]));
  }

  // ("storage", class, key, device, size): the record that holds the bytes, as a one-dimensional tensor.
  PickleValue storage(const PickleValue& id) const {
    const PickleList* parts = id.list();
    if (parts == nullptr || parts->size() != 5 || text((*parts)[0]) != "storage") fail("has a malformed storage");
    const auto* type = (*parts)[1].get_if<PickleGlobal>();
    const auto dtype = type == nullptr ? std::nullopt : storage_dtype(type->name);
    if (!dtype) fail("has a storage of a type that is not known");
    const std::string_view bytes = zip_.get("data/" + text((*parts)[2]));
    TensorData data;
    data.dtype = *dtype;
    data.sizes = {static_cast<int64_t>(bytes.size() / c10::elementSize(*dtype))};
    data.strides = {1};
    data.data = bytes.data();
    data.owner = zip_.owner();
    return {data};
  }

  std::vector<int64_t> integers(const PickleValue& value) const {
    const PickleList* list = value.list();
    if (list == nullptr) fail("has another value where a tuple of integers should be");
    std::vector<int64_t> values;
    for (const PickleValue& element : *list) values.push_back(integer(element));
    return values;
  }

  PickleValue rebuild_tensor(const PickleList& arguments, size_t dtype_argument) const {
    if (arguments.size() < 4) fail("has a malformed tensor");
    const auto* storage = arguments[0].get_if<TensorData>();
    if (storage == nullptr) fail("has a tensor without storage");
    TensorData data;
    data.dtype = storage->dtype;
    if (dtype_argument != 0) {
      const auto* type = arguments.size() > dtype_argument ? arguments[dtype_argument].get_if<PickleGlobal>() : nullptr;
      const auto dtype = type == nullptr ? std::nullopt : torch_dtype(type->name);
      if (!dtype) fail("has a tensor of a type that is not known");
      data.dtype = *dtype;
    }
    data.sizes = integers(arguments[2]);
    data.strides = integers(arguments[3]);
    const std::string_view bytes(static_cast<const char*>(storage->data), storage->nbytes());
    if (const auto problem = place_in_storage(data, bytes, storage->owner, integer(arguments[1])))
      fail("has a tensor whose storage " + *problem);
    return {data};
  }

  PickleValue call(const PickleValue& callable, const PickleValue& packed, bool make_object) {
    const auto* function = callable.get_if<PickleGlobal>();
    const PickleList* arguments = packed.list();
    if (function == nullptr || arguments == nullptr) fail("calls what is no function");
    const std::string name = function->module + "." + function->name;
    if (name == "torch._utils._rebuild_tensor_v2") return rebuild_tensor(*arguments, 0);
    if (name == "torch._utils._rebuild_tensor_v3") return rebuild_tensor(*arguments, 6);
    if (name == "torch._utils._rebuild_parameter" && !arguments->empty() &&
        arguments->front().get_if<TensorData>() != nullptr)
      return arguments->front();
    // A tensor with attributes (torch.export marks dynamic inputs so): the function that makes it, its type, its
    // arguments, the attributes.
    if (name == kRebuildFromType && arguments->size() == 4) {
      const auto* inner = arguments->front().get_if<PickleGlobal>();
      if (inner == nullptr || inner->module + "." + inner->name == kRebuildFromType) fail("has a malformed tensor");
      return call(arguments->front(), (*arguments)[2], false);
    }
    if (name == "collections.OrderedDict" && arguments->empty()) return container(std::make_shared<PickleDict>());
    if (name == "torch.Size" && arguments->size() == 1) return arguments->front();
    // The attributes of other objects come with BUILD; arguments of their constructors are not kept.
    if (make_object || name == "copyreg._reconstructor" || name == "torch.device")
      return container(std::make_shared<PickleObject>(PickleObject{*function, nullptr}));
    fail("needs Python's '" + name + "'");
  }

  void set_state() {
    PickleValue state = pop();
    if (const auto* object = top().get_if<std::shared_ptr<PickleObject>>())
      (*object)->state = std::make_shared<PickleValue>(std::move(state));
    // Attributes of an OrderedDict (a state dict's _metadata) are no part of its items.
  }

  const ZipReader& zip_;
  std::string_view code_;
  uint64_t at_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, PickleValue> memo_;
  std::vector<PickleValue> containers_;
  std::unordered_map<const void*, int> heights_;
  uint64_t repeated_ = 0;  // bytes taken from the memo
  bool finished_ = false;
};

}  // namespace

const PickleList* PickleValue::list() const {
  const auto* shared = get_if<std::shared_ptr<PickleList>>();
  return shared == nullptr ? nullptr : shared->get();
}

const PickleDict* PickleValue::dict() const {
  const auto* shared = get_if<std::shared_ptr<PickleDict>>();
  return shared == nullptr ? nullptr : shared->get();
}

const PickleObject* PickleValue::object() const {
  const auto* shared = get_if<std::shared_ptr<PickleObject>>();
  return shared == nullptr ? nullptr : shared->get();
}

const TensorData& PickleValue::tensor(const std::string& what) const {
  const auto* tensor = get_if<TensorData>();
  if (tensor == nullptr) throw Error({.stage = "dynamo"}, "'" + what + "' is no tensor");
  return *tensor;
}

std::vector<std::pair<std::string, PickleValue>> PickleValue::items(const std::string& what) const {
  const PickleDict* entries = dict();
  if (entries == nullptr) throw Error({.stage = "dynamo"}, what + " holds no dictionary");
  std::vector<std::pair<std::string, PickleValue>> result;
  for (const auto& [key, value] : *entries) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr) throw Error({.stage = "dynamo"}, what + " has a key that is no string");
    result.emplace_back(*name, value);
  }
  return result;
}

PickleValue read_pickle_archive(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                const std::string& name) {
  const ZipReader zip(bytes, owner, name);
  return Unpickler(zip, zip.get_checked("data.pkl")).run();
}

std::optional<std::string> place_in_storage(TensorData& data, std::string_view storage,
                                            const std::shared_ptr<const void>& owner, int64_t offset) {
  if (data.sizes.size() != data.strides.size()) return "sizes and strides differ in number";
  const auto element = static_cast<int64_t>(c10::elementSize(data.dtype));
  const auto available = static_cast<int64_t>(storage.size()) / element;
  int64_t last = offset, numel = 1;  // of the axes that are not empty: strides multiply those
  bool empty = false;
  for (size_t i = 0; i < data.sizes.size(); ++i) {
    int64_t reach = 0;
    if (data.sizes[i] < 0 || data.strides[i] < 0 || offset < 0) return "has negative sizes, strides or offset";
    if (data.sizes[i] == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(numel, data.sizes[i], &numel)) return "has sizes beyond 64 bits";
    if (__builtin_mul_overflow(data.sizes[i] - 1, data.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return "has sizes beyond 64 bits";
  }
  data.data = nullptr;
  if (empty) return std::nullopt;
  if (last < 0 || last >= available)
    return "has " + std::to_string(storage.size()) + " bytes, too few for a tensor that reaches element " +
           std::to_string(last);
  const char* begin = storage.data() + offset * element;
  if (reinterpret_cast<std::uintptr_t>(begin) % static_cast<size_t>(element) != 0) {
    const auto size = static_cast<size_t>((last - offset + 1) * element);
    const auto copy = std::shared_ptr<std::byte[]>(new (std::align_val_t(64)) std::byte[size],
                                                   [](std::byte* p) { ::operator delete[](p, std::align_val_t(64)); });
    std::memcpy(copy.get(), begin, size);
    data.data = copy.get();
    data.owner = copy;
  } else {
    data.data = begin;
    data.owner = owner;
  }
  return std::nullopt;
}

}  // namespace transporters::dynamo
