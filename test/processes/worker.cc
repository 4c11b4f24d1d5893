// One of several processes that use the same files at once, with two threads.
//
//   worker FOLDER SECONDS SEED
//
// FOLDER/good has executables of work.tn, which stay as they are; FOLDER/used has files of the same
// names, which all workers load and call, cancel calls of, and replace by damaged and by whole
// ones. What loads must give the right result, for everything that a call reads is hashed; what
// doesn't must be an error of the file. Prints the greatest resident memory of each quarter of the
// time, in KB, and how much was done. Exit code 1, with what happened, after anything else.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tenon/tenon.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct File {
  std::string name, bytes;
  bool is_for_strangers;  // has its computes, so that it may be loaded as untrusted
  bool is_hashed;         // a shared object's native code isn't: it may only lose its end
};

std::vector<File> files;
fs::path used;
Clock::time_point start;
std::chrono::seconds duration;
std::atomic<int64_t> calls{0}, refusals{0}, cancelled{0}, replaced{0};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "worker: %s\n", what.c_str());
  std::_Exit(1);
}

double share_of_time() {
  return std::chrono::duration<double>(Clock::now() - start) / duration;
}

int64_t resident_kb() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kb = 0;
    if (word == "VmRSS:" && status >> kb) return kb;
  }
  return -1;
}

// The sizes of the work, and what it must give.
struct Work {
  int64_t elements, count;
  std::vector<float> sums;
  int64_t sum;
};

tenon::Tensor input_of(int64_t elements) {
  tenon::Tensor x = tenon::Tensor::zeros({elements}, tenon::dtype_of<float>);
  for (int64_t i = 0; i < elements; ++i) {
    x.mutable_view<float>()[static_cast<size_t>(i)] = 1.0F / static_cast<float>(i + 1);
  }
  return x;
}

Work measured(tenon::Machine& machine, int64_t elements, int64_t count) {
  const auto [sums, sum] =
      machine.call("main", input_of(elements), count).as<std::tuple<tenon::Tensor, int64_t>>();
  const auto numbers = sums.view<float>();
  return {elements, count, {numbers.begin(), numbers.end()}, sum};
}

bool same(const Work& a, const Work& b) {
  return a.sum == b.sum && a.sums.size() == b.sums.size() &&
         std::memcmp(a.sums.data(), b.sums.data(), a.sums.size() * sizeof(float)) == 0;
}

class Thread {
 public:
  Thread(uint64_t seed, const std::vector<Work>& expected) : random_(seed), expected_(expected) {}

  void run() {
    while (share_of_time() < 1) {
      const File& file = files[below(files.size())];
      if (below(4) == 0) {
        replace(file);
      } else {
        use(file);
      }
    }
  }

 private:
  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }

  // Puts a whole or a damaged file in the place of the one that others may be loading.
  void replace(const File& file) {
    std::string bytes = file.bytes;
    switch (below(4)) {
      case 0:
        bytes.resize(below(bytes.size()));
        break;
      case 1:
        if (!file.is_hashed) break;
        for (size_t i = below(8); i < 8; ++i) bytes[below(bytes.size())] ^= char(1 << below(8));
        break;
      default:
        break;
    }
    const fs::path made = used / (file.name + "." + std::to_string(getpid()) + "." +
                                  std::to_string(reinterpret_cast<uintptr_t>(this)));
    std::ofstream(made, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    fs::rename(made, used / file.name);
    ++replaced;
  }

  void use(const File& file) {
    try {
      const bool untrusted = file.is_for_strangers && below(8) == 0;
      const tenon::Program program =
          tenon::Program::load(used / file.name, {.untrusted = untrusted});
      tenon::Machine machine(program, {.threads = 2});
      for (size_t i = below(4); i < 4; ++i) call(machine);
      if (below(2) == 0) cancel(machine);
    } catch (const tenon::Error& error) {
      const bool is_of_file = error.kind() == tenon::ErrorKind::damaged ||
                              error.kind() == tenon::ErrorKind::unsupported ||
                              error.kind() == tenon::ErrorKind::usage;
      if (!is_of_file) fail(file.name + ": " + error.what());
      ++refusals;
    }
  }

  void call(tenon::Machine& machine) {
    const Work& work = expected_[below(expected_.size())];
    try {
      if (!same(measured(machine, work.elements, work.count), work)) fail("a wrong result");
    } catch (const tenon::Error& error) {
      fail(std::string("a call failed: ") + error.what());
    }
    ++calls;
  }

  // A call that would go on for ever is cancelled, before it begins or at any time in it; then the
  // machine, with other limits, works again.
  void cancel(tenon::Machine& machine) {
    const auto wait = std::chrono::microseconds(below(2000));
    std::atomic<bool> ended{false};
    std::thread other([&] {
      std::this_thread::sleep_for(wait);
      while (!ended) {
        machine.cancel();
        std::this_thread::yield();
      }
    });
    try {
      machine.call("spin", 1);
      fail("an endless call ended");
    } catch (const tenon::Error& error) {
      if (error.kind() != tenon::ErrorKind::runtime) fail(error.what());
    }
    ended = true;
    other.join();
    machine.set_limits({.threads = 1, .fuel = 1000});
    try {
      machine.call("spin", 1);
      fail("an endless call ended on its fuel");
    } catch (const tenon::Error& error) {
      if (error.kind() != tenon::ErrorKind::runtime) fail(error.what());
    }
    machine.set_limits({.threads = 2});
    call(machine);
    ++cancelled;
  }

  std::mt19937_64 random_;
  const std::vector<Work>& expected_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const fs::path folder = argv[1];
  used = folder / "used";
  duration = std::chrono::seconds(std::atoi(argv[2]));
  const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  for (const auto& entry : fs::directory_iterator(folder / "good")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string name = entry.path().filename();
    files.push_back({name,
                     {std::istreambuf_iterator<char>(in), {}},
                     name.starts_with("kept"),
                     name.ends_with(".tnx")});
  }
  if (files.empty()) fail("no files");
  std::vector<Work> expected;
  {
    tenon::Machine machine(tenon::Program::load(folder / "good" / files[0].name));
    for (const int64_t elements : {1, 7, 5000}) {
      for (const int64_t count : {0, 100, 20000}) {
        expected.push_back(measured(machine, elements, count));
      }
    }
  }
  start = Clock::now();
  std::vector<Thread> workers{{seed * 2, expected}, {seed * 2 + 1, expected}};
  std::vector<std::thread> threads;
  for (Thread& worker : workers) threads.emplace_back([&worker] { worker.run(); });
  // What is resident at one moment says little, for a thread may be between two programs.
  std::vector<int64_t> memory;
  for (const double quarter : {0.25, 0.5, 0.75, 0.98}) {
    memory.push_back(resident_kb());
    while (share_of_time() < quarter) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      memory.back() = std::max(memory.back(), resident_kb());
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const int64_t kb : memory) std::printf("%lld ", static_cast<long long>(kb));
  std::printf("%lld %lld %lld %lld\n", static_cast<long long>(calls),
              static_cast<long long>(refusals), static_cast<long long>(cancelled),
              static_cast<long long>(replaced));
  return 0;
}
