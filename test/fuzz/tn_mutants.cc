// tn_mutants COUNT FIRST FILE.tn...: makes mutants FIRST to FIRST + COUNT - 1 of textual programs,
// which a file separates as test/golden does: changes numbers, names and operators, sometimes
// repeats or drops a part. A mutant that is still a program is lowered, its computes are scheduled,
// and its functions are called as bytecode without kernels. LLVM would take nine tenths of the
// time, so one mutant in nine is instead compiled, also to fold constants, and calls its own
// kernels. Calls may run forever, which is not a finding and ends the process, so other processes
// do the work, a part of the mutants each. Exits with 0 if each gave values or errors and no memory
// leaked. Build it with a sanitizer preset; kernels have no sanitizer checks, so their tensors lie
// between guard pages (guarded_memory.cc).
#include <sys/mman.h>
#include <sys/wait.h>

#include <iterator>

#include "arguments.h"
#include "bounds.h"
#include "codegen/bytecode/emit.h"
#include "graph_target.h"
#include "library/onednn/register.h"
#include "text_mutate.h"
#include "tnx_target.h"

#ifdef TENON_FUZZ_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr unsigned kSeconds = 30;        // for a mutant
constexpr unsigned kSecondsOfCalls = 2;  // for the calls of its functions
constexpr uint64_t kPerProcess = 500;
constexpr uint64_t kNativeEvery = 9;  // without a common factor with the number of levels' turns

// What the processes that run mutants have done. Counts are by how far a mutant got.
struct Progress {
  enum Stage : uint8_t { kRefused, kRead, kLowered, kLoaded, kRan, kStages };

  uint64_t number = 0;  // of the current mutant
  long stages[kStages] = {};
  long late = 0, findings = 0;
};

bool is_program(const std::string& text) {
  try {
    graph::check_module(graph::parse_module(text, "seed.tn"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Mutants {
 public:
  explicit Mutants(const std::vector<std::string>& files);

  bool empty() const { return seeds_.empty(); }
  // Lets LLVM and others initialise before the process forks.
  void run_seed();
  // Processes mutants; returns the first that it hasn't.
  uint64_t run_process(uint64_t first, uint64_t end);
  const Progress& progress() const { return *progress_; }

 private:
  std::string mutant(uint64_t number) const {
    // Not by the remainder, which also says what is done with a mutant.
    const uint64_t seed = Mutator(~number).below(seeds_.size());
    return TextMutator(number).mutant(seeds_[seed]);
  }
  // How far it got. A finding is in `problem`.
  static Progress::Stage run(const std::string& text, uint64_t number, std::string* problem);
  void run_mutants(uint64_t first, uint64_t end);
  void add_finding(uint64_t number, const std::string& text, const std::string& problem);

  std::vector<std::string> seeds_;
  Progress* progress_;  // shared by the processes
};

Mutants::Mutants(const std::vector<std::string>& files) {
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  progress_ = new (shared) Progress;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t before = seeds_.size();
    for (size_t at = 0; at < text.size();) {
      static constexpr std::string_view kSeparator = "// -----\n";
      const size_t end = std::min(text.find(kSeparator, at), text.size());
      std::string seed = text.substr(at, end - at);
      if (is_program(seed)) seeds_.push_back(std::move(seed));
      at = end + kSeparator.size();
    }
    if (seeds_.size() == before) {
      std::fprintf(stderr, "left out %s: no valid program\n", file.c_str());
    }
  }
}

// The bytecode of a lowered module. Its computes are only scheduled; the functions that would be
// their kernels are missing.
vm::Unit without_kernels(const graph::Module& lowered, const driver::CompileOptions& options) {
  graph::to_text(driver::run_one_pass(lowered, std::string(driver::kScheduleStep), options));
  vm::Unit unit = codegen::emit_unit(lowered);
  for (vm::PackedName& packed : unit.packed) packed.kernel = false;
  return unit;
}

Progress::Stage Mutants::run(const std::string& text, uint64_t number, std::string* problem) {
  GraphTarget target;
  target.level = number % 4 ? 2 : 0;
  target.fold = number % kNativeEvery == 0;
  Progress::Stage stage = Progress::kRefused;
  try {
    const graph::Module module = graph::parse_module(text, "mutant.tn");
    graph::check_module(module);
    stage = Progress::kRead;
    *problem = read_again(module);
    const graph::Module lowered = lower(module, target);
    stage = Progress::kLowered;
    vm::Unit unit = target.fold ? driver::generate_code(lowered, compile_options(target))
                                : without_kernels(lowered, compile_options(target));
    may_run_forever(kSecondsOfCalls);
    const TnxOutcome outcome = run_unit(std::move(unit), {});
    if (outcome.loaded) stage = Progress::kLoaded;
    if (outcome.values > 0) stage = Progress::kRan;
    if (problem->empty()) *problem = outcome.problem;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal && problem->empty()) *problem = e.render();
  }
  return stage;
}

void Mutants::run_seed() {
  std::string problem;
  run(seeds_[0], 0, &problem);
  alarm(0);
}

void Mutants::add_finding(uint64_t number, const std::string& text, const std::string& problem) {
  ++progress_->findings;
  Bounds::mutant = &text;
  Bounds::findings = static_cast<long>(number) - 1;  // names the file of one
  finding(cat("mutant ", number, ": ", problem));
}

void Mutants::run_mutants(uint64_t first, uint64_t end) {
  for (uint64_t number = first; number < end; ++number) {
    progress_->number = number;
    const std::string text = mutant(number);
    begin_mutant(number, text);
    std::string problem;
    ++progress_->stages[run(text, number, &problem)];
    if (!problem.empty()) add_finding(number, text, problem);
  }
  alarm(0);
#ifdef TENON_FUZZ_ASAN
  if (__lsan_do_recoverable_leak_check() == 0) return;
  ++progress_->findings;
  std::fprintf(stderr, "finding: a leak in mutants %llu to %llu\n",
               static_cast<unsigned long long>(first), static_cast<unsigned long long>(end - 1));
#endif
}

uint64_t Mutants::run_process(uint64_t first, uint64_t end) {
  progress_->number = first;
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    std::exit(2);
  }
  if (child == 0) {
    run_mutants(first, end);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return end;
  const uint64_t number = progress_->number;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kLate) {
    ++progress_->late;
  } else {
    add_finding(number, mutant(number), "ends its process");
  }
  return number + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv);
  driver::initialise();
  register_onednn();
  vm::register_builtins();
  set_bounds(kSeconds);
  Mutants mutants(arguments.files);
  if (mutants.empty()) return 2;
  mutants.run_seed();
  for (uint64_t next = arguments.first; next < arguments.end;) {
    next = mutants.run_process(next, std::min(next + kPerProcess, arguments.end));
  }
  end_mutants();
  const Progress& p = mutants.progress();
  std::printf(
      "%llu mutants: %ld refused, %ld read, %ld lowered, %ld loaded, %ld ran, %ld ran longer than "
      "%u s; %ld findings\n",
      static_cast<unsigned long long>(arguments.count()), p.stages[Progress::kRefused],
      p.stages[Progress::kRead], p.stages[Progress::kLowered], p.stages[Progress::kLoaded],
      p.stages[Progress::kRan], p.late, kSecondsOfCalls, p.findings);
  return p.findings ? 1 : 0;
}
