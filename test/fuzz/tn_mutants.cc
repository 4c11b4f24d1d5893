// tn_mutants COUNT FIRST FILE.tn...: makes mutants FIRST to FIRST + COUNT - 1 of textual programs:
// changes numbers, names and operators, sometimes repeats or drops a part. A mutant that is still a
// program is compiled and its functions are called, including its own kernels, in a separate
// process, because a mutant's kernel may run forever, which is not a finding. Exits with 0 if each
// gave values or errors. Build it with a sanitizer preset; kernels have no sanitizer checks, so
// their tensors lie between guard pages (guarded_memory.cc).
#include <sys/wait.h>

#include <iterator>

#include "arguments.h"
#include "bounds.h"
#include "graph_target.h"
#include "library/onednn/register.h"
#include "text_mutate.h"
#include "tnx_target.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr unsigned kSeconds = 5;  // per process

// Exit codes of processes; any other code, such as a sanitizer's, is a finding.
enum Outcome : int { kRefused = 40, kLowered, kRan, kFinding };

// Processes a mutant in its own process.
Outcome run_mutant(const std::string& text, uint64_t number) {
  GraphTarget target;
  target.level = number % 4 ? 2 : 0;
  target.fold = true;
  std::string problem = run_graph_text(text, target);
  TnxOutcome run;
  try {
    const graph::Module module = graph::parse_module(text, "mutant.tn");
    graph::check_module(module);
    run = run_unit(driver::compile(module, compile_options(target)), {});
    if (problem.empty()) problem = run.problem;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal && problem.empty()) problem = e.render();
  }
  if (!problem.empty()) {
    finding(cat("mutant ", number, ": ", problem));
    return kFinding;
  }
  return run.values > 0 ? kRan : run.loaded ? kLowered : kRefused;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv);
  driver::initialise();
  register_onednn();
  vm::register_builtins();
  std::vector<std::string> seeds;
  for (const std::string& file : arguments.files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    // Lets LLVM and others initialise before the process forks.
    if (run_mutant(seeds.back(), 0) == kRefused) {
      std::fprintf(stderr, "left out %s: it does not run\n", file.c_str());
      seeds.pop_back();
    }
  }
  if (seeds.empty()) return 2;
  set_bounds(2 * kSeconds);

  long refused = 0, compiled = 0, ran = 0, late = 0, findings = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    TextMutator mutator(number);
    const std::string text = mutator.mutant(seeds[number % seeds.size()]);
    begin_mutant(number, text);
    const pid_t child = fork();
    if (child < 0) {
      std::perror("fork");
      return 2;
    }
    if (child == 0) {
      std::signal(SIGALRM, SIG_DFL);
      alarm(kSeconds);
      Bounds::findings = static_cast<long>(number);  // names the file of one
      _exit(run_mutant(text, number));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    refused += code == kRefused;
    compiled += code == kLowered;
    ran += code == kRan;
    const bool is_late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    late += is_late;
    if (is_late || (code >= kRefused && code <= kRan)) continue;
    ++findings;
    if (code == kFinding) continue;  // and has said so
    Bounds::findings = static_cast<long>(number);
    finding(cat("mutant ", number, " ends its process"));
  }
  end_mutants();
  std::printf(
      "%llu mutants: %ld refused, %ld compiled, %ld ran, %ld took longer than %u s; %ld findings\n",
      static_cast<unsigned long long>(arguments.count()), refused, compiled, ran, late, kSeconds,
      findings);
  return findings ? 1 : 0;
}
