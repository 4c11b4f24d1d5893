#include "codegen/llvm/link.h"

#include <llvm/Support/ManagedStatic.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <string>

#include "codegen/llvm/link_error.h"
#include "codegen/llvm/output_pipe.h"
#include "lld/Common/Driver.h"
#include "support/memory_file.h"
#include "support/output_file.h"
#include "support/text.h"

LLD_HAS_DRIVER(elf)

namespace tenon::codegen {
namespace {

// What the linker has printed so far; null while none runs. The linker's mutex guards it.
const std::string* running_linkers_complaints = nullptr;

// An error that LLD calls fatal, such as an output that can't be opened, ends the process without
// what was printed. Before, LLD destroys LLVM's managed statics, so that this can say the reason
// and give the exit code of a failure at run time.
struct LinkerExit {
  ~LinkerExit() {
    if (!running_linkers_complaints) return;
    remove_temporary_files();
    const std::string text =
        cat("error: cannot link kernels\n  found     ", *running_linkers_complaints,
            "  help: a limit of the process or the user may be reached: ulimit -a\n");
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    _exit(exit_code(ErrorKind::Runtime));
  }
};
llvm::ManagedStatic<LinkerExit> linker_exit;

}  // namespace

std::vector<uint8_t> link_closed(const std::vector<std::string>& objects, const char* emulation,
                                 const std::vector<std::string>& exported) {
  static std::mutex linker_mutex;
  static bool linker_usable = true;

  std::deque<MemoryFile> files;
  auto file = [&](std::string_view bytes) {
    return files.emplace_back("tenon-link", bytes).path();
  };
  std::vector<std::string> inputs;
  for (const std::string& object : objects) inputs.push_back(file(object));
  const std::string version_script =
      cat("--version-script=", file(cat("{ global: ", join(exported, "; "), "; local: *; };\n")));
  OutputPipe pipe;
  const std::string output = pipe.path();

  // A single page size for code and data keeps small objects small; separate-code would pad each
  // segment. `now` and `relro` make everything but the heap read-only once the object is open.
  std::vector<const char*> arguments = {"ld.lld",
                                        "-shared",
                                        "-m",
                                        emulation,
                                        "-o",
                                        output.c_str(),
                                        version_script.c_str(),
                                        "-z",
                                        "defs",
                                        "-z",
                                        "now",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "max-page-size=4096",
                                        "--hash-style=gnu",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "--strip-all",
                                        "--threads=1",
                                        "-O1"};
  for (const std::string& input : inputs) arguments.push_back(input.c_str());
  std::string complaints;
  {
    std::lock_guard lock(linker_mutex);
    if (!linker_usable)
      raise(Error(ErrorKind::Internal, "the linker failed earlier and cannot run again"));
    llvm::raw_string_ostream err(complaints);
    err.SetUnbuffered();
    (void)*linker_exit;  // makes it
    running_linkers_complaints = &complaints;
    lld::Result result = lld::lldMain(arguments, llvm::nulls(), err, {{lld::Gnu, &lld::elf::link}});
    running_linkers_complaints = nullptr;
    linker_usable = result.canRunAgain;
    err.flush();
    if (result.retCode != 0) {
      // Its files are in memory: where it can't open one, the process has no file descriptor left.
      if (complaints.find("cannot open ") != std::string::npos ||
          complaints.find("cannot find ") != std::string::npos ||
          complaints.find("failed to open ") != std::string::npos)
        raise(Error(ErrorKind::Runtime, "cannot link kernels")
                  .found(complaints)
                  .help("a limit of the process or the user may be reached: ulimit -a"));
      raise(Error(ErrorKind::Internal, "generated kernels do not link into a closed object")
                .found(complaints));
    }
  }
  return pipe.take();
}

}  // namespace tenon::codegen
