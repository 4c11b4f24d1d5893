#include "vm/executable/elf_check.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>
#include <vector>

#include "support/text.h"
#include "vm/executable/code_abi.h"
#include "vm/executable/file_format.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kWord = 8;  // of a pointer

struct Machine {
  uint16_t number;
  uint32_t relative;    // the relocation that adds the load address
  uint32_t attributes;  // the program header of its code's attributes; PT_NULL if there is none
};
constexpr Machine kMachines[] = {
#define TENON_ARCHITECTURE(name, macro, value, machine, relative, attributes) \
  {machine, relative, attributes},
#include "vm/executable/architectures.def"
};

// A range of memory, in the object's own addresses.
struct Range {
  uint64_t begin = 0, size = 0;
  uint64_t end() const { return begin + size; }
  bool holds(const Range& inner) const {
    return inner.begin >= begin && inner.size <= size && inner.begin - begin <= size - inner.size;
  }
};

// Of a file that the dynamic loader accepts.
constexpr unsigned char kIdentity[EI_NIDENT] = {ELFMAG0,    ELFMAG1,     ELFMAG2,    ELFMAG3,
                                                ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE};

// The dynamic loader reads its tables from memory while it applies relocations: a relocation that
// changed the relocation table, a symbol or the dynamic section would make the loader do what this
// check never saw. So these tables must lie in segments that aren't writable. Linkers place the
// dynamic section among writable data, so relocations must not touch it instead.
class ElfCheck {
 public:
  explicit ElfCheck(std::string_view bytes) : bytes_(bytes) {}

  const char* run() {
    if (const char* why = header()) return why;
    if (const char* why = segments()) return why;
    if (const char* why = dynamic_section()) return why;
    if (const char* why = symbols()) return why;
    if (const char* why = relocations()) return why;
    return tables();
  }

  // Of an object that is closed.
  void find_model(ElfModel* out) const {
    out->kernels = kernels_;
    out->code = code_;
    if (!model_) return;
    const auto found = table(model_, sizeof out->table);
    out->place = found->data();
    std::memcpy(&out->table, out->place, sizeof out->table);
    const uint64_t file = model_ + static_cast<uint64_t>(out->table.file);
    if (file % kFileAlignment) return;
    out->file = table(file, out->table.file_bytes).value_or(std::string_view());
  }

 private:
  struct Load {
    Range memory, file;  // `file`: the bytes mapped at the start of `memory`
    uint64_t offset = 0;
    bool writable = false, executable = false;
  };

  const char* made(std::string text) {
    text_ = std::move(text);
    return text_.c_str();
  }

  template <class T>
  bool read(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }

  const char* header() {
    if (!read(0, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      return "not an ELF file";
    }
    if (std::memcmp(header_.e_ident, kIdentity, sizeof kIdentity) != 0 ||
        header_.e_version != EV_CURRENT || header_.e_type != ET_DYN ||
        header_.e_phentsize != sizeof(Elf64_Phdr)) {
      return "not a 64-bit little-endian ELF shared object";
    }
    const auto* machine = std::ranges::find(kMachines, header_.e_machine, &Machine::number);
    if (machine == std::end(kMachines)) return made(cat("code for machine ", header_.e_machine));
    machine_ = *machine;
    return nullptr;
  }

  // What the others refer to, PT_LOAD, comes first.
  const char* segments() {
    for (const bool loads : {true, false}) {
      for (uint64_t i = 0; i < header_.e_phnum; ++i) {
        Elf64_Phdr p;
        if (header_.e_phoff > bytes_.size() || !read(header_.e_phoff + i * sizeof p, &p)) {
          return "program headers outside of its bytes";
        }
        if (p.p_offset > bytes_.size() || p.p_filesz > bytes_.size() - p.p_offset ||
            p.p_vaddr > UINT64_MAX - p.p_memsz) {
          return "a segment outside of its bytes";
        }
        if ((p.p_type == PT_LOAD) != loads) continue;
        if (const char* why = loads ? load(p) : segment(p)) return why;
      }
    }
    if (dynamic_.size == 0) return "no loadable segment or no dynamic section";
    // Without it, the loader makes the stacks of the process executable.
    return has_stack_ ? nullptr : "no header for its stack, which would be executable";
  }

  // One that isn't loaded by itself.
  const char* segment(const Elf64_Phdr& p) {
    const Load* in = nullptr;
    Range range{p.p_vaddr, p.p_filesz};
    switch (p.p_type) {
      case PT_DYNAMIC:
        if (dynamic_.size) return "two dynamic sections";
        dynamic_ = range;
        // The loader reads it at its memory address.
        in = file_bytes(range);
        if (!in || offset_of(*in, range) != p.p_offset) {
          return "a dynamic section at a different place in memory";
        }
        // The loader changes the entries of one that is said to be writable.
        if (((p.p_flags & PF_W) != 0) != in->writable) {
          return "a dynamic section that isn't writable as its segment is";
        }
        return nullptr;
      case PT_GNU_RELRO:
        in = memory(p.p_vaddr, 1);
        // Up to the end of the page, which nothing else uses.
        if (!in || !in->writable ||
            p.p_memsz > (in->memory.end() + kPage - 1) / kPage * kPage - p.p_vaddr) {
          return "a range to be made read-only outside of its data";
        }
        return nullptr;
      case PT_PHDR:
        range.size = uint64_t{header_.e_phnum} * sizeof p;
        in = read_only(range);
        if (!in || offset_of(*in, range) != header_.e_phoff) {
          return "program headers at a different place in memory";
        }
        return nullptr;
      case PT_GNU_STACK:
        has_stack_ = true;
        return p.p_flags & PF_X ? "an executable stack" : nullptr;
      case PT_NULL:
      case PT_GNU_EH_FRAME:
        return nullptr;
      case PT_NOTE:
        // The loader follows the sizes in a note wherever they lead. That of place_model.h has no
        // room for any.
        return std::max(p.p_filesz, p.p_memsz) < sizeof(Elf64_Nhdr) ? nullptr : "a note";
      case PT_INTERP:
        return "an interpreter";
      case PT_TLS:
        return "thread-local storage";
      default:
        if (p.p_type == machine_.attributes) return nullptr;
        return made(cat("a program header of type ", hex(p.p_type)));
    }
  }

  const char* load(const Elf64_Phdr& p) {
    if (p.p_filesz > p.p_memsz) return "a segment outside of its bytes";
    if (p.p_vaddr + p.p_memsz > kMostElfMemory) return "a segment beyond 4 GiB";
    if (!(p.p_flags & PF_R)) return "a segment that can't be read";
    if ((p.p_flags & PF_W) && (p.p_flags & PF_X)) {
      return "a segment that is writable and executable";
    }
    if (p.p_memsz == 0) return "an empty segment";
    // Whole pages are mapped: if two segments shared a page, it would have the second one's bytes.
    // So each segment begins behind the one before.
    if (p.p_vaddr / kPage < next_page_) return "segments that overlap in memory";
    next_page_ = (p.p_vaddr + p.p_memsz + kPage - 1) / kPage;
    if (p.p_vaddr % kPage != p.p_offset % kPage || p.p_align % kPage != 0) {
      return "a segment that can't be mapped";
    }
    loads_.push_back({{p.p_vaddr, p.p_memsz},
                      {p.p_vaddr, p.p_filesz},
                      p.p_offset,
                      (p.p_flags & PF_W) != 0,
                      (p.p_flags & PF_X) != 0});
    return nullptr;
  }

  // The segment that contains a range of memory; null if there is none.
  const Load* memory(uint64_t address, uint64_t size) const {
    for (const Load& l : loads_) {
      if (l.memory.holds({address, size})) return &l;
    }
    return nullptr;
  }
  // The same, if the range's bytes are in the file.
  const Load* file_bytes(const Range& range) const {
    const Load* l = memory(range.begin, range.size);
    return l && l->file.holds(range) ? l : nullptr;
  }
  // The same, if nothing can change the bytes.
  const Load* read_only(const Range& range) const {
    const Load* l = file_bytes(range);
    return l && !l->writable ? l : nullptr;
  }
  static uint64_t offset_of(const Load& l, const Range& range) {
    return l.offset + (range.begin - l.memory.begin);
  }

  // The bytes of a table that the loader reads; nullopt if they could change or are missing.
  std::optional<std::string_view> table(uint64_t address, uint64_t size) const {
    const Load* l = read_only({address, size});
    if (!l) return std::nullopt;
    return bytes_.substr(offset_of(*l, {address, size}), size);
  }

  // If a tag is repeated, the loader uses the last entry, and so does this.
  const char* dynamic_section() {
    const uint64_t begin = offset_of(*file_bytes(dynamic_), dynamic_);
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic_.size; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn d;
      if (!read(begin + at, &d)) return "a dynamic section outside of its bytes";
      if (d.d_tag == DT_NULL) return incomplete();
      if (const char* why = entry(d)) return why;
    }
    return "a dynamic section without an end";
  }
  // The loader follows these without asking whether they are there.
  const char* incomplete() const {
    if (!symtab_) return "no symbol table";
    if (!strtab_) return "no names of its symbols in read-only memory";
    if (rela_.has_value() != rela_size_.has_value() || (rela_ && !has_rela_entry_)) {
      return "relocations without their place and size";
    }
    return nullptr;
  }

  const char* entry(const Elf64_Dyn& d) {
    const uint64_t value = d.d_un.d_val;
    switch (d.d_tag) {
      case DT_NEEDED:
        return "a needed library";
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_FINI_ARRAY:
      case DT_PREINIT_ARRAY:
        return "a constructor or destructor";
      case DT_TEXTREL:
        return "relocations in its code";
      case DT_VERNEED:
        return "versioned imports";
      case DT_FLAGS:
        if (value & DF_TEXTREL) return "relocations in its code";
        if (value & DF_STATIC_TLS) return "thread-local storage";
        break;
      case DT_FLAGS_1:
        if (value & ~uint64_t{DF_1_NOW}) return made(cat("flags ", hex(value), " for the loader"));
        break;
      case DT_SYMTAB:
        symtab_ = value;
        break;
      case DT_STRTAB:
        strtab_ = value;
        break;
      case DT_STRSZ:
        strtab_size_ = value;
        break;
      case DT_GNU_HASH:
        gnu_hash_ = value;
        break;
      case DT_RELA:
        rela_ = value;
        break;
      case DT_RELASZ:
        rela_size_ = value;
        break;
      case DT_RELAENT:
        if (value != sizeof(Elf64_Rela)) return "relocations of the wrong size";
        has_rela_entry_ = true;
        break;
      case DT_SYMENT:
        if (value != sizeof(Elf64_Sym)) return "symbols of the wrong size";
        break;
      case DT_RELACOUNT:
        relative_ = value;
        break;
      default:
        return made(cat("an entry of type ", hex(static_cast<uint64_t>(d.d_tag)),
                        " in its dynamic section"));
    }
    return nullptr;
  }

  // The number of dynamic symbols, from the hash table that the loader searches.
  std::optional<uint64_t> symbol_count() const {
    struct {
      uint32_t buckets, first, bloom_words, shift;
    } head;
    auto bytes = table(gnu_hash_, sizeof head);
    if (!bytes) return std::nullopt;
    std::memcpy(&head, bytes->data(), sizeof head);
    // The loader divides by and masks with these.
    if (head.buckets == 0 || head.bloom_words == 0 || head.shift >= 64 ||
        (head.bloom_words & (head.bloom_words - 1)) != 0) {
      return std::nullopt;
    }
    const uint64_t chains =
        sizeof head + uint64_t{head.bloom_words} * 8 + uint64_t{head.buckets} * 4;
    bytes = table(gnu_hash_, chains);
    if (!bytes) return std::nullopt;
    uint64_t last = 0;
    for (uint64_t i = 1; i <= head.buckets; ++i) {
      uint32_t bucket = 0;
      std::memcpy(&bucket, bytes->data() + chains - 4 * i, sizeof bucket);
      if (bucket != 0 && bucket < head.first) return std::nullopt;
      last = std::max<uint64_t>(last, bucket);
    }
    if (last == 0) return head.first;
    for (uint64_t n = last - head.first + 1;; ++n) {
      bytes = table(gnu_hash_, chains + 4 * n);
      if (!bytes) return std::nullopt;
      uint32_t link = 0;
      std::memcpy(&link, bytes->data() + bytes->size() - sizeof link, sizeof link);
      if (link & 1) return head.first + n;
    }
  }

  const char* symbols() {
    auto count = symbol_count();
    if (!count) return "no valid GNU hash table of its symbols in read-only memory";
    auto bytes = table(*symtab_, *count <= bytes_.size() ? *count * sizeof(Elf64_Sym) : UINT64_MAX);
    if (!bytes) return "a symbol table outside of its read-only memory";
    auto names = table(*strtab_, strtab_size_);
    if (!names || names->empty() || names->back() != 0) {
      return "no names of its symbols in read-only memory";
    }
    for (uint64_t i = 1; i < *count; ++i) {
      Elf64_Sym s;
      std::memcpy(&s, bytes->data() + i * sizeof s, sizeof s);
      if (s.st_shndx == SHN_UNDEF) return "an imported symbol";
      if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC) return "an indirect function";
      if (ELF64_ST_TYPE(s.st_info) == STT_TLS) return "thread-local storage";
      if (s.st_name >= names->size()) return "a symbol without a name";
      if (!memory(s.st_value, s.st_size)) return "a symbol outside of its memory";
      const std::string_view name = names->data() + s.st_name;
      if (name == kModelTableSymbol) model_ = s.st_value;
      if (name == kKernelTableSymbol) kernels_ = s.st_value;
      if (name == kCodeTableSymbol) code_ = s.st_value;
    }
    return nullptr;
  }

  // Allows only relocations that add the object's load address: no symbol is looked up, in this
  // object or any other.
  const char* relocations() {
    // The loader trusts the count of relative relocations, wherever the table ends.
    const uint64_t size = rela_size_.value_or(0);
    if (relative_ > size / sizeof(Elf64_Rela)) return "fewer relocations than its count";
    if (!rela_) return nullptr;
    auto bytes = table(*rela_, size);
    if (!bytes || size % sizeof(Elf64_Rela)) {
      return "relocations outside of its read-only memory";
    }
    relocations_ = *bytes;
    for (uint64_t i = 0, next = 0; i < relocation_count(); ++i) {
      const Elf64_Rela r = relocation(i);
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
      if (type != machine_.relative) return made(cat("a relocation of type ", type));
      const Load* in = memory(r.r_offset, kWord);
      if (!in || !in->writable) return "a relocation outside of its writable segments";
      if (r.r_offset < dynamic_.end() && dynamic_.begin < r.r_offset + kWord) {
        return "a relocation of its dynamic section";
      }
      // So that `pointer` finds each, and none reaches into another's word.
      if (r.r_offset % kWord || r.r_offset < next) return "relocations that aren't in order";
      next = r.r_offset + kWord;
      if (!memory(static_cast<uint64_t>(r.r_addend), 0)) return "a pointer outside of its memory";
    }
    return nullptr;
  }
  uint64_t relocation_count() const { return relocations_.size() / sizeof(Elf64_Rela); }
  Elf64_Rela relocation(uint64_t i) const {
    Elf64_Rela r;
    std::memcpy(&r, relocations_.data() + i * sizeof r, sizeof r);
    return r;
  }
  // The first relocation at an address or behind it.
  uint64_t first_relocation(uint64_t address) const {
    const auto all = std::views::iota(uint64_t{0}, relocation_count());
    return *std::ranges::partition_point(
        all, [&](uint64_t i) { return relocation(i).r_offset < address; });
  }

  // Where the pointer at an address leads, an object's own address as well; nullopt if there is no
  // pointer.
  std::optional<uint64_t> pointer(uint64_t address) const {
    const uint64_t i = first_relocation(address);
    if (i == relocation_count() || relocation(i).r_offset != address) return std::nullopt;
    return static_cast<uint64_t>(relocation(i).r_addend);
  }
  // Whether `count` pointers from an address on lead to code.
  bool code_pointers(uint64_t address, uint64_t count) const {
    for (; count > 0; --count, address += kWord) {
      const auto code = pointer(address);
      const Load* in = code ? file_bytes({*code, 1}) : nullptr;
      if (!in || !in->executable) return false;
    }
    return true;
  }
  // How many things a KernelTable or CodeTable has, whose first `plain` bytes no relocation may
  // change; 0 for one of another version, nullopt for a damaged one.
  std::optional<uint32_t> count_in(uint64_t address, uint64_t plain, uint32_t version) const {
    struct {
      uint32_t version, count;
    } head;
    const Range range{address, plain};
    const Load* in = file_bytes(range);
    if (!in || !read(offset_of(*in, range), &head) || address % kWord != 0 ||
        first_relocation(address) != first_relocation(range.end())) {
      return std::nullopt;
    }
    return head.version == version ? head.count : 0;
  }
  // The text at an address, up to its NUL; empty if it could change or doesn't end.
  std::string_view name(uint64_t address) const {
    const Load* in = read_only({address, 1});
    if (!in) return {};
    const auto text = bytes_.substr(offset_of(*in, {address, 1}), in->file.end() - address);
    const size_t end = text.find('\0');
    return end == text.npos ? std::string_view() : text.substr(0, end);
  }

  const char* tables() {
    if (model_) {
      const auto bytes = table(model_, sizeof(ModelTable));
      if (!bytes) return "a model table outside of its read-only memory";
      ModelTable at;
      std::memcpy(&at, bytes->data(), sizeof at);
      kernels_ = model_ + static_cast<uint64_t>(at.kernels);
      code_ = at.code ? model_ + static_cast<uint64_t>(at.code) : 0;
    }
    if (kernels_ && !has_kernels()) return "a damaged table of kernels";
    if (code_ && !has_code()) return "a damaged table of compiled code";
    return nullptr;
  }
  bool has_kernels() const {
    const auto count = count_in(kernels_, offsetof(KernelTable, entries), kKernelAbiVersion);
    uint64_t entry = pointer(kernels_ + offsetof(KernelTable, entries)).value_or(0);
    if (!count || !memory(entry, *count * sizeof(KernelEntry))) return false;
    std::string_view before;
    for (uint32_t i = 0; i < *count; ++i, entry += sizeof(KernelEntry)) {
      const auto text = name(pointer(entry + offsetof(KernelEntry, name)).value_or(0));
      if (text <= before || !code_pointers(entry + offsetof(KernelEntry, function), 1)) {
        return false;
      }
      before = text;
    }
    return true;
  }
  bool has_code() const {
    const auto count = count_in(code_, offsetof(CodeTable, enter), kCodeAbiVersion);
    const uint64_t functions = pointer(code_ + offsetof(CodeTable, functions)).value_or(0);
    return count &&
           (*count == 0 || (code_pointers(code_ + offsetof(CodeTable, enter), 2) &&
                            memory(functions, *count * kWord) && code_pointers(functions, *count)));
  }

  std::string_view bytes_;
  std::string text_;  // of what is wrong, if it has numbers
  Elf64_Ehdr header_{};
  Machine machine_{};
  std::vector<Load> loads_;
  uint64_t next_page_ = 0;  // the first page behind the segments so far
  Range dynamic_;
  bool has_stack_ = false, has_rela_entry_ = false;
  std::optional<uint64_t> symtab_, strtab_, rela_, rela_size_;
  uint64_t strtab_size_ = 0, gnu_hash_ = 0, relative_ = 0;
  std::string_view relocations_;  // the table's bytes
  // The addresses of its ModelTable, KernelTable and CodeTable; 0 if there is none.
  uint64_t model_ = 0, kernels_ = 0, code_ = 0;
};

}  // namespace

std::optional<std::string> why_not_closed(std::string_view bytes, ElfModel* model) {
  ElfCheck check(bytes);
  if (const char* why = check.run()) return why;
  if (model) check.find_model(model);
  return std::nullopt;
}

}  // namespace tenon::vm
