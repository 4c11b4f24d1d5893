#include "tools/tenon/error_report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "support/text.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"

namespace tenon::tool {
namespace {

// Needs memory for the text, and throws where there is none.
int report_handled() {
  try {
    throw;
  } catch (const Error& error) {
    return report_error(error);
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().string();
    return report_error(Error(ErrorKind::Usage, cat(path.empty() ? "the file system" : path, ": ",
                                                    error.code().message())));
  } catch (const std::system_error& error) {
    return report_error(Error(ErrorKind::Runtime, "the system refused a resource")
                            .found(error.what())
                            .help("a limit of the process or the user may be reached: ulimit -a"));
  } catch (const std::bad_alloc&) {
    return report_error(Error(ErrorKind::Runtime, "out of memory")
                            .help("give it less to do at once, or the process more memory"));
  } catch (const std::exception& error) {
    return report_error(
        Error(ErrorKind::Internal, error.what()).help("this is a bug in tenon; please report it"));
  }
}

}  // namespace

int report_error(const Error& thrown) {
  const Error error = with_limit_help(thrown);
  if (json_output()) {
    JsonWriter out = json_document();
    out.begin_object().key("error");
    write_error(out, error);
    print_json(std::move(out.end_object()));
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", error.render().c_str());
  return error.exit_code();
}

int report_exception() {
  try {
    return report_handled();
  } catch (...) {
    std::fputs("error: out of memory\n", stderr);
    return exit_code(ErrorKind::Runtime);
  }
}

int finish(int exit_code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return exit_code;
  return report_error(Error::of_system(ErrorKind::Usage, "cannot write standard output", errno));
}

}  // namespace tenon::tool
