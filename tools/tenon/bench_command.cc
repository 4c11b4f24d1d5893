// tenon bench: measures how fast a function runs and where the time goes.
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <utility>

#include "codegen/llvm/target.h"
#include "device/parallel.h"
#include "support/error.h"
#include "tools/tenon/call_flags.h"
#include "tools/tenon/command.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/profile.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/quantity.h"
#include "tools/tenon/report_page.h"
#include "tools/tenon/version.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

using Clock = std::chrono::steady_clock;

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
// wide, so percentiles are at most 0.2 % off; the other statistics are exact.
class Latencies {
 public:
  void add(Clock::duration took) {
    const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(took).count());
    ++counts_[bucket_of(ns)];
    ++calls_;
    least_ns_ = std::min(least_ns_, ns);
    greatest_ns_ = std::max(greatest_ns_, ns);
    const double from_mean = static_cast<double>(ns) - mean_ns_;
    mean_ns_ += from_mean / static_cast<double>(calls_);
    squares_ += from_mean * (static_cast<double>(ns) - mean_ns_);
  }
  // Merges the moments of two samples (Chan, Golub and LeVeque 1979).
  void add(const Latencies& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    const auto before = static_cast<double>(calls_), more = static_cast<double>(other.calls_);
    if (other.calls_ == 0) return;
    const double between = other.mean_ns_ - mean_ns_;
    calls_ += other.calls_;
    mean_ns_ += between * more / (before + more);
    squares_ += other.squares_ + between * between * before * more / (before + more);
    least_ns_ = std::min(least_ns_, other.least_ns_);
    greatest_ns_ = std::max(greatest_ns_, other.greatest_ns_);
  }
  uint64_t calls() const { return calls_; }
  double least_ms() const { return static_cast<double>(least_ns_) / 1e6; }
  double greatest_ms() const { return static_cast<double>(greatest_ns_) / 1e6; }
  double mean_ms() const { return mean_ns_ / 1e6; }
  // The standard deviation of a call; 0 for a single one.
  double deviation_ms() const {
    return calls_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(calls_ - 1)) / 1e6;
  }
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
  uint64_t least_ns_ = UINT64_MAX, greatest_ns_ = 0;
  double mean_ns_ = 0;
  double squares_ = 0;  // the sum of squared deviations from the mean
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

// What is measured. Times are in milliseconds.
struct Measured {
  std::string file, code;
  bool lacks_code = false;
  int threads = 0, concurrency = 0;
  double compile = 0, load = 0, prepare = 0, first_call = 0;
  Latencies calls;
  double wall = 0;  // of all calls, which run side by side
  double peak_memory_mb = 0;
  double outside_kernels = 0;  // the share of a call

  double calls_per_second() const { return static_cast<double>(calls.calls()) / wall * 1000; }
  void write(JsonWriter& out) const;  // members of an object
  void print() const;
};

void Measured::write(JsonWriter& out) const {
  out.key("file").value(file);
  out.key("version").value(tenon_version());
  out.key("cpu").value(codegen::host_target().cpu);
  out.key("code").value(code);
  out.key("threads").value(threads);
  out.key("concurrency").value(concurrency);
  out.key("calls").value(calls.calls());
  const std::pair<const char*, double> numbers[] = {
      {"compile_ms", compile},
      {"load_ms", load},
      {"prepare_ms", prepare},
      {"first_call_ms", first_call},
      {"min_ms", calls.least_ms()},
      {"p50_ms", calls.quantile_ms(0.5)},
      {"p90_ms", calls.quantile_ms(0.9)},
      {"p99_ms", calls.quantile_ms(0.99)},
      {"max_ms", calls.greatest_ms()},
      {"mean_ms", calls.mean_ms()},
      {"deviation_ms", calls.deviation_ms()},
      {"per_second", calls_per_second()},
      {"peak_memory_mb", peak_memory_mb},
      {"outside_kernels", outside_kernels},
  };
  for (const auto& [name, number] : numbers) out.key(name).value(number);
}

void Measured::print() const {
  const auto time_line = [](const char* name, double ms) {
    std::printf("%-13s %s\n", name, time_text(ms).c_str());
  };
  if (!code.empty()) std::printf("code for      %s\n", code.c_str());
  if (lacks_code) std::printf("%s\n", kLacksCode);
  if (compile > 0) time_line("compile", compile);
  time_line("load", load);
  time_line("prepare", prepare);
  time_line("first call", first_call);
  time_line("minimum", calls.least_ms());
  time_line("p50", calls.quantile_ms(0.5));
  time_line("p90", calls.quantile_ms(0.9));
  time_line("p99", calls.quantile_ms(0.99));
  time_line("mean", calls.mean_ms());
  time_line("deviation", calls.deviation_ms());
  std::printf("calls         %10llu\n", static_cast<unsigned long long>(calls.calls()));
  std::printf("throughput    %10.1f calls/s with %s\n", calls_per_second(),
              counted(static_cast<uint64_t>(concurrency), "machine").c_str());
  std::printf("peak memory   %10.1f MB\n", peak_memory_mb);
  std::printf("outside kernels %8.2f %%\n", outside_kernels * 100);
}

// The time in kernels over some calls with an instrument, after the measured ones.
struct Profiled {
  Profile profile;
  int calls = 0;
  double total_ms = 0;

  double outside_kernels() const {
    return std::max(0.0, 1 - profile.inside_ms() / (total_ms - profile.own_ms()));
  }
  void write(JsonWriter& out, const std::vector<KernelTime>& times) const;
  void print() const;
  void print(const std::vector<KernelTime>& rows, const char* title) const;
};

void Profiled::write(JsonWriter& out, const std::vector<KernelTime>& times) const {
  out.begin_array();
  for (const KernelTime& time : times) {
    out.begin_object().key("name").value(time.name);
    out.key("calls").value(time.calls / calls);
    out.key("ms").value(time.total_ms / calls);
    out.key("at").value(to_text(Span::at(time.from.file, time.from.line)));
    out.key("nodes");
    out.value(time.from.nodes);
    out.end_object();
  }
  out.end_array();
}

void Profiled::print(const std::vector<KernelTime>& rows, const char* title) const {
  std::printf("\n%13s %6s %6s %13s  %-40s %s\n", "time", "share", "calls", "per call", title,
              "from");
  for (const KernelTime& row : rows) {
    std::printf("%s %5.1f%% %6lld %s  %-40s %s\n", time_text(row.total_ms / calls).c_str(),
                100 * row.total_ms / profile.inside_ms(), static_cast<long long>(row.calls / calls),
                time_text(row.total_ms / static_cast<double>(row.calls)).c_str(),
                printable(row.name).c_str(), printable(to_text(row.from)).c_str());
  }
}

// A table of kernels and, if one serves several nodes, a table of the slowest calls.
void Profiled::print() const {
  const std::vector<KernelTime> kernels = profile.by_kernel();
  print(kernels, "kernel");
  std::vector<KernelTime> sites = profile.by_site();
  if (sites.size() == kernels.size()) return;
  constexpr size_t kSlowest = 10;
  const size_t all = sites.size();
  sites.resize(std::min(all, kSlowest));
  print(sites, "slowest places");
  if (all > kSlowest) std::printf("and %zu more: --json\n", all - kSlowest);
}

constexpr int kReportedCalls = 5;  // in the page of --report

struct BenchCommand : CallFlags {
  int concurrency = 1, warmup = 3;
  int64_t iterations = 0;  // on each machine; 0: as many as fit into the duration
  std::chrono::nanoseconds duration = std::chrono::seconds(3);
  bool profile = false;
  const CLI::Option* duration_option = nullptr;
  ReportFlag report_flag;

  void run() {
    if (iterations > 0 && duration_option->count() > 0) {
      throw Error(ErrorKind::Usage, "--iterations and --duration are both given")
          .help("each says when to end: leave out one of them");
    }
    inputs.sizes = flags.import_options();
    driver::Source source = read();
    file = source.name;
    if (!source.is_graph()) flags.check_unused(file);
    if (report_flag.is_given()) {
      check_not_input(file, report_flag.path, "--report");
      check_writable(report_flag.path);
    }
    flags.options.keep_graph = report_flag.is_given();
    const auto [program, given] = open_with_inputs(std::move(source));
    const std::vector<AnyView> views(given.values.begin(), given.values.end());

    Measured measured;
    measured.file = file;
    measured.code = program.code;
    measured.lacks_code = program.lacks_code;
    measured.threads = threads > 0 ? threads : available_threads();
    measured.concurrency = concurrency;
    measured.compile = program.compile_seconds * 1000;
    measured.load = program.load_seconds * 1000;
    const auto loaded = Clock::now();
    vm::Machine machine(program.program, call_limits(), {.inter_op = flags.options.inter_op});
    const auto start = Clock::now();
    measured.prepare = milliseconds(start - loaded);
    machine.call(function, views);
    measured.first_call = milliseconds(Clock::now() - start);
    for (int i = 0; i < warmup; ++i) machine.call(function, views);
    measure(machine, program.program, views, &measured);
    const Profiled profiled = run_profiled(machine, *program.program, views);
    measured.outside_kernels = profiled.outside_kernels();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    measured.peak_memory_mb = static_cast<double>(usage.ru_maxrss) / 1024;
    if (report_flag.is_given()) {
      // From here on, so that nothing is recorded, and no memory taken for it, while calls are
      // measured.
      ReportPage page(report_flag.path, file, "--report");
      page.add_fact("Calls measured", cat(measured.calls.calls()));
      page.add_fact("Median of their times", cat(measured.calls.quantile_ms(0.5), " ms"));
      page.run(machine, function, views, kReportedCalls);
      page.write(program.program->unit(), file, threads);
    }
    if (json_output()) return print(measured, profiled);
    measured.print();
    if (profile) profiled.print();
  }

  // Calls the function for `duration`, or as often as --iterations asks for, on `first` and as many
  // other machines as --concurrency asks for, a thread each.
  void measure(vm::Machine& first, const Ref<vm::Program>& program,
               const std::vector<AnyView>& views, Measured* measured) const {
    std::vector<std::unique_ptr<vm::Machine>> others;
    while (others.size() + 1 < static_cast<size_t>(concurrency)) {
      others.push_back(std::make_unique<vm::Machine>(program, first.limits()));
    }
    std::vector<Latencies> times(static_cast<size_t>(concurrency));
    auto work = [&](vm::Machine& machine, Latencies* out) {
      const auto end = Clock::now() + duration;
      do {
        const auto begin = Clock::now();
        machine.call(function, views);
        out->add(Clock::now() - begin);
      } while (iterations > 0 ? out->calls() < static_cast<uint64_t>(iterations)
                              : Clock::now() < end);
    };
    const auto start = Clock::now();
    std::vector<std::future<void>> done;
    for (size_t i = 0; i < others.size(); ++i) {
      done.push_back(start_worker([&, i] { work(*others[i], &times[i + 1]); }, concurrency));
    }
    work(first, &times[0]);
    for (std::future<void>& other : done) other.get();
    measured->wall = milliseconds(Clock::now() - start);
    for (const Latencies& some : times) measured->calls.add(some);
  }

  // A few calls that take 200 ms together, or a thousand.
  Profiled run_profiled(vm::Machine& machine, const vm::Program& program,
                        const std::vector<AnyView>& views) const {
    Profiled profiled{Profile(program)};
    machine.set_instrument([&](const vm::CallEvent& event) { return profiled.profile.see(event); });
    do {
      const auto begin = Clock::now();
      machine.call(function, views);
      profiled.total_ms += milliseconds(Clock::now() - begin);
    } while (++profiled.calls < 3 || (profiled.calls < 1000 && profiled.total_ms < 200));
    machine.set_instrument(nullptr);
    return profiled;
  }

  void print(const Measured& measured, const Profiled& profiled) const {
    JsonWriter out = json_document();
    measured.write(out.begin_object());
    if (profile) {
      profiled.write(out.key("kernels"), profiled.profile.by_kernel());
      profiled.write(out.key("sites"), profiled.profile.by_site());
    }
    print_json(std::move(out.end_object()));
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
  command
      ->add_option("--iterations", state->iterations,
                   "how many calls to measure on each machine, instead of --duration")
      ->check(between(1));
  state->duration_option =
      add_duration(command, "--duration", state->duration, kSeconds, Zero::Accepted,
                   "how long to measure, such as 500ms or 10s; in seconds without a unit");
  command
      ->add_option("--concurrency", state->concurrency, "machines, a thread each, on one program")
      ->check(between(1, 1024))
      ->capture_default_str();
  command->add_flag("--profile", state->profile,
                    "tables of kernels, and of their slowest calls, with their ONNX nodes");
  add_json(command);
  state->report_flag.add_to(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
