// A path that takes what is written to it into memory: the linker's output, without a file. The
// linker builds its output in memory before it opens a path that isn't a regular file.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace tenon::codegen {

class OutputPipe {
 public:
  // A Runtime error when the system gives no pipe or no thread.
  OutputPipe();
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe();

  // To be opened for writing, in this process, until `take`.
  std::string path() const;
  // All that was written, once whoever opened the path has closed it.
  std::vector<uint8_t> take();

 private:
  void read_all() noexcept;
  void finish();

  int read_end_ = -1, write_end_ = -1;
  std::vector<uint8_t> bytes_;
  std::exception_ptr error_;
  std::thread reader_;
};

}  // namespace tenon::codegen
