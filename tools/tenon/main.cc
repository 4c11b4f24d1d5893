// The `tenon` command: its commands, errors as text, exit codes.
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "object/function.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/version.h"

namespace {

// oneDNN's threads are OpenMP's, which reads from the environment, before main, for how long idle
// ones spin: milliseconds unless told. On a machine with other work that multiplies the latency of
// small models (docs/benchmarks.md), so the command starts itself anew with a bound.
void bound_spinning(char** argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return;
  self[length] = 0;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  execv(self, argv);  // returns only where it failed: then threads spin
}

}  // namespace

int main(int argc, char** argv) {
  bound_spinning(argv);
  using namespace tenon;
  using namespace tenon::tool;
  CLI::App app{"Tenon: compiles machine-learning programs and runs them.", "tenon"};
  app.set_version_flag("--version", [] { return version_text(); });
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help for every command");
  int exit_code = 0;
  app.add_flag_callback(
      "-v,--verbose", [] { set_verbosity(2); }, "say more");
  app.add_flag_callback(
      "-q,--quiet", [] { set_verbosity(0); }, "say only results and errors");
  app.fallthrough();
  add_compile_command(&app, &exit_code);
  add_run_command(&app, &exit_code);
  add_check_command(&app, &exit_code);
  add_bench_command(&app, &exit_code);
  add_inspect_command(&app, &exit_code);
  add_ops_command(&app, &exit_code);
  add_opt_command(&app, &exit_code);
  add_asm_commands(&app, &exit_code);
  add_dump_commands(&app, &exit_code);
  add_completion_command(&app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return tenon::exit_code(ErrorKind::Usage);
  } catch (const Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", error.render().c_str());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n  help: this is a bug in tenon; please report it\n",
                 error.what());
    return tenon::exit_code(ErrorKind::Internal);
  }
  std::fflush(stdout);
  return exit_code;
}
