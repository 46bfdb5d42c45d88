#include "transporters/onnx/shared_buffers.h"

#include <doctest/doctest.h>

using namespace transporters::onnx;

namespace {

// A cache of 8 tokens, the places that are written, and what is written there.
struct CacheModel {
  Model model;
  Graph& graph = *model.graph;
  Value* cache = graph.add_input("input.keys", DataType::FLOAT, Shape{Dim::of(8), Dim::of(4)});
  Value* places = graph.add_input("places", DataType::INT64, Shape{Dim::of(2), Dim::of(4)});
  Value* states = graph.add_input("states", DataType::FLOAT, Shape{Dim::of(2), Dim::of(4)});

  Value* emit(const char* op, std::vector<Value*> inputs, const char* name) {
    return graph.insert(nullptr, op, std::move(inputs), {}, {name})->output();
  }
  void write(const char* op = "ScatterElements") { graph.add_output(emit(op, {cache, places, states}, "output.keys")); }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a cache that is written to shares its buffer") {
  for (const char* op : {"ScatterElements", "ScatterND"}) {
    CacheModel made;
    made.write(op);
    CHECK(shared_buffers(made.model) == Names{"keys"});
    record_shared_buffers(made.model);
    CHECK(made.model.metadata.at(kSharedBuffers) == "keys");
  }
  CacheModel whole;
  whole.graph.add_output(whole.emit("Add", {whole.cache, whole.cache}, "output.keys"));
  CHECK(shared_buffers(whole.model).empty());
  record_shared_buffers(whole.model);
  CHECK(whole.model.metadata.empty());
}

TEST_CASE("a reader of the old value must come before the write") {
  CacheModel before;
  Value* sum = before.emit("ReduceSum", {before.cache}, "sum");
  before.states = before.emit("Add", {before.states, sum}, "new");
  before.write();
  CHECK(shared_buffers(before.model) == Names{"keys"});

  CacheModel after;
  after.write();
  after.graph.add_output(after.emit("ReduceSum", {after.cache}, "sum"));
  CHECK(shared_buffers(after.model).empty());

  CacheModel size;
  size.write();
  size.graph.add_output(size.emit("Shape", {size.cache}, "size"));
  CHECK(shared_buffers(size.model) == Names{"keys"});
}

TEST_CASE("a view is the value itself") {
  CacheModel made;
  Value* view = made.emit("Unsqueeze", {made.cache}, "view");
  Value* sum = made.emit("ReduceSum", {view}, "sum");
  made.states = made.emit("Add", {made.states, sum}, "new");
  made.write();
  CHECK(shared_buffers(made.model) == Names{"keys"});
  made.graph.add_output(made.emit("Neg", {view}, "late"));
  CHECK(shared_buffers(made.model).empty());
}

TEST_CASE("the old value is not shared when it is an output, or of another name") {
  CacheModel made;
  made.write();
  made.graph.add_output(made.cache);
  CHECK(shared_buffers(made.model).empty());

  CacheModel other;
  other.graph.add_output(other.emit("ScatterElements", {other.cache, other.places, other.states}, "output.values"));
  CHECK(shared_buffers(other.model).empty());
}
