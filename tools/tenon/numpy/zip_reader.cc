#include "tools/tenon/numpy/zip_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "device/call_context.h"
#include "support/error.h"
#include "tools/tenon/numpy/zip_format.h"

namespace tenon::tool {

using namespace zip;

namespace {

[[noreturn]] void damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::Damaged, cat(printable(path), " is not a valid zip archive: ", why))
      .help("write it with numpy.savez or numpy.savez_compressed");
}

// A little-endian integer of `bytes` bytes at `at`.
uint64_t number(std::string_view text, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

// Reads at most `size` bytes at an offset of the file; fewer at its end.
size_t read_some(int fd, const std::string& path, uint64_t offset, char* out, size_t size) {
  for (;;) {
    const ssize_t n = pread(fd, out, size, static_cast<off_t>(offset));
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EINTR) continue;
    throw Error::of_system(ErrorKind::Usage, cat("cannot read ", printable(path)), errno);
  }
}

// Replaces the fields that are 0xffffffff by the numbers of the zip64 extra field, which has only
// those, in this order.
void read_extra64(const std::string& path, std::string_view extra,
                  std::initializer_list<uint64_t*> fields) {
  while (extra.size() >= 4) {
    const uint64_t id = number(extra, 0, 2), length = number(extra, 2, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) break;
    std::string_view values = extra.substr(0, length);
    extra.remove_prefix(length);
    if (id != kExtra64) continue;
    for (uint64_t* field : fields) {
      if (*field != kIn64) continue;
      if (values.size() < 8) damaged(path, "a zip64 field is missing");
      *field = number(values, 0, 8);
      values.remove_prefix(8);
    }
    return;
  }
  for (const uint64_t* field : fields) {
    if (*field == kIn64) damaged(path, "a zip64 field is missing");
  }
}

// The content of a member.
class MemberSource final : public ByteSource {
 public:
  MemberSource(int fd, const std::string& path, const ZipMember& member, uint64_t data)
      : fd_(fd),
        name_(cat(path, ":", member.name)),
        method_(member.method),
        crc_(member.crc),
        size_(member.size),
        next_(data),
        left_(member.packed) {
    // Negative: without zlib's own header.
    if (method_ == kDeflated && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  MemberSource(const MemberSource&) = delete;
  MemberSource& operator=(const MemberSource&) = delete;
  ~MemberSource() override {
    if (method_ == kDeflated) inflateEnd(&stream_);
  }

  const std::string& name() const override { return name_; }
  std::optional<size_t> size() const override { return size_; }
  size_t read(char* out, size_t size) override {
    constexpr size_t kPart = size_t{1} << 20;
    size_t done = 0;
    while (done < size && !ended_) {
      tenon::poll();
      const size_t most = std::min(kPart, size - done);
      const size_t n =
          method_ == kDeflated ? inflate_some(out + done, most) : copy_some(out + done, most);
      found_crc_ = crc32_z(found_crc_, reinterpret_cast<const Bytef*>(out + done), n);
      done += n;
      found_size_ += n;
      if (ended_ || found_size_ > size_) check();
    }
    return done;
  }

 private:
  size_t copy_some(char* out, size_t most) {
    const size_t n = left_ == 0 ? 0 : fetch(out, most);
    ended_ = n == 0;
    return n;
  }

  // The next compressed bytes.
  size_t fetch(char* out, size_t most) {
    const size_t wanted = std::min<uint64_t>(most, left_);
    const size_t n = read_some(fd_, name_, next_, out, wanted);
    if (n == 0) damaged(name_, "the file became shorter");
    next_ += n;
    left_ -= n;
    return n;
  }

  size_t inflate_some(char* out, size_t most) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(most);
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0 && left_ > 0) {
        stream_.avail_in = static_cast<uInt>(fetch(buffer_, sizeof buffer_));
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_);
      }
      const int state = inflate(&stream_, Z_NO_FLUSH);
      ended_ = state == Z_STREAM_END;
      if (state == Z_MEM_ERROR) throw std::bad_alloc();
      if (!ended_ && state != Z_OK) damaged(name_, "its compressed bytes make no sense");
    }
    return most - stream_.avail_out;
  }

  void check() const {
    if (found_size_ != size_) {
      damaged(name_, cat("it has ", found_size_ > size_ ? "more" : "fewer", " than the ", size_,
                         " bytes of the directory"));
    }
    if (found_crc_ != crc_) damaged(name_, "its checksum is wrong");
  }

  int fd_;
  std::string name_;
  uint16_t method_;
  uint32_t crc_;
  uint64_t size_;
  uint64_t next_, left_;  // the place and number of compressed bytes to read
  bool ended_ = false;
  uint64_t found_size_ = 0;
  unsigned long found_crc_ = 0;
  z_stream stream_{};
  char buffer_[size_t{1} << 16];
};

}  // namespace

ZipReader::ZipReader(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  const auto fail = [&](const char* reason) {
    throw Error(ErrorKind::Usage, cat("cannot read ", printable(path), ": ", reason));
  };
  struct stat status {};
  if (fd_ < 0) fail(std::strerror(errno));
  try {
    if (fstat(fd_, &status) != 0) fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) fail("an archive must be a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
    const Directory directory = find_directory();
    read_directory(directory);
    check_places(directory);
  } catch (...) {
    close(fd_);
    throw;
  }
}

ZipReader::~ZipReader() {
  close(fd_);
}

std::string ZipReader::read_at(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset) damaged(path_, "it is truncated");
  charge(size);
  std::string out(size, '\0');
  for (size_t done = 0; done < size;) {
    const size_t n = read_some(fd_, path_, offset + done, out.data() + done, size - done);
    if (n == 0) damaged(path_, "the file became shorter");
    done += n;
  }
  return out;
}

// The end of the central directory is the last record, before a comment of up to 64 KB.
ZipReader::Directory ZipReader::find_directory() const {
  constexpr uint64_t kLongestComment = 0xffff;
  const uint64_t most = std::min<uint64_t>(size_, kEndBytes + kLongestComment);
  const std::string tail = read_at(size_ - most, most);
  const auto is_end = [&](size_t at) {
    return number(tail, at, 4) == kEnd && number(tail, at + 20, 2) == tail.size() - at - kEndBytes;
  };
  size_t at = tail.size();
  for (size_t i = tail.size() < kEndBytes ? 0 : tail.size() - kEndBytes + 1; i-- > 0;) {
    if (!is_end(i)) continue;
    at = i;
    break;
  }
  if (at == tail.size()) damaged(path_, "it has no central directory, or is truncated");
  const uint64_t end = size_ - most + at;
  Directory found{number(tail, at + 16, 4), number(tail, at + 12, 4), number(tail, at + 10, 2)};
  uint64_t disks = number(tail, at + 4, 2) | number(tail, at + 6, 2), directory_end = end;
  const bool in64 = found.at == kIn64 || found.size == kIn64 || found.count == kCountIn64;
  if (in64 && end >= kLocator64Bytes) {
    const std::string locator = read_at(end - kLocator64Bytes, kLocator64Bytes);
    if (number(locator, 0, 4) != kLocator64) damaged(path_, "its zip64 locator is missing");
    directory_end = number(locator, 8, 8);
    const std::string end64 = read_at(directory_end, kEnd64Bytes);
    if (number(end64, 0, 4) != kEnd64) damaged(path_, "its zip64 directory is missing");
    disks = number(end64, 16, 4) | number(end64, 20, 4);
    found = {number(end64, 48, 8), number(end64, 40, 8), number(end64, 32, 8)};
  }
  if (disks != 0) {
    throw Error(ErrorKind::Usage, cat(printable(path_), " is one part of several of an archive"))
        .help("join the parts first");
  }
  if (found.at > directory_end || found.size > directory_end - found.at ||
      found.count > found.size / kEntryBytes) {
    damaged(path_, "its central directory lies outside of the file");
  }
  return found;
}

void ZipReader::read_directory(const Directory& directory) {
  const std::string bytes = read_at(directory.at, directory.size);
  charge(directory.count * sizeof(ZipMember));
  std::string_view rest = bytes;
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < directory.count; ++i) {
    tenon::poll();
    if (rest.size() < kEntryBytes || number(rest, 0, 4) != kEntry) {
      damaged(path_, "its central directory is cut off");
    }
    const size_t name = number(rest, 28, 2), extra = number(rest, 30, 2),
                 comment = number(rest, 32, 2);
    if (rest.size() - kEntryBytes < name + extra + comment) {
      damaged(path_, "its central directory is cut off");
    }
    ZipMember member;
    member.name = rest.substr(kEntryBytes, name);
    member.method = static_cast<uint16_t>(number(rest, 10, 2));
    member.crc = static_cast<uint32_t>(number(rest, 16, 4));
    member.packed = number(rest, 20, 4);
    member.size = number(rest, 24, 4);
    member.at = number(rest, 42, 4);
    read_extra64(path_, rest.substr(kEntryBytes + name, extra),
                 {&member.size, &member.packed, &member.at});
    if (!names.insert(rest.substr(kEntryBytes, name)).second) {
      damaged(path_, cat("two members are called ", printable(member.name)));
    }
    const std::string whole = cat(path_, ":", member.name);
    if (number(rest, 8, 2) & kEncryptedFlag) {
      throw Error(ErrorKind::Usage, cat(printable(whole), " is encrypted"))
          .help("write it without a password");
    }
    if (member.method != kStored && member.method != kDeflated) {
      throw Error(ErrorKind::Usage, cat(printable(whole), ": its compression is not supported"))
          .found(cat("method ", member.method))
          .expected("stored or deflated, as numpy.savez and numpy.savez_compressed write");
    }
    constexpr uint64_t kMostExpansion = 1032;  // of deflate
    if (member.method == kStored ? member.size != member.packed
                                 : member.size / kMostExpansion > member.packed) {
      damaged(whole, cat(member.packed, " bytes of it can't expand to ", member.size));
    }
    members_.push_back(std::move(member));
    rest.remove_prefix(kEntryBytes + name + extra + comment);
  }
}

// Members stand one after another, before the directory.
void ZipReader::check_places(const Directory& directory) {
  std::vector<ZipMember*> by_place;
  for (ZipMember& member : members_) by_place.push_back(&member);
  std::ranges::sort(by_place, {}, &ZipMember::at);
  for (size_t i = 0; i < by_place.size(); ++i) {
    ZipMember& member = *by_place[i];
    member.end = i + 1 < by_place.size() ? by_place[i + 1]->at : directory.at;
    if (member.at > member.end || member.end > directory.at ||
        member.packed > member.end - member.at) {
      damaged(path_, cat(printable(member.name), " overlaps what follows it"));
    }
  }
}

std::unique_ptr<ByteSource> ZipReader::open(const ZipMember& member) const {
  const std::string name = cat(path_, ":", member.name);
  const std::string header = read_at(member.at, kLocalHeaderBytes);
  if (number(header, 0, 4) != kLocalHeader) damaged(name, "its header is missing");
  const uint64_t data =
      member.at + kLocalHeaderBytes + number(header, 26, 2) + number(header, 28, 2);
  if (data > member.end || member.packed > member.end - data) {
    damaged(name, "it overlaps what follows it");
  }
  return std::make_unique<MemberSource>(fd_, path_, member, data);
}

}  // namespace tenon::tool
