// Reads zip archives (zip_format.h), of which only the central directory at their end is believed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tenon/numpy/byte_source.h"

namespace tenon::tool {

struct ZipMember {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0;  // bytes in the archive, and of the content
  uint64_t at = 0;                // of its local header
  uint64_t end = 0;               // no byte of it is at or after this place
};

// An archive that is read. Errors are Usage for what can't be read or isn't supported and Damaged
// for anything that no writer produces: members that overlap or lie outside of the file, two of one
// name, a size that the compressed bytes can't expand to, a wrong checksum.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader();

  const std::string& path() const { return path_; }
  const std::vector<ZipMember>& members() const { return members_; }  // in the directory's order
  // The content of a member, decompressed while it is read. Its size and checksum are verified when
  // its end is reached, by a read that returns less than it was asked for. It must not outlive this
  // reader.
  std::unique_ptr<ByteSource> open(const ZipMember& member) const;

 private:
  struct Directory {
    uint64_t at, size, count;
  };
  std::string read_at(uint64_t offset, uint64_t size) const;
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void check_places(const Directory& directory);

  std::string path_;
  int fd_;
  uint64_t size_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace tenon::tool
