#include "vm/executable/elf_check.h"

#include <elf.h>

#include <cstring>
#include <vector>

#include "support/text.h"

namespace tenon::vm {
namespace {

class ElfCheck {
 public:
  explicit ElfCheck(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::string> run() {
    if (auto why = header()) return why;
    if (auto why = segments()) return why;
    if (auto why = dynamic_section()) return why;
    if (auto why = symbols()) return why;
    return relocations();
  }

 private:
  template <class T>
  bool read(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }

  std::optional<std::string> header() {
    if (!read(0, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      return "bytes that are no ELF file";
    }
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_type != ET_DYN || header_.e_phentsize != sizeof(Elf64_Phdr)) {
      return "an ELF file that is no 64-bit little-endian shared object";
    }
    return std::nullopt;
  }

  std::optional<std::string> segments() {
    constexpr uint64_t kPage = 4096;
    uint64_t end = 0;  // the first page behind the segments so far
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr p;
      if (header_.e_phoff > bytes_.size() || !read(header_.e_phoff + i * sizeof p, &p)) {
        return "program headers outside of its bytes";
      }
      if (p.p_type == PT_INTERP) return "an interpreter";
      if (p.p_type == PT_TLS) return "thread-local storage";
      if (p.p_type == PT_GNU_STACK && (p.p_flags & PF_X)) return "an executable stack";
      if (p.p_type != PT_LOAD && p.p_type != PT_DYNAMIC) continue;
      if (p.p_offset > bytes_.size() || p.p_filesz > bytes_.size() - p.p_offset ||
          p.p_filesz > p.p_memsz || p.p_vaddr > UINT64_MAX - p.p_memsz) {
        return "a segment outside of its bytes";
      }
      constexpr uint64_t kMaxMemory = uint64_t{1} << 32;
      if (p.p_vaddr + p.p_memsz > kMaxMemory) return "a segment beyond 4 GiB";
      if (p.p_type == PT_LOAD && (p.p_flags & PF_W) && (p.p_flags & PF_X)) {
        return "a segment that is writable and executable";
      }
      if (p.p_type == PT_LOAD) {
        // Whole pages are mapped: on a page that two segments share, the second one's bytes lie.
        if (p.p_memsz && p.p_vaddr / kPage < end) return "segments that overlap in memory";
        end = (p.p_vaddr + p.p_memsz + kPage - 1) / kPage;
        if (p.p_vaddr % kPage != p.p_offset % kPage) return "a segment that can't be mapped";
        loads_.push_back(p);
      } else {
        if (has_dynamic_) return "two dynamic sections";
        dynamic_ = p;
        has_dynamic_ = true;
      }
    }
    if (loads_.empty() || !has_dynamic_) return "no loadable segment or no dynamic section";
    // The loader reads it at its address.
    if (offset_of(dynamic_.p_vaddr, dynamic_.p_filesz) != dynamic_.p_offset) {
      return "a dynamic section that lies elsewhere in memory";
    }
    return std::nullopt;
  }

  // The file offset of `size` bytes at a virtual address, if one segment's file bytes hold them
  // all.
  std::optional<uint64_t> offset_of(uint64_t address, uint64_t size) const {
    for (const Elf64_Phdr& p : loads_) {
      if (address >= p.p_vaddr && address - p.p_vaddr <= p.p_filesz &&
          size <= p.p_filesz - (address - p.p_vaddr)) {
        return p.p_offset + (address - p.p_vaddr);
      }
    }
    return std::nullopt;
  }
  bool is_writable(uint64_t address, uint64_t size) const {
    for (const Elf64_Phdr& p : loads_) {
      if ((p.p_flags & PF_W) && address >= p.p_vaddr && address - p.p_vaddr <= p.p_memsz &&
          size <= p.p_memsz - (address - p.p_vaddr)) {
        return true;
      }
    }
    return false;
  }

  std::optional<std::string> dynamic_section() {
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic_.p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn d;
      if (!read(dynamic_.p_offset + at, &d)) return "a dynamic section outside of its bytes";
      switch (d.d_tag) {
        case DT_NULL:
          return std::nullopt;
        case DT_NEEDED:
          return "a library that it needs";
        case DT_INIT:
        case DT_FINI:
        case DT_INIT_ARRAY:
        case DT_FINI_ARRAY:
        case DT_PREINIT_ARRAY:
          return "a constructor or destructor";
        case DT_RPATH:
        case DT_RUNPATH:
        case DT_AUDIT:
        case DT_DEPAUDIT:
        case static_cast<Elf64_Sxword>(DT_FILTER):
        case static_cast<Elf64_Sxword>(DT_AUXILIARY):
          return "a reference to another object";
        case DT_TEXTREL:
          return "relocations in its code";
        case DT_VERNEED:
          return "versioned imports";
        case kRelr:
          return "packed relocations";
        case DT_REL:
          return "relocations without addends";
        case DT_FLAGS:
          if (d.d_un.d_val & DF_TEXTREL) return "relocations in its code";
          break;
        case DT_SYMTAB:
          symtab_ = d.d_un.d_ptr;
          break;
        case DT_HASH:
          hash_ = d.d_un.d_ptr;
          break;
        case DT_GNU_HASH:
          gnu_hash_ = d.d_un.d_ptr;
          break;
        case DT_RELA:
          rela_ = d.d_un.d_ptr;
          break;
        case DT_RELASZ:
          rela_size_ = d.d_un.d_val;
          break;
        case DT_JMPREL:
          plt_ = d.d_un.d_ptr;
          break;
        case DT_PLTRELSZ:
          plt_size_ = d.d_un.d_val;
          break;
        default:
          break;
      }
    }
    return "a dynamic section without an end";
  }

  // How many dynamic symbols there are, from the hash tables that the dynamic loader uses: the
  // greater number where there are two.
  std::optional<uint64_t> symbol_count() const {
    uint64_t count = 0;
    if (hash_) {
      auto at = offset_of(hash_, 8);
      uint32_t chains = 0;
      if (!at || !read(*at + 4, &chains)) return std::nullopt;
      count = chains;
    }
    if (hash_ && !gnu_hash_) return count;
    auto of_gnu_hash = gnu_symbol_count();
    if (!of_gnu_hash) return std::nullopt;
    return std::max(count, *of_gnu_hash);
  }

  std::optional<uint64_t> gnu_symbol_count() const {
    struct {
      uint32_t buckets, first, bloom_words, shift;
    } table;
    auto at = gnu_hash_ ? offset_of(gnu_hash_, sizeof table) : std::nullopt;
    if (!at || !read(*at, &table)) return std::nullopt;
    uint64_t buckets = *at + sizeof table + uint64_t{table.bloom_words} * 8;
    uint64_t last = 0;
    for (uint64_t i = 0; i < table.buckets; ++i) {
      uint32_t bucket = 0;
      if (!read(buckets + i * 4, &bucket)) return std::nullopt;
      last = std::max<uint64_t>(last, bucket);
    }
    if (last < table.first) return table.first;
    uint64_t chains = buckets + uint64_t{table.buckets} * 4;
    for (;; ++last) {
      uint32_t entry = 0;
      if (!read(chains + (last - table.first) * 4, &entry)) return std::nullopt;
      if (entry & 1) return last + 1;
    }
  }

  std::optional<std::string> symbols() {
    auto count = symbol_count();
    if (!count) return "symbols without a readable hash table";
    if (*count > bytes_.size() / sizeof(Elf64_Sym)) return "more symbols than its bytes can hold";
    auto at = offset_of(symtab_, *count * sizeof(Elf64_Sym));
    if (!at) return "a symbol table outside of its segments";
    for (uint64_t i = 1; i < *count; ++i) {
      Elf64_Sym s;
      if (!read(*at + i * sizeof s, &s)) return "a symbol table outside of its bytes";
      if (s.st_shndx == SHN_UNDEF) return "an imported symbol";
      if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC) return "a symbol that code resolves";
      if (ELF64_ST_TYPE(s.st_info) == STT_TLS) return "thread-local storage";
    }
    symbol_count_ = *count;
    return std::nullopt;
  }

  std::optional<std::string> relocations() {
    for (auto [address, size] : {std::pair{rela_, rela_size_}, std::pair{plt_, plt_size_}}) {
      if (size == 0) continue;
      auto at = offset_of(address, size);
      if (!at || size % sizeof(Elf64_Rela)) return "relocations outside of its segments";
      for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); ++i) {
        Elf64_Rela r;
        if (!read(*at + i * sizeof r, &r)) return "relocations outside of its bytes";
        uint32_t type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
        bool simple = header_.e_machine == EM_X86_64
                          ? type == R_X86_64_RELATIVE || type == R_X86_64_64 ||
                                type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT
                          : type == R_AARCH64_RELATIVE || type == R_AARCH64_ABS64 ||
                                type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT;
        if (!simple) return cat("a relocation of type ", type);
        if (ELF64_R_SYM(r.r_info) >= symbol_count_)
          return "a relocation by a symbol that isn't there";
        if (!is_writable(r.r_offset, 8)) return "a relocation outside of its writable segments";
      }
    }
    return std::nullopt;
  }

  static constexpr Elf64_Sxword kRelr = 36;

  std::string_view bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> loads_;
  Elf64_Phdr dynamic_{};
  bool has_dynamic_ = false;
  uint64_t symtab_ = 0, hash_ = 0, gnu_hash_ = 0, rela_ = 0, rela_size_ = 0, plt_ = 0,
           plt_size_ = 0;
  uint64_t symbol_count_ = 0;
};

}  // namespace

std::optional<std::string> why_not_closed(std::string_view bytes) {
  return ElfCheck(bytes).run();
}

}  // namespace tenon::vm
