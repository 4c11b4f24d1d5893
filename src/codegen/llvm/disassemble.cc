#include "codegen/llvm/disassemble.h"

#include <cstdio>
#include <memory>
#include <mutex>

#include "llvm-c/Disassembler.h"
#include "llvm-c/Target.h"
#include "llvm/Object/ELFObjectFile.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon::codegen {
namespace {

using Disassembler = std::unique_ptr<void, decltype(&LLVMDisasmDispose)>;

Disassembler disassembler_for(const std::string& triple) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64Disassembler();
  });
  Disassembler made(LLVMCreateDisasm(triple.c_str(), nullptr, 0, nullptr, nullptr),
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

void append_code(LLVMDisasmContextRef context, llvm::StringRef bytes, uint64_t address,
                 std::string* out) {
  char text[256];
  for (size_t i = 0; i < bytes.size();) {
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
  std::string out;
  for (const llvm::object::SectionRef& section : (*object)->sections()) {
    if (!section.isText() || section.isVirtual()) continue;
    auto bytes = section.getContents();
    if (!bytes) throw damaged(bytes.takeError());
    append_code(disassembler.get(), *bytes, section.getAddress(), &out);
  }
  return out;
}

}  // namespace tenon::codegen
