#include "tests/dynamo/support.h"
#include "transporters/dynamo/crc32.h"
#include "transporters/dynamo/pickle_reader.h"
#include "transporters/dynamo/pickle_writer.h"
#include "transporters/dynamo/zip_writer.h"

namespace transporters::dynamo {
namespace {

std::string archive_of(const std::string& code) {
  std::string bytes;
  ZipWriter zip("archive", [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
  zip.add("data.pkl", code);
  zip.add("data/0", std::string(16, '\0'));
  zip.finish();
  return bytes;
}

std::string error(const std::string& code) {
  const std::string bytes = archive_of(code);
  return error_of([&] { read_pickle_archive(bytes, nullptr, "x.pt"); });
}

TEST_CASE("checksums do not depend on how they are computed") {
  CHECK(crc32(0, "123456789", 9) == 0xCBF43926);
  std::string bytes(1000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i * 7 + i);
  for (size_t begin : {0, 1, 3, 16})
    for (size_t size : {0, 1, 15, 16, 63, 64, 65, 128, 200, 511, 900}) {
      const char* p = bytes.data() + begin;
      const uint32_t expected = crc32_portable(0, p, size);
      CHECK(crc32(0, p, size) == expected);
      CHECK(crc32(crc32(0, p, size / 3), p + size / 3, size - size / 3) == expected);
    }
}

TEST_CASE("values written and read") {
  PickleWriter writer;
  TensorData transposed = counting({2, 3});
  transposed.sizes = {3, 2};
  transposed.strides = {1, 3};
  TensorData small = counting({2});
  small.dtype = ScalarType::UInt32;  // of a type that came after the storage classes
  writer.begin();
  writer.integer(-5);
  writer.integer(int64_t{1} << 40);
  writer.real(0.1);
  writer.begin_dict();
  writer.string("t");
  writer.tensor(transposed);
  writer.string("u");
  writer.tensor(small);
  writer.end_dict();
  writer.begin_list();
  writer.none();
  writer.boolean(true);
  writer.end_list();
  writer.global("my.module", "Class");
  writer.begin();
  writer.end_tuple();
  writer.make_object();
  writer.begin_dict();
  writer.string("a");
  writer.integer(7);
  writer.end_dict();
  writer.set_state();
  writer.end_tuple();
  const std::string bytes = writer.archive();

  const PickleValue value = read_pickle_archive(bytes, nullptr, "x.pt");
  REQUIRE(value.list() != nullptr);
  const PickleList& list = *value.list();
  CHECK(value.is_tuple);
  REQUIRE(list.size() == 6);
  CHECK(*list[0].get_if<int64_t>() == -5);
  CHECK(*list[1].get_if<int64_t>() == int64_t{1} << 40);
  CHECK(*list[2].get_if<double>() == 0.1);
  const auto items = list[3].items("dict");
  CHECK(items[0].first == "t");
  CHECK(elements(items[0].second.tensor("t")) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK((items[1].second.tensor("u").dtype == ScalarType::UInt32));
  CHECK(items[1].second.tensor("u").sizes == std::vector<int64_t>{2});
  CHECK(list[4].list()->size() == 2);
  const PickleObject* object = list[5].object();
  REQUIRE(object != nullptr);
  CHECK(object->type.name == "Class");
  CHECK(*object->state->items("state")[0].second.get_if<int64_t>() == 7);
}

TEST_CASE("containers nest only so deep") {
  const std::string message = "nests containers deeper than 200 levels";
  constexpr size_t kDeep = 1000000;
  CHECK(error("N" + std::string(100, '\x85') + ".") == "");
  CHECK(error("N" + std::string(kDeep, '\x85') + ".").find(message) != std::string::npos);
  CHECK(error(std::string(kDeep, ']') + std::string(kDeep - 1, 'a') + ".").find(message) != std::string::npos);
  CHECK(error("N" + std::string(kDeep, '\x85')).find("ends too early") != std::string::npos);
  CHECK(error("]q\x01h\x01"
              "a.")
            .find(message) != std::string::npos);  // holds itself
  std::string twice = "]";                         // shared 2^60 times over, which takes no longer to look at
  for (int i = 0; i < 60; ++i) twice += "q\x01h\x01\x86";
  CHECK(error(twice + ".") == "");
}

TEST_CASE("a tensor with attributes is the tensor") {
  using namespace std::string_literals;  // opcodes contain null characters
  const std::string tensor =
      "(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
      "X\x01\x00\x00\x00"
      "0X\x03\x00\x00\x00"
      "cpuK\x04tQK\x01K\x03\x85K\x01\x85t}t"s;
  const std::string make = "ctorch._tensor\n_rebuild_from_type_v2\n";
  const std::string bytes = archive_of(make + tensor + "R.");
  CHECK(read_pickle_archive(bytes, nullptr, "x.pt").tensor("x").sizes == std::vector<int64_t>{3});
  CHECK(error(make + "(K\x01NN}tR.").find("has a malformed tensor") != std::string::npos);
  CHECK(error(make + "(" + make + "N" + tensor + "}tR.").find("has a malformed tensor") != std::string::npos);
  CHECK(error(make + "(cos\nsystem\nN)}tR.").find("needs Python's 'os.system'") != std::string::npos);
}

TEST_CASE("code and damage are refused") {
  using namespace std::string_literals;  // opcodes contain null characters
  CHECK(error("cos\nsystem\n(X\x02\x00\x00\x00lstR."s).find("needs Python's 'os.system'") != std::string::npos);
  CHECK(error("").find("ends too early") != std::string::npos);
  CHECK(error("X\xff\xff\xff\x7f").find("ends too early") != std::string::npos);
  CHECK(error(".").find("takes from an empty stack") != std::string::npos);
  CHECK(error("t").find("takes from an empty stack") != std::string::npos);
  CHECK(error("(0").find("takes from an empty stack") != std::string::npos);
  CHECK(error("h\x05").find("refers to a value that it does not hold") != std::string::npos);
  CHECK(error("Ne.").find("takes from an empty stack") != std::string::npos);
  CHECK(error("N(Ne.").find("appends to what is no list") != std::string::npos);
  CHECK(error("i").find("the pickle opcode 105") != std::string::npos);
  const std::string storage =
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
      "X\x01\x00\x00\x00"
      "0X\x03\x00\x00\x00"
      "cpuK\x04tQ"s;
  const auto tensor = [&](const std::string& rest) { return error(storage + rest + "tR."); };
  CHECK(tensor("K\x00(K\x04t(K\x01t"s) == "");
  CHECK(tensor("K\x00(K\x05t(K\x01t"s).find("has 16 bytes, too few for a tensor that reaches element 4") !=
        std::string::npos);
  CHECK(tensor("K\x01(K\x04t(K\x01t"s).find("too few") != std::string::npos);
  CHECK(tensor("K\x00(K\x02t(t"s).find("sizes and strides differ in number") != std::string::npos);
  CHECK(tensor("K\x00(J\xff\xff\xff\xfft(K\x01t"s).find("negative") != std::string::npos);
}

TEST_CASE("containers that are thrown away nest only so deep either") {
  CHECK(error("]q\x01h\x01\x61"
              "0N.")
            .find("nests containers deeper than 200 levels") != std::string::npos);
  CHECK(error(std::string(100'000, ']') + std::string(99'999, 'a') + "0N.").find("nests containers deeper") !=
        std::string::npos);
}

TEST_CASE("a text may not be repeated until memory is gone") {
  const std::string text(1 << 20, 'x');
  const auto repeated = [&](size_t times) {
    std::string code("X\x00\x00\x10\x00", 5);
    code += text + "q\x01(";
    for (size_t i = 0; i < times; ++i) code += "h\x01";
    return error(code + "t.");
  };
  CHECK(repeated(8) == "");
  CHECK(repeated(100).find("repeats more than 67108864 bytes") != std::string::npos);
}

}  // namespace
}  // namespace transporters::dynamo
