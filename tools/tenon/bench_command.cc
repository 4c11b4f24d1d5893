// tenon bench: measures how fast a function runs and where the time goes.
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "support/error.h"
#include "tools/tenon/call_flags.h"
#include "tools/tenon/command.h"
#include "tools/tenon/profile.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/quantity.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// "812 ns", "1.23 µs", "45.6 ms": three significant digits, in two columns.
std::string time_text(double ms) {
  const double ns = ms * 1e6;
  const double value = ns < 999.5 ? ns : ns < 999.5e3 ? ns / 1e3 : ms;
  const char* unit = ns < 999.5 ? "ns" : ns < 999.5e3 ? "µs" : "ms";
  char text[32];
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%10.*f %s", digits, value, unit);
  return text;
}

// A histogram of call times in constant memory. A bucket is 1/256 of a power of two of nanoseconds
// wide, so percentiles are at most 0.2 % off.
class Latencies {
 public:
  void add(Clock::duration took) {
    const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(took).count());
    ++counts_[bucket_of(ns)];
    ++calls_;
    sum_ns_ += static_cast<double>(ns);
  }
  void add(const Latencies& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    calls_ += other.calls_;
    sum_ns_ += other.sum_ns_;
  }
  uint64_t calls() const { return calls_; }
  double mean_ms() const { return sum_ns_ / static_cast<double>(calls_) / 1e6; }
  double quantile_ms(double q) const {
    const auto rank = std::min(calls_ - 1, static_cast<uint64_t>(q * static_cast<double>(calls_)));
    uint64_t before = 0;
    size_t i = 0;
    while ((before += counts_[i]) <= rank) ++i;
    return middle_ns(i) / 1e6;
  }

 private:
  static constexpr int kBits = 8;
  static constexpr uint64_t kParts = 1 << kBits;

  static size_t bucket_of(uint64_t ns) {
    if (ns < kParts) return ns;
    const int shift = std::bit_width(ns) - 1 - kBits;
    return (static_cast<uint64_t>(shift) << kBits) + (ns >> shift);
  }
  static double middle_ns(size_t bucket) {
    if (bucket < 2 * kParts) return static_cast<double>(bucket);
    const uint64_t shift = (bucket >> kBits) - 1;
    const auto width = static_cast<double>(uint64_t{1} << shift);
    return (static_cast<double>(bucket - (shift << kBits)) + 0.5) * width - 0.5;
  }

  std::vector<uint64_t> counts_ = std::vector<uint64_t>((64 - kBits + 1) << kBits);
  uint64_t calls_ = 0;
  double sum_ns_ = 0;
};

// Starts a thread. `get` rethrows its failure; the destructor waits for its end.
std::future<void> start_worker(const std::function<void()>& work, int concurrency) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    throw Error(ErrorKind::Runtime, cat("this process may not start ", concurrency, " threads"))
        .help("give a smaller --concurrency");
  }
}

struct BenchCommand : CallFlags {
  int concurrency = 1, warmup = 3;
  std::chrono::nanoseconds duration = std::chrono::seconds(3);
  bool profile = false, json = false;

  void run() {
    inputs.sizes = flags.import_options();
    driver::Source source = read();
    file = source.name;
    if (!source.is_graph()) flags.check_unused(file);
    const ProgramFile program = open_program(std::move(source), flags, open_options());
    const FunctionSignature signature = program.signature(function);
    if (program.source.kind != driver::SourceKind::Model) check_sizes(signature, inputs.sizes);
    const Inputs given = make_inputs_within_limits(signature, /*random_rest=*/true);
    for (const std::string& note : given.notes) progress(note);
    std::vector<AnyView> views(given.values.begin(), given.values.end());
    const vm::Limits limits = call_limits();

    vm::Machine first(program.program, limits);
    auto start = Clock::now();
    first.call(function, views);
    const double first_ms = milliseconds(Clock::now() - start);
    for (int i = 0; i < warmup; ++i) first.call(function, views);

    std::vector<std::unique_ptr<vm::Machine>> others;
    while (others.size() + 1 < static_cast<size_t>(concurrency)) {
      others.push_back(std::make_unique<vm::Machine>(program.program, limits));
    }
    std::vector<Latencies> times(static_cast<size_t>(concurrency));
    auto work = [&](vm::Machine& machine, Latencies* out) {
      const auto end = Clock::now() + duration;
      do {
        const auto begin = Clock::now();
        machine.call(function, views);
        out->add(Clock::now() - begin);
      } while (Clock::now() < end);
    };
    start = Clock::now();
    std::vector<std::future<void>> done;
    for (size_t i = 0; i < others.size(); ++i) {
      done.push_back(start_worker([&, i] { work(*others[i], &times[i + 1]); }, concurrency));
    }
    work(first, &times[0]);
    for (std::future<void>& other : done) other.get();
    const double wall_ms = milliseconds(Clock::now() - start);

    Latencies all;
    for (const Latencies& some : times) all.add(some);

    Profile measured(*program.program);
    double profiled_ms = 0;
    int profiled_calls = 0;
    first.set_instrument([&](const vm::CallEvent& event) { return measured.see(event); });
    do {
      const auto begin = Clock::now();
      first.call(function, views);
      profiled_ms += milliseconds(Clock::now() - begin);
    } while (++profiled_calls < 3 || (profiled_calls < 1000 && profiled_ms < 200));
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);

    nlohmann::json report = {
        {"file", file},
        {"threads", threads},
        {"concurrency", concurrency},
        {"code", program.code},
        {"compile_ms", program.compile_seconds * 1000},
        {"load_ms", program.load_seconds * 1000},
        {"first_call_ms", first_ms},
        {"calls", all.calls()},
        {"p50_ms", all.quantile_ms(0.5)},
        {"p90_ms", all.quantile_ms(0.9)},
        {"p99_ms", all.quantile_ms(0.99)},
        {"mean_ms", all.mean_ms()},
        {"per_second", static_cast<double>(all.calls()) / wall_ms * 1000},
        {"peak_memory_mb", static_cast<double>(usage.ru_maxrss) / 1024},
        {"outside_kernels", std::max(0.0, 1 - measured.inside_ms() / profiled_ms)},
    };
    if (profile) {
      auto add = [&](const char* key, const std::vector<KernelTime>& times) {
        report[key] = nlohmann::json::array();
        for (const KernelTime& time : times) {
          report[key].push_back({{"name", time.name},
                                 {"calls", time.calls / profiled_calls},
                                 {"ms", time.total_ms / profiled_calls},
                                 {"at", to_text(Span::at(time.from.file, time.from.line))},
                                 {"nodes", time.from.nodes}});
        }
      };
      add("kernels", measured.by_kernel());
      add("sites", measured.by_site());
    }
    if (json) {
      std::printf("%s\n",
                  report.dump(2, ' ', true, nlohmann::json::error_handler_t::replace).c_str());
      return;
    }
    print(report);
    if (profile) print(measured, profiled_calls);
  }

  void print(const nlohmann::json& report) const {
    auto number = [&](const char* key) { return report[key].get<double>(); };
    auto time_line = [&](const char* name, const char* key) {
      std::printf("%-13s %s\n", name, time_text(number(key)).c_str());
    };
    if (const auto code = report["code"].get<std::string>(); !code.empty()) {
      std::printf("code for      %s\n", code.c_str());
    }
    if (number("compile_ms") > 0) time_line("compile", "compile_ms");
    time_line("load", "load_ms");
    time_line("first call", "first_call_ms");
    time_line("p50", "p50_ms");
    time_line("p90", "p90_ms");
    time_line("p99", "p99_ms");
    std::printf("throughput    %10.1f calls/s with %s\n", number("per_second"),
                counted(static_cast<uint64_t>(concurrency), "machine").c_str());
    std::printf("peak memory   %10.1f MB\n", number("peak_memory_mb"));
    std::printf("outside kernels %8.2f %%\n", number("outside_kernels") * 100);
  }

  // Prints a table of kernels and, if one serves several nodes, a table of the slowest calls.
  static void print(const Profile& measured, int calls) {
    auto table = [&](const std::vector<KernelTime>& rows, const char* title) {
      std::printf("\n%13s %6s %6s %13s  %-40s %s\n", "time", "share", "calls", "per call", title,
                  "from");
      for (const KernelTime& row : rows) {
        std::printf("%s %5.1f%% %6lld %s  %-40s %s\n", time_text(row.total_ms / calls).c_str(),
                    100 * row.total_ms / measured.inside_ms(),
                    static_cast<long long>(row.calls / calls),
                    time_text(row.total_ms / static_cast<double>(row.calls)).c_str(),
                    printable(row.name).c_str(), printable(to_text(row.from)).c_str());
      }
    };
    const std::vector<KernelTime> kernels = measured.by_kernel();
    table(kernels, "kernel");
    std::vector<KernelTime> sites = measured.by_site();
    if (sites.size() == kernels.size()) return;
    constexpr size_t kSlowest = 10;
    const size_t all = sites.size();
    sites.resize(std::min(all, kSlowest));
    table(sites, "slowest places");
    if (all > kSlowest) std::printf("and %zu more: --json\n", all - kSlowest);
  }
};

}  // namespace

void add_bench_command(CLI::App* app) {
  auto* command = app->add_subcommand("bench", "measure load time, latency, throughput and memory");
  command->footer(
      "Missing inputs are random with a fixed seed (integers 0 or 1); missing sizes are 1.\n\n"
      "  tenon bench resnet50.tnx --threads 1 --duration 5 --profile\n"
      "  tenon bench bert.tnx --dim batch=1 --dim sequence=128 --json");
  auto state = std::make_shared<BenchCommand>();
  state->CallFlags::add_to(command);
  command->add_option("--warmup", state->warmup, "calls before measuring")
      ->check(between(0, INT32_MAX))
      ->capture_default_str();
  add_duration(command, "--duration", state->duration, kSeconds, Zero::Accepted,
               "how long to measure, such as 500ms or 10s; in seconds without a unit");
  command
      ->add_option("--concurrency", state->concurrency, "machines, a thread each, on one program")
      ->check(between(1, 1024))
      ->capture_default_str();
  command->add_flag("--profile", state->profile,
                    "tables of kernels, and of their slowest calls, with their ONNX nodes");
  command->add_flag("--json", state->json, "print JSON");
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
