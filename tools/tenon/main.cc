// The `tenon` command: builds the commands, prints errors, sets exit codes.
#include <limits.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "codegen/llvm/memory_limit.h"
#include "object/function.h"
#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/error_report.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/version.h"

namespace tenon::tool {
namespace {

const auto started = std::chrono::steady_clock::now();

// oneDNN uses OpenMP, whose idle threads spin for milliseconds by default. On a machine with other
// work this multiplies the latency of small models (docs/benchmarks.md). OpenMP reads its settings
// from the environment before main, so the command re-executes itself with a bound.
void bound_spinning(char** argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  // If the dynamic loader was started with this file as its argument (the kernel then loads no
  // other loader), /proc/self/exe is the loader, which must not be re-executed.
  if (getauxval(AT_BASE) == 0) return;
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return;
  self[length] = 0;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  execv(self, argv);  // returns only on failure; then threads spin
}

// Removes temporary files when a signal ends the process. A file that would exceed the limit on
// file sizes is an error of the write, not a signal.
void clean_up_on_signals() {
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    remove_temporary_files();
    raise(signal);  // with the default action, which SA_RESETHAND restored
  };
  // On the thread's alternate stack (library/onednn/signal_stack.h).
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
      sigaction(signal, &action, nullptr);
    }
  }
}

void end_on_exhausted_memory_in_llvm() {
  codegen::handle_exhausted_memory([] {
    remove_temporary_files();
    constexpr std::string_view kText = "error: out of memory while native code was compiled\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
    _exit(exit_code(ErrorKind::Runtime));
  });
}

// The error for wrong arguments, with a pointer to the right help.
Error usage_error(CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  if (!chosen.empty()) {
    const std::string& command = chosen[0]->get_name();
    const std::string help = cat("`tenon ", command, " --help` explains what it takes");
    if (rest.empty()) return Error(ErrorKind::Usage, error.what()).help(help);
    std::vector<std::string> names;
    for (const CLI::Option* option : chosen[0]->get_options()) names.push_back(option->get_name());
    const std::string near = rest[0].starts_with("--") ? nearest(rest[0], names) : "";
    return Error(ErrorKind::Usage, cat("tenon ", command, " does not take '", rest[0], "'"))
        .help(near.empty() ? help : cat("did you mean ", near, "? ", help));
  }
  const std::string help = "`tenon --help` lists the commands";
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  if (rest.empty()) return Error(ErrorKind::Usage, "no command is given").help(help);
  const std::string near = nearest(rest[0], names);
  return Error(ErrorKind::Usage, cat("there is no command '", rest[0], "'"))
      .help(near.empty() ? help : cat("did you mean `tenon ", near, "`? ", help));
}

// A line for each kind of error: its exit code and meaning.
std::string error_exit_codes() {
  std::string lines;
#define TENON_ERROR_KIND(identifier, c, code, meaning) \
  lines += cat(code < 10 ? "   " : "  ", code, "  ", meaning, "\n");
#include "support/error_kinds.def"
  return lines;
}

// With -v: how long the command took, and the memory that it needed at most.
void report_use(const CLI::App& app) {
  rusage usage{};
  if (verbosity() < 2 || getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto took = std::chrono::steady_clock::now() - started;
  constexpr uint64_t kKilobyte = 1024;
  detail(cat("tenon ", app.get_subcommands().front()->get_name(), ": ",
             std::chrono::duration_cast<std::chrono::milliseconds>(took).count(),
             " ms, peak memory ", bytes_text(static_cast<uint64_t>(usage.ru_maxrss) * kKilobyte)));
}

// The arguments in the reversed order that CLI11 takes. `tenon help COMMAND` is `tenon COMMAND
// --help`.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  std::ranges::reverse(arguments);
  return arguments;
}

int run(int argc, char** argv) {
  set_json_output(std::find(argv, argv + argc, std::string_view("--json")) != argv + argc);
  CLI::App app{"Tenon: compiles machine-learning programs and runs them.", "tenon"};
  app.footer(
      cat("`tenon COMMAND --help` documents a command. To run a model:\n\n"
          "  tenon inspect model.onnx               show inputs, outputs and operators\n"
          "  tenon compile model.onnx -o model.tnx  compile it once\n"
          "  tenon run model.tnx --input x=x.npy    run it; without inputs, print its signature\n"
          "  tenon bench model.tnx                  measure how fast it is and where time goes\n\n"
          "Exit codes:\n"
          "   0  success\n"
          "   1  results differ\n",
          error_exit_codes(),
          "\n`tenon completion --help` explains how to set up completion in a shell."));
  app.set_version_flag("--version", [] { return version_text(); });
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help for every command");
  int exit_code = 0;
  add_verbosity(&app);
  app.fallthrough();
  add_compile_command(&app, &exit_code);
  add_run_command(&app, &exit_code);
  add_check_command(&app, &exit_code);
  add_compare_command(&app, &exit_code);
  add_bench_command(&app);
  add_trace_command(&app);
  add_report_command(&app);
  add_inspect_command(&app, &exit_code);
  add_ops_command(&app);
  add_targets_command(&app);
  add_opt_command(&app);
  add_asm_commands(&app);
  add_dump_commands(&app);
  add_completion_command(&app);
  add_man_command(&app);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    add_verbosity(command);
  }
  try {
    app.parse(arguments_of(argc, argv));
    report_use(app);
  } catch (const CLI::Success& done) {
    return finish(app.exit(done));
  } catch (const CLI::ParseError& error) {
    return report_error(usage_error(app, error));
  }
  return finish(exit_code);
}

}  // namespace
}  // namespace tenon::tool

int main(int argc, char** argv) {
  tenon::tool::bound_spinning(argv);
  try {
    tenon::tool::clean_up_on_signals();
    tenon::tool::end_on_exhausted_memory_in_llvm();
    return tenon::tool::run(argc, argv);
  } catch (...) {
    return tenon::tool::report_exception();
  }
}
