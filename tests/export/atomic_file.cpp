#include "transporters/export/atomic_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/error.h"

using namespace transporters;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

size_t entries(const fs::path& path) { return static_cast<size_t>(std::distance(fs::directory_iterator(path), {})); }

}  // namespace

TEST_CASE("files appear at commit, and nothing before") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  const fs::path out = folder / "模型 ü" / "sp ace";
  AtomicFiles files(out);
  files.create("a'b#.").write("first");
  files.create("b").write("second");
  CHECK_FALSE(fs::exists(out / "b"));
  files.commit();
  CHECK(read(out / "a'b#.") == "first");
  CHECK(read(out / "b") == "second");
  CHECK(entries(out) == 2);
}

TEST_CASE("without commit the folder is as it was") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  {
    AtomicFiles files(folder / "new" / "deep");
    files.create("a").write(std::string(3 << 20, 'x'));
    CHECK(fs::exists(folder / "new" / "deep"));
  }
  CHECK(entries(folder) == 0);
  put(folder / "a", "old");
  {
    AtomicFiles files(folder);
    files.create("a").write("new");
  }
  CHECK(read(folder / "a") == "old");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a rename that fails brings the old files back") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  put(folder / "a", "old");
  fs::create_directories(folder / "b" / "inside");
  {
    AtomicFiles files(folder);
    files.create("a").write("new");
    files.create("b").write("new");
    try {
      files.commit();
      FAIL("a folder was replaced by a file");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find((folder / "b").string()) != std::string::npos);
      CHECK(std::string(error.what()).find("Is a directory") != std::string::npos);
    }
  }
  CHECK(read(folder / "a") == "old");
  CHECK(entries(folder) == 2);
}

TEST_CASE("old files are replaced, and removed when asked for") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  put(folder / "a", "a longer old text");
  put(folder / "stale", "x");
  AtomicFiles files(folder);
  files.create("a").write("new");
  files.remove("stale");
  files.remove("was never there");
  files.commit();
  CHECK(read(folder / "a") == "new");
  CHECK(entries(folder) == 1);
}

TEST_CASE("what a dead writer left goes at the next commit, what a living one writes stays") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  put(folder / ".a.1-0.tmp", "stale");
  put(folder / ".a.b.99-12.tmp", "stale");
  for (const char* name : {".mine.tmp", ".a.1-0.tmpx", ".a.1-x.tmp", "a.1-0.tmp", ".1-0.tmp"}) put(folder / name, "");
  fs::create_directory(folder / ".folder.1-0.tmp");
  AtomicFiles running(folder);
  running.create("b").write("later");
  AtomicFiles files(folder);
  files.create("a").write("new");
  CHECK(files.commit() == std::vector<std::string>{"a"});
  CHECK_FALSE(fs::exists(folder / ".a.1-0.tmp"));
  CHECK_FALSE(fs::exists(folder / ".a.b.99-12.tmp"));
  CHECK(entries(folder) == 8);  // a, the running one's, five other names and a folder
  running.commit();
  CHECK(read(folder / "b") == "later");
  CHECK(entries(folder) == 8);
}

TEST_CASE("a folder that can't be made is an error with path and reason") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  put(folder / "file", "x");
  CHECK_THROWS_WITH_AS(AtomicFiles(folder / "file" / "below"), doctest::Contains("Not a directory"), Error);
}

TEST_CASE("a disk without room is an error, and leaves nothing") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  {
    AtomicFiles files(folder / "out");
    CHECK_THROWS_WITH_AS(files.create("huge").reserve(uint64_t{1} << 62), doctest::Contains("huge"), Error);
  }
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("tensors are written in row-major order, whatever their strides") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  std::vector<float> numbers(2 * 700 * 900);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  TensorData data;
  data.data = numbers.data();
  std::vector<float> expected;
  SUBCASE("transposed matrices in a batch") {
    data.sizes = {2, 900, 700};
    data.strides = {700 * 900, 1, 900};
    for (int b = 0; b < 2; ++b) {
      for (int i = 0; i < 900; ++i) {
        for (int j = 0; j < 700; ++j) expected.push_back(numbers[static_cast<size_t>(b * 700 * 900 + j * 900 + i)]);
      }
    }
  }
  SUBCASE("one row expanded") {
    data.sizes = {3, 5};
    data.strides = {0, 1};
    for (int b = 0; b < 3; ++b) expected.insert(expected.end(), numbers.begin(), numbers.begin() + 5);
  }
  SUBCASE("every second element") {
    data.sizes = {600};
    data.strides = {2};
    for (size_t i = 0; i < 600; ++i) expected.push_back(numbers[2 * i]);
  }
  SUBCASE("contiguous") {
    data.sizes = {2, 700, 900};
    data.strides = contiguous_strides(data.sizes);
    expected = numbers;
  }
  SUBCASE("none") {
    data.sizes = {0, 4};
    data.strides = {4, 1};
  }
  AtomicFiles files(folder);
  OutputFile& file = files.create("t");
  file.write("abc");
  file.pad_to(64);
  file.write(data);
  CHECK(file.size() == 64 + expected.size() * 4);
  files.commit();
  const std::string text = read(folder / "t");
  REQUIRE(text.size() == 64 + expected.size() * 4);
  CHECK(std::equal(expected.begin(), expected.end(), reinterpret_cast<const float*>(text.data() + 64)));
}

TEST_CASE("bytes of a mapped file are copied from file to file only while the file holds them") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  std::string bytes(3 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  put(folder / "weights", "header--" + bytes);
  TensorData data{.dtype = ScalarType::Byte, .sizes = {3 << 20}, .strides = {1}, .data = bytes.data()};
  data.file = (folder / "weights").string();
  data.file_offset = 8;
  SUBCASE("unchanged") {}
  SUBCASE("replaced since") { put(folder / "weights", std::string(bytes.size() + 8, 'z')); }
  SUBCASE("truncated since") { put(folder / "weights", "short"); }
  SUBCASE("gone") { fs::remove(folder / "weights"); }
  AtomicFiles files(folder / "out");
  OutputFile& file = files.create("copy");
  file.write("x");
  file.write(data);
  files.commit();
  CHECK(read(folder / "out" / "copy") == "x" + bytes);
}
