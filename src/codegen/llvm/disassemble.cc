#include "codegen/llvm/disassemble.h"

#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "codegen/llvm/architecture.h"
#include "llvm-c/Disassembler.h"
#include "llvm-c/Target.h"
#include "llvm/Object/ELFObjectFile.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/executable/kernel_abi.h"
#include "vm/executable/model_abi.h"

namespace tenon::codegen {
namespace {

using Disassembler = std::unique_ptr<void, decltype(&LLVMDisasmDispose)>;

// With a function that looks up symbols, LLVM resolves the targets of branches; without a name it
// prints the address. It doesn't for RISC-V, whose branches stay distances.
const char* no_symbol(void*, uint64_t, uint64_t* type, uint64_t, const char**) {
  *type = LLVMDisassembler_ReferenceType_InOut_None;
  return nullptr;
}

Disassembler disassembler_for(const std::string& triple) {
  static std::once_flag once;
  std::call_once(once, [] {
#define TENON_BACK_END(name, llvm_name, ...) \
  LLVMInitialize##llvm_name##TargetInfo();   \
  LLVMInitialize##llvm_name##TargetMC();     \
  LLVMInitialize##llvm_name##Disassembler();
#include "codegen/llvm/back_ends.def"
  });
  const char* cpu = "";
  for (const Architecture& each : architectures()) {
    if (llvm::StringRef(triple).split('-').first == each.name) cpu = each.base_cpu;
  }
  Disassembler made(LLVMCreateDisasmCPU(triple.c_str(), cpu, nullptr, 0, nullptr, &no_symbol),
                    &LLVMDisasmDispose);
  if (!made) {
    throw Error(ErrorKind::Unsupported,
                cat("this LLVM has no disassembler for ", printable(triple)));
  }
  LLVMSetDisasmOptions(made.get(), LLVMDisassembler_Option_PrintImmHex);
  return made;
}

void append_line(uint64_t address, std::string_view text, std::string* out) {
  char at[24];
  std::snprintf(at, sizeof at, "%8llx:", static_cast<unsigned long long>(address));
  *out += cat(at, text, "\n");
}

template <class T>
std::optional<T> value_of(llvm::Expected<T> expected) {
  if (expected) return std::move(*expected);
  llvm::consumeError(expected.takeError());
  return std::nullopt;
}

// The kernels of an object by the address of their entry. What is damaged has none: the functions
// used here return errors for any bytes, where those of ObjectFile may end the process.
class KernelNames {
 public:
  explicit KernelNames(llvm::StringRef bytes) {
    const auto file = value_of(Elf::create(bytes));
    const auto sections = file ? value_of(file->sections()) : std::nullopt;
    if (!sections) return;
    for (const Elf::Elf_Shdr& section : *sections) read_section(*file, section);
    for (const Elf::Elf_Shdr& section : *sections) {
      if (section.sh_type == llvm::ELF::SHT_DYNSYM) read_symbols(*file, section);
    }
  }

  std::map<uint64_t, std::string> by_address;

 private:
  using Elf = llvm::object::ELFFile<llvm::object::ELF64LE>;

  void read_section(const Elf& file, const Elf::Elf_Shdr& section) {
    if (section.sh_type == llvm::ELF::SHT_RELA) {
      const auto relocations = value_of(file.relas(section));
      if (!relocations) return;
      for (const Elf::Elf_Rela& relocation : *relocations) {
        pointers_[relocation.r_offset] = static_cast<uint64_t>(relocation.r_addend);
      }
    } else if (section.sh_type == llvm::ELF::SHT_PROGBITS) {
      if (const auto bytes = value_of(file.getSectionContents(section))) {
        contents_[section.sh_addr] = {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
      }
    }
  }

  void read_symbols(const Elf& file, const Elf::Elf_Shdr& section) {
    const auto symbols = value_of(file.symbols(&section));
    const auto names = value_of(file.getStringTableForSymtab(section));
    if (!symbols || !names) return;
    for (const Elf::Elf_Sym& symbol : *symbols) {
      const auto name = value_of(symbol.getName(*names));
      if (name == vm::kKernelTableSymbol) read_table(symbol.st_value);
      if (name == vm::kModelTableSymbol) read_model(symbol.st_value);
    }
  }

  void read_model(uint64_t table) {
    const llvm::StringRef kernels = bytes_at(table + offsetof(vm::ModelTable, kernels));
    if (kernels.size() < sizeof(int64_t)) return;
    read_table(table + llvm::support::endian::read64le(kernels.data()));
  }

  void read_table(uint64_t table) {
    const llvm::StringRef count = bytes_at(table + offsetof(vm::KernelTable, count));
    const auto entries = pointer_at(table + offsetof(vm::KernelTable, entries));
    if (count.size() < sizeof(uint32_t) || !entries) return;
    const uint32_t kernels = llvm::support::endian::read32le(count.data());
    for (uint32_t i = 0; i < kernels; ++i) {
      const uint64_t entry = *entries + i * sizeof(vm::KernelEntry);
      const auto name = pointer_at(entry + offsetof(vm::KernelEntry, name));
      const auto function = pointer_at(entry + offsetof(vm::KernelEntry, function));
      if (!name || !function) return;
      constexpr size_t kLongestName = 1000;
      const llvm::StringRef text = bytes_at(*name).take_front(kLongestName);
      by_address[*function] = text.substr(0, text.find('\0')).str();
    }
  }

  // A relocation fills in the pointer.
  std::optional<uint64_t> pointer_at(uint64_t address) const {
    const auto found = pointers_.find(address);
    return found == pointers_.end() ? std::nullopt : std::optional(found->second);
  }

  // The bytes from an address to the end of its section; empty if the file has none there.
  llvm::StringRef bytes_at(uint64_t address) const {
    auto section = contents_.upper_bound(address);
    if (section == contents_.begin()) return {};
    --section;
    return section->second.substr(address - section->first);
  }

  std::map<uint64_t, uint64_t> pointers_;         // by where they lie
  std::map<uint64_t, llvm::StringRef> contents_;  // of sections, by address
};

void append_code(LLVMDisasmContextRef context, llvm::StringRef bytes, uint64_t address,
                 const KernelNames& names, std::string* out) {
  char text[256];
  for (size_t i = 0; i < bytes.size();) {
    if (auto name = names.by_address.find(address + i); name != names.by_address.end()) {
      *out += cat(printable(name->second), ":\n");
    }
    auto* from = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data() + i));
    size_t length =
        LLVMDisasmInstruction(context, from, bytes.size() - i, address + i, text, sizeof text);
    if (length == 0) {
      length = 1;
      std::snprintf(text, sizeof text, "\t.byte\t0x%02x", *from);
    }
    append_line(address + i, text, out);
    i += length;
  }
}

}  // namespace

std::string disassemble(std::string_view elf) {
  const auto damaged = [](llvm::Error error) {
    return Error(ErrorKind::Damaged, "native code can't be read")
        .found(llvm::toString(std::move(error)))
        .expected("an ELF object");
  };
  auto object = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(elf.data(), elf.size()), "kernels"));
  if (!object) throw damaged(object.takeError());
  const Disassembler disassembler = disassembler_for((*object)->makeTriple().str());
  const KernelNames names({elf.data(), elf.size()});
  std::string out;
  for (const llvm::object::SectionRef& section : (*object)->sections()) {
    if (!section.isText() || section.isVirtual()) continue;
    auto bytes = section.getContents();
    if (!bytes) throw damaged(bytes.takeError());
    append_code(disassembler.get(), *bytes, section.getAddress(), names, &out);
  }
  return out;
}

}  // namespace tenon::codegen
