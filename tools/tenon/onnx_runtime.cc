#include "tools/tenon/onnx_runtime.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"
#include "support/text.h"
#include "tools/tenon/child_process.h"
#include "tools/tenon/reference_script.h"

namespace tenon::tool {
namespace {

constexpr int kNoPython = 127, kPackageMissing = 2;  // exit codes of the child

// The text that comes out of a pipe until its end.
std::string read_all(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(pipe, buffer, sizeof buffer)) != 0;) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// Runs its first argument. By default, Python imports modules from the working directory first,
// where the model may lie beside files that its sender wrote.
constexpr char kRunScript[] =
    "import sys; sys.path = [folder for folder in sys.path if folder]; exec(sys.argv.pop(1))";

}  // namespace

void run_onnx_runtime(const std::string& python, const std::string& model,
                      const std::string& inputs, const std::string& values) {
  const auto run = [&](int pipe) {
    // Standard output is that of the command, which has nothing of Python's.
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    dup2(pipe, STDERR_FILENO);
    execlp(python.c_str(), python.c_str(), "-c", kRunScript, kReferenceScript, model.c_str(),
           inputs.c_str(), values.c_str(), static_cast<char*>(nullptr));
    return kNoPython;
  };
  ChildProcess child(run, 0);
  const std::string said = read_all(child.pipe());
  const ChildProcess::End end = child.wait();
  if (end.signal == 0 && end.exit_code == 0) return;
  if (end.signal == 0 && end.exit_code == kNoPython) {
    throw Error(ErrorKind::Unsupported, cat("there is no program ", printable(python)))
        .expected("Python, with the packages onnx and onnxruntime")
        .help("give its path with --python");
  }
  if (end.signal == 0 && end.exit_code == kPackageMissing) {
    throw Error(ErrorKind::Unsupported, cat(printable(python), " lacks a package"))
        .found(printable(said))
        .help("--python takes the path of an interpreter that has them");
  }
  throw Error(ErrorKind::Runtime, cat("ONNX Runtime can't run ", printable(model)))
      .found(end.signal != 0 ? crash_text(end.signal) : printable(said));
}

}  // namespace tenon::tool
