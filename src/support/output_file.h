// Writing files whole or not at all.
//
// A regular file is first written without a name or, on a file system that doesn't support that,
// under an unguessable name that is opened exclusively. It gets its final name once everything is
// on disk: readers see either the old content or the new, and a failure keeps the old.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

class OutputFile {
 public:
  // Named forces a named temporary, as on file systems without O_TMPFILE.
  enum class Temporary : unsigned char { Any, Named };

  // Opens the destination. `-` is standard output. Devices, pipes and paths through /proc
  // (/dev/stdout) are written in place; opening a pipe waits for a reader. A symbolic link is
  // followed, and the file that it leads to is replaced. An existing file must be writable and
  // keeps its mode; a new one gets mode 0666 less the umask. Usage errors of the system, here and
  // below, name the path (Error::of_system).
  explicit OutputFile(const std::string& path, Temporary temporary = Temporary::Any);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Without commit, leaves nothing behind, and the path as it was.
  ~OutputFile();

  void write(std::string_view bytes);
  // Syncs a regular file and moves it into place. Nothing may be written afterwards.
  void commit();

 private:
  OutputFile(std::string path, std::string target);
  bool open_in_place();
  void open_beside(Temporary temporary);
  void open_named();
  void replace();
  [[noreturn]] void fail(int code) const;

  std::string path_;       // as given, for errors
  std::string target_;     // `path_` with symbolic links followed
  std::string temporary_;  // the temporary's name; empty if it has none
  int fd_ = -1;
  int slot_ = -1;          // of temporary_, in the table that remove_temporary_files reads
  bool in_place_ = false;  // written in place, not replaced
  bool committed_ = false;
};

// Writes the whole file.
void write_file(const std::string& path, std::string_view bytes);

// Removes the named temporaries of files being written. Async-signal-safe, for handlers of signals
// that end the process.
void remove_temporary_files() noexcept;

}  // namespace tenon
