#include "codegen/llvm/link.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>

#include "codegen/llvm/link_error.h"
#include "lld/Common/Driver.h"
#include "support/text.h"

LLD_HAS_DRIVER(elf)

namespace tenon::codegen {
namespace {

// A folder of our own for the linker's files, gone with this value.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code ignored;
    std::filesystem::path base = std::filesystem::temp_directory_path(ignored);
    path_ = (base / "tenon-link-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr)
      raise(Error(ErrorKind::Runtime, "cannot link kernels: no folder for temporary files")
                .where(base.string())
                .found(std::strerror(errno))
                .help("set TMPDIR to a writable folder"));
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(std::string_view name) const { return cat(path_, "/", name); }

 private:
  std::string path_;
};

[[noreturn]] void io_error(std::string_view what, const std::string& path) {
  raise(Error(ErrorKind::Runtime, cat("cannot link kernels: ", what, " of a temporary file failed"))
            .where(path)
            .found(std::strerror(errno)));
}

void write_file(const std::string& path, std::string_view bytes) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) io_error("creation", path);
  while (!bytes.empty()) {
    ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      int saved = errno;
      close(fd);
      errno = saved;
      io_error("writing", path);
    }
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  close(fd);
}

std::vector<uint8_t> read_file(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) io_error("opening", path);
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t have = 0;
  while (have < bytes.size()) {
    ssize_t done = read(fd, bytes.data() + have, bytes.size() - have);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      close(fd);
      io_error("reading", path);
    }
    have += static_cast<size_t>(done);
  }
  close(fd);
  return bytes;
}

}  // namespace

std::vector<uint8_t> link_closed(const std::vector<std::string>& objects,
                                 std::string_view architecture, std::string_view exported_symbol) {
  static std::mutex linker_mutex;
  static bool linker_usable = true;

  ScratchFolder folder;
  const std::string output = folder.file("kernels.so");
  const std::string exports = folder.file("exports");
  std::vector<std::string> inputs;
  for (const std::string& object : objects) {
    inputs.push_back(folder.file(cat("kernels", inputs.size(), ".o")));
    write_file(inputs.back(), object);
  }
  write_file(exports, cat("{ global: ", exported_symbol, "; local: *; };\n"));

  const std::string version_script = cat("--version-script=", exports);
  const char* emulation = architecture == "aarch64" ? "aarch64linux" : "elf_x86_64";
  // One page size for code and data keeps small objects small; separate-code would pad each
  // segment. `now` and `relro` make everything but the heap read-only once it is open.
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
  std::string complaints, chatter;
  {
    std::lock_guard lock(linker_mutex);
    if (!linker_usable)
      raise(Error(ErrorKind::Internal, "the linker failed earlier and cannot run again"));
    llvm::raw_string_ostream out(chatter), err(complaints);
    lld::Result result = lld::lldMain(arguments, out, err, {{lld::Gnu, &lld::elf::link}});
    linker_usable = result.canRunAgain;
    err.flush();
    if (result.retCode != 0)
      raise(Error(ErrorKind::Internal, "generated kernels do not link into a closed object")
                .found(complaints));
  }
  return read_file(output);
}

}  // namespace tenon::codegen
