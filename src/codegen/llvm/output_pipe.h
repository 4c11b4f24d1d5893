// A path whose written content is collected in memory: the linker's output, without a file. The
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
  // A Runtime error if the system provides no pipe or no thread.
  OutputPipe();
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe();

  // To be opened for writing, in this process, before `take`.
  std::string path() const;
  // Everything that was written, once the writer has closed the path.
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
