// Writes zip archives (zip_format.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "support/output_file.h"

namespace tenon::tool {

// Writes an archive of stored members, each with zip64's sizes, into a file.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  // A member with the concatenation of the parts.
  void add(const std::string& name, std::initializer_list<std::string_view> parts);
  // Writes the directory. Nothing may be added afterwards.
  void finish();

 private:
  void write(std::string_view bytes);

  OutputFile& file_;
  uint64_t at_ = 0;
  std::string directory_;
  uint64_t count_ = 0;
};

}  // namespace tenon::tool
