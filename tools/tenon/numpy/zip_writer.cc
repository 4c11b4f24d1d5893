#include "tools/tenon/numpy/zip_writer.h"

#include <zlib.h>

#include "support/error.h"
#include "tools/tenon/numpy/zip_format.h"

namespace tenon::tool {

using namespace zip;

namespace {

constexpr uint16_t kVersion = 45;  // the first with zip64

void append_number(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
}

// What a local header and an entry of the directory have in common: from the version needed to
// the sizes.
std::string shared_fields(uint32_t crc) {
  constexpr uint16_t kFirstDay = 0x21;  // 1980-01-01, as NumPy writes: equal tensors, equal bytes
  std::string out;
  append_number(out, kVersion, 2);
  append_number(out, kUtf8Flag, 2);
  append_number(out, kStored, 2);
  append_number(out, 0, 2);
  append_number(out, kFirstDay, 2);
  append_number(out, crc, 4);
  append_number(out, kIn64, 4);
  append_number(out, kIn64, 4);
  return out;
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::initializer_list<std::string_view> parts) {
  constexpr size_t kLongestName = 0xffff;
  if (name.size() > kLongestName) {
    throw Error(ErrorKind::Usage, "a name is too long for a zip archive")
        .found(cat(name.size(), " bytes"))
        .expected(cat("at most ", kLongestName));
  }
  uint64_t size = 0;
  unsigned long crc = 0;
  for (const std::string_view part : parts) {
    size += part.size();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  const std::string shared = shared_fields(static_cast<uint32_t>(crc));
  const uint64_t at = at_;

  std::string header;
  append_number(header, kLocalHeader, 4);
  header += shared;
  append_number(header, name.size(), 2);
  append_number(header, 20, 2);
  header += name;
  append_number(header, kExtra64, 2);
  append_number(header, 16, 2);
  append_number(header, size, 8);
  append_number(header, size, 8);
  write(header);
  for (const std::string_view part : parts) write(part);

  constexpr uint64_t kMadeOnUnix = 3 << 8 | kVersion, kReadable = uint64_t{0100644} << 16;
  append_number(directory_, kEntry, 4);
  append_number(directory_, kMadeOnUnix, 2);
  directory_ += shared;
  append_number(directory_, name.size(), 2);
  append_number(directory_, 28, 2);
  append_number(directory_, 0, 6);  // no comment, first disk, a binary file
  append_number(directory_, kReadable, 4);
  append_number(directory_, kIn64, 4);
  directory_ += name;
  append_number(directory_, kExtra64, 2);
  append_number(directory_, 24, 2);
  append_number(directory_, size, 8);
  append_number(directory_, size, 8);
  append_number(directory_, at, 8);
  ++count_;
}

void ZipWriter::finish() {
  const uint64_t directory = at_;
  write(directory_);
  std::string end;
  append_number(end, kEnd64, 4);
  append_number(end, kEnd64Bytes - 12, 8);
  append_number(end, kVersion, 2);
  append_number(end, kVersion, 2);
  append_number(end, 0, 8);
  append_number(end, count_, 8);
  append_number(end, count_, 8);
  append_number(end, directory_.size(), 8);
  append_number(end, directory, 8);
  append_number(end, kLocator64, 4);
  append_number(end, 0, 4);
  append_number(end, at_, 8);
  append_number(end, 1, 4);
  append_number(end, kEnd, 4);
  append_number(end, 0, 4);
  append_number(end, kCountIn64, 2);
  append_number(end, kCountIn64, 2);
  append_number(end, kIn64, 4);
  append_number(end, kIn64, 4);
  append_number(end, 0, 2);
  write(end);
}

}  // namespace tenon::tool
