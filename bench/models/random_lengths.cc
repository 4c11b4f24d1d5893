// Calls one compiled BERT with many random batch sizes and lengths, in one process on one machine.
//
//   bench_random_lengths BERT.tnx [--calls 10000] [--longest 128] [--threads 1]
//
// Prints anonymous memory along the way, which must be flat after the first fifth of the calls (by
// then most shapes have been seen, and the bounded cache of oneDNN's primitives is full), and the
// latency of shapes on their first call and on later calls. Exits with 1 if memory grew by more
// than 2 % and 8 MB.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "library/onednn/register.h"
#include "object/tensor.h"
#include "support/error.h"
#include "vm/builtin/register.h"
#include "vm/interp/machine.h"

namespace {

using namespace tenon;

// The process's anonymous memory; the system may drop and reload pages of mapped files.
double anonymous_mb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("RssAnon:")) return std::atof(line.c_str() + 8) / 1024;
  }
  return 0;
}

struct Shape2 {
  int64_t batch, length;
  auto operator<=>(const Shape2&) const = default;
};

// Token ids below 30522, a mask of ones, token types of zero.
std::vector<Any> inputs_of(Shape2 shape, std::mt19937_64& random) {
  std::vector<Any> inputs;
  const auto count = static_cast<size_t>(shape.batch * shape.length);
  for (int which = 0; which < 3; ++which) {
    std::vector<int64_t> data(count, which == 1 ? 1 : 0);
    if (which == 0) {
      for (int64_t& id : data) id = static_cast<int64_t>(random() % 30522);
    }
    const int64_t dims[] = {shape.batch, shape.length};
    inputs.emplace_back(Tensor::copy_of<int64_t>(dims, i64, data));
  }
  return inputs;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(const std::string& path, int calls, int64_t longest, int threads) {
  vm::register_builtins();
  register_onednn();
  vm::Limits limits;
  limits.threads = threads;
  vm::Machine machine(vm::Program::load(path), limits);
  std::mt19937_64 random(5);
  std::map<Shape2, double> first;
  std::map<Shape2, std::vector<double>> again;
  const double before = anonymous_mb();
  double settled = 0, now = 0;
  for (int i = 1; i <= calls; ++i) {
    const Shape2 shape{int64_t{1} << (random() % 3),
                       1 + static_cast<int64_t>(random() % static_cast<uint64_t>(longest))};
    const std::vector<Any> inputs = inputs_of(shape, random);
    const std::vector<AnyView> views(inputs.begin(), inputs.end());
    const auto start = std::chrono::steady_clock::now();
    machine.call("main", std::span<const AnyView>(views));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!first.try_emplace(shape, took.count()).second) again[shape].push_back(took.count());
    if (calls < 10 || i % (calls / 10) == 0) {
      now = anonymous_mb();
      if (settled == 0 && 5 * i >= calls) settled = now;
      std::printf("%7d calls  %5zu shapes  %8.1f MB of memory\n", i, first.size(), now);
      std::fflush(stdout);
    }
  }
  std::vector<double> ratios, extra;
  for (const auto& [shape, times] : again) {
    ratios.push_back(first[shape] / median(times));
    extra.push_back(first[shape] - median(times));
  }
  if (!ratios.empty()) {
    std::sort(ratios.begin(), ratios.end());
    std::printf(
        "an unseen shape takes, to the same shape seen: p50 %.2f, p99 %.2f times (%zu shapes)\n",
        median(ratios), ratios[ratios.size() * 99 / 100], ratios.size());
    std::printf("its extra time: p50 %.2f ms, greatest %.2f ms\n", median(extra),
                *std::max_element(extra.begin(), extra.end()));
  }
  const double grown = now - settled;
  const bool flat = grown <= std::max(8.0, 0.02 * settled);
  std::printf("memory %s: %+.1f MB after the first fifth of the calls (%.1f MB when loaded)\n",
              flat ? "is flat" : "GREW", grown, before);
  return flat ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> options{{"--calls", 10000}, {"--longest", 128}, {"--threads", 1}};
  for (int i = 2; i + 1 < argc; i += 2) {
    if (auto found = options.find(argv[i]); found != options.end())
      found->second = std::atoi(argv[i + 1]);
  }
  const bool sane = argc >= 2 && std::all_of(options.begin(), options.end(),
                                             [](const auto& option) { return option.second > 0; });
  if (!sane) {
    std::fprintf(stderr,
                 "usage: bench_random_lengths BERT.tnx [--calls N] [--longest N] [--threads N]\n");
    return 2;
  }
  try {
    return measure(argv[1], options["--calls"], options["--longest"], options["--threads"]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
