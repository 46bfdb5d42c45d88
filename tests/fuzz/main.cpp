// fuzz_readers [--reader NAME]... [--seconds S] [--inputs N] [--seed N] [--only NUMBER]
// Gives damaged files to the readers, and fails on anything but acceptance or Error. Each reader runs in a process of
// its own, so that a crash, a hang and a sanitizer's report end with the number of the input, which --only repeats.
#include <cxxabi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "tests/fuzz/targets.h"
#include "transporters/error.h"

// Of the address sanitizer's run time; Debian's GCC has no header for them.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void*);

// The sanitizers' options, unless ASAN_OPTIONS and the like say otherwise.
extern "C" const char* __asan_default_options() {
  return "detect_container_overflow=0:max_allocation_size_mb=1024:handle_abort=1";
}
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
// What libtorch's static initialisers keep.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libtorch_cpu.so\nleak:libc10.so\nleak:libgomp.so\n";
}

namespace transporters::fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Memory that reading may take: some, and for each byte of the input what a tree of JSON values takes.
constexpr int64_t kFreeBytes = 32 << 20;
constexpr int64_t kBytesPerByte = 300;
constexpr double kHangSeconds = 20;

struct Options {
  std::vector<std::string> readers;
  double seconds = 2;
  uint64_t inputs = UINT64_MAX;
  uint64_t seed = 1;
  uint64_t only = UINT64_MAX;
};

// What the parent sees of its child.
struct Progress {
  std::atomic<uint64_t> input{0};
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<double> slowest{0};
  char problem[1000] = "";
};

std::atomic<int64_t> allocated{0};
std::atomic<int64_t> allocation_limit{INT64_MAX};

void on_allocation(const volatile void*, size_t size) {
  if (allocated.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size) < allocation_limit.load()) return;
  allocation_limit = INT64_MAX;
  std::fprintf(stderr, "the reader holds %lld bytes\n", static_cast<long long>(allocated.load()));
  std::abort();
}

void on_free(const volatile void* memory) {
  if (memory != nullptr) allocated -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
}

std::string type_name(const std::exception& error) {
  int status = 0;
  char* name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
  const std::string text = name == nullptr ? typeid(error).name() : name;
  std::free(name);
  return text;
}

void write_files(const Files& files, const fs::path& folder) {
  for (const auto& [name, bytes] : files)
    if (!name.empty()) std::ofstream(folder / name, std::ios::binary) << bytes;
}

void fuzz(Target& target, const Options& options, Progress& progress, const fs::path& folder) {
  const std::vector<Files> seeds = target.seeds();
  for (const Files& seed : seeds) {  // a seed that is refused tests nothing
    write_files(seed, folder);
    target.read(seed, folder);
  }
  const auto start = Clock::now();
  const uint64_t first = options.only == UINT64_MAX ? 0 : options.only;
  const uint64_t last = options.only == UINT64_MAX ? options.inputs : options.only + 1;
  for (uint64_t number = first; number < last; ++number) {
    const auto begin = Clock::now();
    if (std::chrono::duration<double>(begin - start).count() > options.seconds) break;
    progress.input = number;
    Random random(options.seed, number);
    const Files input = target.mutate(random.pick(seeds), random);
    int64_t size = 0;
    for (const auto& [name, bytes] : input) size += static_cast<int64_t>(bytes.size());
    write_files(input, folder);
    allocated = 0;
    allocation_limit = kFreeBytes + kBytesPerByte * size;
    try {
      target.read(input, folder);
      ++progress.accepted;
    } catch (const Error& error) {
      if (options.only != UINT64_MAX) std::cout << "refused: " << error.what() << "\n";
      ++progress.refused;
    }
    allocation_limit = INT64_MAX;
    progress.slowest = std::max(progress.slowest.load(), std::chrono::duration<double>(Clock::now() - begin).count());
  }
}

int child(Target& target, const Options& options, Progress& progress, const fs::path& folder) {
  __sanitizer_install_malloc_and_free_hooks(on_allocation, on_free);
  try {
    fuzz(target, options, progress, folder);
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(progress.problem, sizeof progress.problem, "%s: %s", type_name(error).c_str(), error.what());
  } catch (...) {
    std::snprintf(progress.problem, sizeof progress.problem, "an exception that is no std::exception");
  }
  return 1;
}

// What ended the child, or "" for a good end.
std::string wait_for(pid_t process, const Progress& progress) {
  uint64_t input = UINT64_MAX;
  auto since = Clock::now();
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const uint64_t now = progress.input;
    if (now != input) since = Clock::now();
    input = now;
    if (std::chrono::duration<double>(Clock::now() - since).count() < kHangSeconds) continue;
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    return "reading takes more than " + std::to_string(static_cast<int>(kHangSeconds)) + " seconds";
  }
  if (WIFSIGNALED(status)) return std::string("killed by ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "";
  return progress.problem[0] != '\0' ? progress.problem : "ended by a sanitizer's report";
}

bool run(Target& target, const Options& options) {
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no shared memory");
  Progress& progress = *new (shared) Progress();  // kept: there are few
  std::string name = (fs::temp_directory_path() / "fuzz_readers.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  std::cout.flush();
  const pid_t process = fork();
  if (process == 0) std::exit(child(target, options, progress, name));
  const std::string problem = wait_for(process, progress);
  fs::remove_all(name);
  const uint64_t accepted = progress.accepted, refused = progress.refused;
  std::cout << target.name() << ": " << accepted + refused << " inputs, " << accepted << " accepted, " << refused
            << " refused, slowest " << static_cast<int>(progress.slowest * 1000) << " ms (seed " << options.seed
            << ")\n";
  if (!problem.empty())
    std::cout << target.name() << ": input " << progress.input << ": " << problem
              << "\n  repeat with: fuzz_readers --reader " << target.name() << " --seed " << options.seed << " --only "
              << progress.input << "\n";
  return problem.empty();
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) throw std::runtime_error("'" + option + "' needs a value");
    const std::string value = argv[i + 1];
    if (option == "--reader") {
      options.readers.push_back(value);
    } else if (option == "--seconds") {
      options.seconds = std::stod(value);
    } else if (option == "--inputs") {
      options.inputs = std::stoull(value);
    } else if (option == "--seed") {
      options.seed = std::stoull(value);
    } else if (option == "--only") {
      options.only = std::stoull(value);
    } else {
      throw std::runtime_error("unknown option '" + option +
                               "'; known are --reader, --seconds, --inputs, --seed, --only");
    }
  }
  return options;
}

int run_all(const Options& options) {
  std::vector<std::unique_ptr<Target>> targets;
  for (auto make : {checkpoint_targets, dynamo_targets, export_targets})
    for (auto& target : make()) targets.push_back(std::move(target));
  std::vector<std::string> known;
  for (const auto& target : targets) known.push_back(target->name());
  for (const std::string& reader : options.readers)
    if (std::find(known.begin(), known.end(), reader) == known.end())
      throw std::runtime_error("there is no reader '" + reader + "'" + did_you_mean(reader, known));
  bool good = true;
  for (const auto& target : targets) {
    const bool wanted = options.readers.empty() || std::find(options.readers.begin(), options.readers.end(),
                                                             target->name()) != options.readers.end();
    if (wanted) good = run(*target, options) && good;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace transporters::fuzz

int main(int argc, char** argv) try {
  return transporters::fuzz::run_all(transporters::fuzz::parse(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "fuzz_readers: " << error.what() << "\n";
  return 2;
}
