#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/checkpoint/index.h"
#include "transporters/error.h"

namespace tp = transporters;
using tests::TemporaryFolder;
using tp::ScalarType;

namespace {

std::string file_bytes(const std::string& header, size_t data_size, int64_t claimed_header = -1) {
  const uint64_t length = claimed_header < 0 ? header.size() : static_cast<uint64_t>(claimed_header);
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_size, 'x');
}

std::string open_error(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.write("bad.safetensors", bytes);
  try {
    tp::SafetensorsFile::open(path);
  } catch (const tp::Error& error) {
    CHECK(error.context().file == path);
    return error.message();
  }
  return "no error";
}

tp::TensorData tensor(ScalarType dtype, std::vector<int64_t> sizes, const std::vector<uint8_t>& bytes) {
  const auto owner = std::make_shared<std::vector<uint8_t>>(bytes);
  tp::TensorData data;
  data.dtype = dtype;
  data.strides = tp::contiguous_strides(sizes);
  data.sizes = std::move(sizes);
  data.data = owner->data();
  data.owner = owner;
  return data;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("every type survives writing and reading") {
  const TemporaryFolder folder;
  const std::string path = folder / "all.safetensors";
  std::vector<tp::NamedTensorData> tensors;
  for (const char* name : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "I16",
                           "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64", "C64"}) {
    const auto dtype = tp::dtype_from_safetensors(name);
    REQUIRE(dtype.has_value());
    CHECK(tp::safetensors_dtype(*dtype) == name);
    std::vector<uint8_t> bytes(3 * c10::elementSize(*dtype));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 2);
    tensors.emplace_back(name, tensor(*dtype, {3, 1}, bytes));
  }
  tp::write_safetensors(path, tensors, {{"format", "pt"}});
  const auto file = tp::SafetensorsFile::open(path);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(file.names().size() == tensors.size());
  const std::string bytes = read(path);
  for (const auto& [name, expected] : tensors) {
    const auto found = file.get(name);
    CHECK((found.dtype == expected.dtype));
    CHECK(found.sizes == expected.sizes);
    CHECK(found.file == path);
    CHECK(std::memcmp(found.data, expected.data, expected.nbytes()) == 0);
    CHECK(std::memcmp(bytes.data() + found.file_offset, expected.data, expected.nbytes()) == 0);
  }
}

TEST_CASE("tensors without elements, without axes, and files without tensors") {
  const TemporaryFolder folder;
  const std::string path = folder / "odd.safetensors";
  tp::write_safetensors(
      path, {{"empty", tensor(ScalarType::Float, {0, 4}, {})}, {"scalar", tensor(ScalarType::Int, {}, {1, 0, 0, 0})}});
  const auto file = tp::SafetensorsFile::open(path);
  CHECK(file.get("empty").sizes == std::vector<int64_t>{0, 4});
  CHECK(file.get("empty").nbytes() == 0);
  CHECK(file.get("scalar").sizes.empty());
  CHECK(*static_cast<const int32_t*>(file.get("scalar").data) == 1);

  const std::string only_metadata = folder.write("model.safetensors", file_bytes(R"({"__metadata__":{"a":"b"}})", 0));
  CHECK(tp::SafetensorsFile::open(only_metadata).names().empty());
  CHECK_THROWS_WITH_AS(tp::Checkpoint::open(folder.path()), doctest::Contains("the checkpoint has no tensors"),
                       tp::Error);
}

TEST_CASE("writing is deterministic, aligned, and gathers strided tensors") {
  const TemporaryFolder folder;
  auto transposed = tensor(ScalarType::Short, {2, 3}, {0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0});
  transposed.strides = {1, 2};
  const std::vector<tp::NamedTensorData> one{{"b", transposed}, {"a", tensor(ScalarType::Byte, {1}, {7})}};
  const std::vector<tp::NamedTensorData> other{one[1], one[0]};
  tp::write_safetensors(folder / "1", one);
  tp::write_safetensors(folder / "2", other);
  CHECK(read(folder / "1") == read(folder / "2"));
  const auto file = tp::SafetensorsFile::open(folder / "1");
  CHECK(file.names() == std::vector<std::string>{"b", "a"});
  const auto* values = static_cast<const int16_t*>(file.get("b").data);
  CHECK(std::vector<int16_t>(values, values + 6) == std::vector<int16_t>{0, 2, 4, 1, 3, 5});
  CHECK_THROWS_WITH_AS(tp::write_safetensors(folder / "3", {one[0], one[0]}), doctest::Contains("'b' is given twice"),
                       tp::Error);
  CHECK(!std::filesystem::exists(folder / "3"));
}

TEST_CASE("data that is not aligned for its type is copied") {
  const TemporaryFolder folder;
  const std::string header = R"({"f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                             R"("u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const auto file = tp::SafetensorsFile::open(folder.write("odd.safetensors", file_bytes(header + "   ", 5)));
  const auto data = file.get("f");
  REQUIRE(data.file_offset % 4 != 0);
  CHECK(reinterpret_cast<uintptr_t>(data.data) % 4 == 0);
  CHECK(std::memcmp(data.data, "xxxx", 4) == 0);
}

TEST_CASE("each way a file can lie gets its own error") {
  const TemporaryFolder folder;
  const std::string good = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  const auto message = [&](const std::string& header, size_t data = 24) {
    return open_error(folder, file_bytes(header, data));
  };
  const std::string size = std::to_string(8 + good.size() + 24);
  CHECK(message(good) == "no error");
  CHECK(message(good, 14) == "truncated by 10 bytes: expected a file of " + size + " bytes, found " +
                                 std::to_string(8 + good.size() + 14) +
                                 "; the download or copy was cut short, fetch the file again");
  CHECK(message(good, 25).starts_with("1 bytes too many: expected a file of " + size + " bytes, found "));
  CHECK(open_error(folder, "") == "the file is empty (0 bytes); the download or copy failed, fetch the file again");
  CHECK(open_error(folder, "abc") ==
        "expected at least 8 bytes, found 3; this is no safetensors file or a truncated one, "
        "fetch it again");
  CHECK(open_error(folder, "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 4600\n") ==
        "this is a Git LFS pointer (67 bytes of text) in place of the real file of 4600 bytes; run 'git lfs pull', or "
        "download the checkpoint again");
  CHECK(open_error(folder, "PK\x03\x04 and so on") ==
        "this is a PyTorch pickle file, not safetensors; convert it with safetensors.torch.save_file");
  CHECK(open_error(folder, "<!DOCTYPE html><p>404") ==
        "this is a web page, not safetensors; the download failed, download the checkpoint again");
  CHECK(open_error(folder, "GGUF    ....") == "this is a GGUF file, not safetensors");
  CHECK(open_error(folder, file_bytes(good, 24, int64_t{1} << 40)) ==
        "the header claims 1099511627776 bytes, the format allows 100000000; this is no safetensors file, or a broken "
        "one");
  CHECK(open_error(folder, file_bytes(good, 24, 1000)) ==
        "truncated inside the header: it needs 1008 bytes, found " + size +
            "; the download or copy was cut short, fetch the file again");
  CHECK(message("{\"a\xff\":1}", 0).starts_with("the header is not valid JSON ("));
  CHECK(message("{\"a\":", 0).starts_with("the header is not valid JSON ("));
  CHECK(message("[1]", 0) == "expected the header to be a JSON object, got array");
  CHECK(message(std::string(100000, '['), 0).starts_with("the header is not valid JSON ("));
}

TEST_CASE("header entries that contradict themselves or each other") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& header) { return open_error(folder, file_bytes(header, 24)); };
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  const auto one = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return message(R"({"a":)" + entry(dtype, shape, offsets) + "}");
  };
  const std::string f32 = R"("F32")";
  CHECK(one(f32, "[2,3]", "[0,20]") ==
        "tensor 'a': expected 24 bytes for shape [2, 3] of F32, but data_offsets [0, 20] hold 20");
  CHECK(one(f32, "[2,3]", "[24,0]") == "tensor 'a': data_offsets [24, 0] end before they begin");
  CHECK(one(f32, "[2,3]", "[0]") == "tensor 'a': expected data_offsets to be [begin, end], got [0]");
  CHECK(one(f32, "[-1]", "[0,4]") == "tensor 'a': expected a size to be a whole number from 0 to 2^63-1, got -1");
  CHECK(one(f32, "[2.5]", "[0,4]") == "tensor 'a': expected a size to be a whole number from 0 to 2^63-1, got 2.5");
  CHECK(one(f32, "\"2\"", "[0,4]") == "tensor 'a': expected shape to be a list of sizes, got \"2\"");
  CHECK(one(f32, "[4611686018427387904,4]", "[0,4]") ==
        "tensor 'a': shape [4611686018427387904, 4] needs more bytes than can be counted");
  CHECK(one(f32, "[0,4611686018427387904,4]", "[0,0]") ==
        "tensor 'a': shape [0, 4611686018427387904, 4] needs more bytes than can be counted");
  CHECK(one(f32, "[18446744073709551615]", "[0,4]") ==
        "tensor 'a': expected a size to be a whole number from 0 to 2^63-1, got 18446744073709551615");
  CHECK(one(R"("F33")", "[1]", "[0,4]").starts_with("tensor 'a': unknown dtype \"F33\"; known are BOOL"));
  CHECK(one("7", "[1]", "[0,4]").starts_with("tensor 'a': unknown dtype 7"));
  CHECK(message(R"({"a":{"dtype":"F32","shape":[1]}})") == "tensor 'a': the header gives no data_offsets");
  CHECK(message(R"({"a":3})") == "tensor 'a': expected an object with dtype, shape and data_offsets, got 3");
  CHECK(message(R"({"__metadata__":{"a":1}})") == "expected __metadata__ 'a' to be a string, got 1");

  const std::string a = R"({"a":)" + entry(f32, "[3]", "[0,12]");
  CHECK(message(a + R"(,"b":)" + entry(f32, "[3]", "[8,20]") + "}") ==
        "tensor 'b' overlaps 'a' (offset 8 lies before 12); the file is broken, download or write it again");
  CHECK(message(a + R"(,"b":)" + entry(f32, "[2]", "[16,24]") + "}") ==
        "bytes 12 to 16 belong to no tensor (before 'b'); the file is broken, download or write it again");
  CHECK(message(a + R"(,"a":)" + entry(f32, "[3]", "[12,24]") + "}") ==
        "the header names 'a' twice; the file is broken, write it again");
}

TEST_CASE("names that are not there") {
  const TemporaryFolder folder;
  tp::write_safetensors(folder / "model.safetensors", {{"model.norm.weight", tensor(ScalarType::Byte, {1}, {0})}});
  CHECK_THROWS_WITH_AS(tp::SafetensorsFile::open(folder / "model.safetensors").get("model.norm.weigth"),
                       doctest::Contains("no tensor 'model.norm.weigth'; did you mean 'model.norm.weight'?"),
                       tp::Error);
  CHECK_THROWS_WITH_AS(tp::SafetensorsFile::open(folder / "nothing"), doctest::Contains("cannot be opened"), tp::Error);
  CHECK_THROWS_WITH_AS(tp::SafetensorsFile::open(folder.path()), doctest::Contains("expected a file, got a folder"),
                       tp::Error);
}

TEST_CASE("tensors keep the mapping alive") {
  const TemporaryFolder folder;
  tp::write_safetensors(folder / "a", {{"a", tensor(ScalarType::Byte, {3}, {1, 2, 3})}});
  const auto data = tp::SafetensorsFile::open(folder / "a").get("a");
  std::filesystem::remove(folder / "a");
  CHECK(std::memcmp(data.data, "\x01\x02\x03", 3) == 0);
}

TEST_CASE("paths with spaces, quotes, # and non-ASCII letters") {
  const TemporaryFolder folder;
  const std::string odd = folder / "模型 ü's #1.";
  std::filesystem::create_directory(odd);
  tp::write_safetensors(odd + "/model.safetensors", {{"a", tensor(ScalarType::Byte, {1}, {9})}});
  CHECK(tp::Checkpoint::open(odd).get("a").file == odd + "/model.safetensors");
  CHECK_THROWS_WITH_AS(tp::Checkpoint::open(odd).get("b"), doctest::Contains(odd.c_str()), tp::Error);
}
