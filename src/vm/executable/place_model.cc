#include "vm/executable/place_model.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "support/error.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/file_format.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kPage = 4096;

template <class T>
T at(const std::string& bytes, uint64_t offset) {
  TENON_ASSERT(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset,
               "a header outside of the object");
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}
template <class T>
void put(std::string& bytes, uint64_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Visits the headers in a table; `visit` changes them. Returns how many it said it changed.
template <class T, class Visit>
int change_each(std::string& bytes, uint64_t begin, uint64_t count, const Visit& visit) {
  int changed = 0;
  for (uint64_t i = 0; i < count; ++i) {
    T header = at<T>(bytes, begin + i * sizeof header);
    if (!visit(header)) continue;
    put(bytes, begin + i * sizeof header, header);
    ++changed;
  }
  return changed;
}

}  // namespace

std::string place_model(std::string_view object, uint64_t file_bytes) {
  ElfModel model;
  const auto fault = why_not_closed(object, &model);
  TENON_ASSERT(!fault && model.place, "no object for a model: ", fault.value_or("no table"));
  std::string out(object);
  const auto header = at<Elf64_Ehdr>(out, 0);
  // The object's own addresses, of the first page behind its memory and of the table.
  uint64_t end = 0, table = 0;
  const auto place = static_cast<uint64_t>(model.place - object.data());
  change_each<Elf64_Phdr>(out, header.e_phoff, header.e_phnum, [&](const Elf64_Phdr& p) {
    if (p.p_type != PT_LOAD) return false;
    end = std::max(end, align_up(p.p_vaddr + p.p_memsz, kPage));
    if (place >= p.p_offset && place < p.p_offset + p.p_filesz) {
      table = p.p_vaddr + (place - p.p_offset);
    }
    return false;
  });
  if (file_bytes > kMostElfMemory - end) {
    throw failure(ErrorKind::Usage, "the program doesn't fit into a shared object",
                  bytes_text(file_bytes), cat("less than ", bytes_text(kMostElfMemory)))
        .help("leave its weights out of it: --external-weights");
  }
  const uint64_t offset = align_up(out.size(), kPage);
  const int segments =
      change_each<Elf64_Phdr>(out, header.e_phoff, header.e_phnum, [&](Elf64_Phdr& p) {
        if (p.p_type != PT_NOTE) return false;
        p = {.p_type = PT_LOAD,
             .p_flags = PF_R,
             .p_offset = offset,
             .p_vaddr = end,
             .p_paddr = end,
             .p_filesz = file_bytes,
             .p_memsz = file_bytes,
             .p_align = kPage};
        return true;
      });
  const int sections =
      change_each<Elf64_Shdr>(out, header.e_shoff, header.e_shnum, [&](Elf64_Shdr& s) {
        if (s.sh_type != SHT_NOTE) return false;
        s.sh_type = SHT_PROGBITS;
        s.sh_addr = end;
        s.sh_offset = offset;
        s.sh_size = file_bytes;
        s.sh_addralign = kFileAlignment;
        return true;
      });
  TENON_ASSERT(segments == 1 && sections == 1, "not one note in the object for a model");
  model.table.file = static_cast<int64_t>(end - table);
  model.table.file_bytes = file_bytes;
  put(out, place, model.table);
  out.resize(offset);
  return out;
}

}  // namespace tenon::vm
