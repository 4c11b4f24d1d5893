#include "vm/executable/section_table.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"
#include "support/failures.h"
#include "support/poll.h"
#include "support/text.h"
#include "vm/executable/hash.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

std::string_view slice(std::string_view file, uint64_t offset, uint64_t size) {
  return file.substr(offset, size);
}

size_t entry_size(uint32_t version) {
  return version == 1 ? sizeof(SectionEntry1) : sizeof(SectionEntry);
}

std::string_view table_of(std::string_view file, const FileHeader& header) {
  return slice(file, sizeof header, header.section_count * entry_size(header.version));
}

SectionEntry from_format_1(const SectionEntry1& old, uint32_t index) {
  SectionEntry entry{};
  std::memcpy(entry.tag, kSections[index].tag.data(), sizeof entry.tag);
  entry.flags = kSections[index].required ? kSectionRequired : 0;
  entry.offset = old.offset;
  entry.size = old.size;
  entry.checked = old.checked;
  entry.hash = old.hash;
  return entry;
}

const SectionInfo* known(const SectionEntry& entry) {
  for (const SectionInfo& info : kSections) {
    if (info.tag == entry.tag_text()) return &info;
  }
  return nullptr;
}

class TableReader {
 public:
  TableReader(std::string_view file, const std::string& name, bool check_hashes)
      : file_(file), name_(name), check_hashes_(check_hashes) {}

  SectionTable run() {
    header();
    uint64_t end = sizeof header_ + header_.section_count * entry_size(header_.version);
    for (uint32_t i = 0; i < header_.section_count; ++i) {
      table_.entries.push_back(entry(i));
      section(table_.entries.back(), end);
      end = table_.entries.back().offset + table_.entries.back().size;
    }
    return std::move(table_);
  }

 private:
  [[noreturn]] void damaged(std::string_view where, std::string_view found,
                            std::string_view expected) const {
    throw_damaged(name_, where, found, expected);
  }

  void header() {
    if (file_.size() < sizeof kMagic || std::memcmp(file_.data(), kMagic, sizeof kMagic) != 0) {
      throw failure(ErrorKind::Damaged, cat(name_, " is not a .tnx file"),
                    cat(quoted(file_.substr(0, 8)), file_.size() < 8 ? ", then the file ends" : ""),
                    "the 8 bytes at the start of every .tnx file")
          .help("`tenon compile` makes one from a model");
    }
    if (file_.size() < 16) damaged("header", cat(file_.size(), " bytes"), "a whole header");
    std::memcpy(&header_, file_.data(), std::min(file_.size(), sizeof header_));
    table_.version = header_.version;
    if (header_.version == 0 || header_.version > kFormatVersion) {
      throw failure(ErrorKind::Unsupported, cat(name_, " has a format that this build can't read"),
                    cat("format ", header_.version), cat("a format from 1 to ", kFormatVersion))
          .help("use a newer tenon, or compile the model with this one");
    }
    if (header_.version == 1 ? header_.section_count != kFormat1Sections
                             : header_.section_count > kMaxSections) {
      damaged("header", counted(header_.section_count, "section"),
              header_.version == 1 ? cat(kFormat1Sections) : cat("at most ", kMaxSections));
    }
    const uint64_t end = sizeof header_ + header_.section_count * entry_size(header_.version);
    if (file_.size() < end) {
      damaged("header", cat(file_.size(), " bytes"),
              cat("a table of ", counted(header_.section_count, "section"), ", ", end, " bytes"));
    }
    if (header_.file_size != file_.size()) {
      damaged("header", cat("a file of ", file_.size(), " bytes"),
              cat(header_.file_size, " bytes, as its header says"));
    }
    if (!check_hashes_) return;
    const uint64_t hash = table_hash(header_, table_of(file_, header_));
    if (hash != header_.hash) damaged("header", cat("hash ", hex(hash)), hex(header_.hash));
  }

  SectionEntry entry(uint32_t index) const {
    const char* at = file_.data() + sizeof header_ + index * entry_size(header_.version);
    if (header_.version == 1) {
      SectionEntry1 old;
      std::memcpy(&old, at, sizeof old);
      return from_format_1(old, index);
    }
    SectionEntry out;
    std::memcpy(&out, at, sizeof out);
    return out;
  }

  void section(const SectionEntry& s, uint64_t end) const {
    const std::string where = cat("section table, ", section_name(s));
    for (const SectionEntry& other : table_.entries) {
      if (&other != &s && other.tag_text() == s.tag_text()) {
        damaged(where, "two sections with one tag", "each tag once");
      }
    }
    if (s.offset < end || s.offset > file_.size() || s.size > file_.size() - s.offset ||
        s.offset % kFileAlignment || s.checked > s.size) {
      damaged(where, cat(s.size, " bytes at ", hex(s.offset)),
              "sections one after another, aligned, within the file");
    }
    const SectionInfo* info = known(s);
    if (!info && (s.flags & kSectionRequired)) unsupported(cat("a section ", section_name(s)));
    if (!info) return;
    if (s.flags & ~kSectionRequired) {
      unsupported(cat("flags ", hex(s.flags), " of section ", section_name(s)));
    }
    if (s.checked != s.size && info->checked_whole()) {
      damaged(where, cat("a hash of ", s.checked, " bytes"), cat("of all ", s.size));
    }
    if (!check_hashes_) return;
    poll();
    const uint64_t hash = xxh64(slice(file_, s.offset, s.checked));
    if (hash != s.hash) {
      damaged(cat("section ", section_name(s), ", bytes ", hex(s.offset), " to ",
                  hex(s.offset + s.checked)),
              cat("hash ", hex(hash)), cat(hex(s.hash), ", as the section table says"));
    }
  }

  [[noreturn]] void unsupported(std::string_view found) const {
    std::vector<std::string> names;
    for (const SectionInfo& info : kSections) names.emplace_back(info.name);
    throw failure(ErrorKind::Unsupported,
                  cat(name_, " needs a feature that this build doesn't have"), found,
                  cat("the sections ", join(names, ", ")))
        .help("use a newer tenon, or compile the model with this one");
  }

  std::string_view file_;
  const std::string& name_;
  bool check_hashes_;
  FileHeader header_{};
  SectionTable table_;
};

}  // namespace

void throw_damaged(std::string_view name, std::string_view where, std::string_view found,
                   std::string_view expected) {
  throw Error(ErrorKind::Damaged, cat(name, " is damaged; nothing was run"))
      .where(where)
      .found(found)
      .expected(expected)
      .help(kDamagedHelp);
}

const SectionEntry* SectionTable::find(SectionId id) const {
  for (const SectionEntry& entry : entries) {
    if (entry.tag_text() == section_info(id).tag) return &entry;
  }
  return nullptr;
}

uint64_t table_hash(const FileHeader& header, std::string_view table) {
  const auto* bytes = reinterpret_cast<const char*>(&header);
  return xxh64(table, xxh64({bytes, offsetof(FileHeader, hash)}));
}

std::string section_name(const SectionEntry& entry) {
  const SectionInfo* info = known(entry);
  return info ? std::string(info->name) : quoted(entry.tag_text());
}

SectionTable read_section_table(std::string_view file, const std::string& name, bool check_hashes) {
  return TableReader(file, name, check_hashes).run();
}

bool check_data_hashes(std::string_view file, const SectionTable& table, const std::string& name) {
  bool all = true;
  for (const SectionEntry& s : table.entries) {
    if (s.checked == s.size) continue;
    if (table.version == 1) {
      all = false;
      continue;
    }
    const uint64_t begin = s.offset + s.checked;
    const uint64_t hash = xxh64(slice(file, begin, s.size - s.checked));
    if (hash == s.data_hash) continue;
    throw_damaged(name,
                  cat("data of section ", section_name(s), ", bytes ", hex(begin), " to ",
                      hex(s.offset + s.size)),
                  cat("hash ", hex(hash)), cat(hex(s.data_hash), ", as the section table says"));
  }
  return all;
}

bool repair_hashes(std::string& file) {
  FileHeader h;
  if (file.size() < sizeof h) return false;
  std::memcpy(&h, file.data(), sizeof h);
  if (h.section_count > kMaxSections) return false;
  const size_t size = entry_size(h.version);
  if (file.size() < sizeof h + h.section_count * size) return false;
  for (uint32_t i = 0; i < h.section_count; ++i) {
    char* at = file.data() + sizeof h + i * size;
    if (h.version == 1) {
      SectionEntry1 s;
      std::memcpy(&s, at, size);
      if (s.offset <= file.size() && s.checked <= file.size() - s.offset) {
        s.hash = xxh64(slice(file, s.offset, s.checked));
      }
      std::memcpy(at, &s, size);
    } else {
      SectionEntry s;
      std::memcpy(&s, at, size);
      if (s.offset <= file.size() && s.size <= file.size() - s.offset && s.checked <= s.size) {
        s.hash = xxh64(slice(file, s.offset, s.checked));
        const uint64_t rest = s.size - s.checked;
        s.data_hash = rest ? xxh64(slice(file, s.offset + s.checked, rest)) : 0;
      }
      std::memcpy(at, &s, size);
    }
  }
  h.file_size = file.size();
  std::memcpy(file.data(), &h, sizeof h);
  h.hash = table_hash(h, table_of(file, h));
  std::memcpy(file.data(), &h, sizeof h);
  return true;
}

}  // namespace tenon::vm
