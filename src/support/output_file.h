// Writing files: whole or not at all.
//
// A regular file is written under no name at all, or, on a file system that can't do that, under an
// unguessable one that is opened exclusively. It gets its name when everything is on disk, so that
// a reader sees the old content or the new and a failure leaves the old.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

class OutputFile {
 public:
  // Named forces the temporary that file systems without O_TMPFILE need.
  enum class Temporary : unsigned char { Any, Named };

  // Opens the destination. `-` is standard output. A device, a pipe and whatever a path through
  // /proc leads to (/dev/stdout) are written into; a pipe without a reader waits for one. Of a
  // symbolic link, the file that it leads to is replaced. A file that exists must be writable and
  // keeps its mode, a new one gets what the umask leaves of 0666. Usage errors, here and below,
  // name the path and the system's reason.
  explicit OutputFile(const std::string& path, Temporary temporary = Temporary::Any);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Without commit, nothing is left over and what the path named is as it was.
  ~OutputFile();

  void write(std::string_view bytes);
  // Syncs a regular file and puts it in its place. Nothing may be written afterwards.
  void commit();

 private:
  OutputFile(std::string path, std::string target);
  bool open_in_place();
  void open_beside(Temporary temporary);
  void open_named();
  void replace();
  [[noreturn]] void fail(int code) const;

  std::string path_;       // as given, for errors
  std::string target_;     // where it leads, through symbolic links
  std::string temporary_;  // the temporary's name; empty while it has none
  int fd_ = -1;
  int slot_ = -1;          // of temporary_, in the table for remove_temporary_files
  bool in_place_ = false;  // not replaced
  bool committed_ = false;
};

// The whole file at once.
void write_file(const std::string& path, std::string_view bytes);

// Removes the named temporaries of files that are being written. For the handler of a signal that
// ends the process: async-signal-safe.
void remove_temporary_files() noexcept;

}  // namespace tenon
