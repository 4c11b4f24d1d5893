// A Unit: a whole program of the machine in memory, the same content as a .tnx file. The assembler
// and the compiler's emitter build one; vm/executable saves and loads it; the disassembler prints
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/any.h"
#include "object/effect.h"
#include "support/error.h"
#include "vm/isa/instruction.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

struct Param {
  std::string name;
  SignatureType type;
};

// From code word `offset` on, up to the next one, instructions come from spans[span] of the unit.
struct CodeSpan {
  uint32_t offset = 0;
  uint32_t span = 0;
  bool operator==(const CodeSpan&) const = default;
};

struct FunctionUnit {
  std::string name;
  // May the host call it? Names of others are for people only.
  bool exported = true;
  std::vector<Param> params;  // arrive in registers 0, 1, ...
  SignatureType result;
  std::vector<std::string>
      result_names;             // of the result, or of each field of a tuple; may be empty
  uint32_t register_count = 0;  // the frame's size
  std::vector<Word> code;
  std::vector<CodeSpan> spans;  // offsets ascending
};

// What a tensor must be that takes the place of a constant which the file leaves out.
struct LateTensor {
  DataType dtype;
  std::vector<int64_t> shape;
  uint32_t alignment = 64;  // of its data, a power of two; data with less is copied
};

// A Tensor (compact, on the CPU), Shape, string, integer, float, boolean, dtype or device. Tensor
// memory is borrowed through the value: nothing is copied until the file is written.
struct Constant {
  std::string name;  // for people, and the key of a late one; else it may be empty
  Any value;         // None of a late one, until it is bound
  std::optional<LateTensor> late;
};

// A function that isn't bytecode: what call_packed names.
struct PackedName {
  std::string name;
  // In a kernel object of this file; otherwise a function registered with the host or found in one
  // of the libraries.
  bool kernel = false;
  Effect effect = Effect::Ordered;  // Pure of a kernel
  bool operator==(const PackedName&) const = default;
};

// What the bytes of a kernel image are. The numbers stand in files and never change; readers skip
// kinds that they don't know.
enum class ImageKind : uint8_t {
  Elf = 0,      // a closed shared object (vm/executable/kernel_abi.h)
  Ptx = 1,      // NVIDIA's assembly, as text
  OpenClC = 2,  // OpenCL C source
  Wasm = 3,     // a WebAssembly module
};
inline constexpr std::string_view kImageKindNames[] = {"elf", "ptx", "opencl-c", "wasm"};
inline std::string_view to_text(ImageKind kind) {
  return kImageKindNames[static_cast<uint8_t>(kind)];
}

struct KernelImage {
  ImageKind kind = ImageKind::Elf;
  std::string architecture;  // of a device's code, such as "sm_80"; empty for the host's
  std::string bytes;
};

// The kernels for one target: code for its host and for the devices that it drives.
struct KernelTarget {
  std::string triple;  // LLVM's, of the host
  std::string cpu;     // what it was compiled for, for people
  std::vector<std::string>
      cpu_features;  // that the host's code needs, as cpu_features.def names them
  std::vector<KernelImage> images;

  // The host's ELF object; null when there is none.
  const KernelImage* host_object() const;
};

// A section of the file that the machine itself has no use for.
struct UnitSection {
  std::string tag;  // four letters or digits
  std::string bytes;
  bool operator==(const UnitSection&) const = default;
};
// The kernels' computes, from which they can be compiled anew.
inline constexpr std::string_view kComputesTag = "CMPT";

struct Unit {
  std::vector<FunctionUnit> functions;
  std::vector<Constant> constants;
  std::vector<PackedName> packed;
  std::vector<KernelTarget> kernels;
  std::vector<Span> spans;
  std::vector<std::string> libraries;  // needed, by name: "onednn"
  std::vector<UnitSection> sections;   // a reader leaves out those with a tag that it doesn't know
  std::string producer;                // "tenon 0.1.0", for people

  // Index of the function of that name, or -1.
  int64_t find_function(std::string_view name) const;
  // Index of the packed function, added when it isn't there yet. Of several effects that are stated
  // for one function, the strongest holds.
  uint32_t packed_index(std::string_view name, bool kernel, Effect effect = Effect::Ordered);
  uint32_t add_constant(Any value, std::string name = "");
  // The bytes of the section; null when there is none.
  const std::string* find_section(std::string_view tag) const;
  // Index of the span, sharing the last one when equal.
  uint32_t add_span(const Span& span);
};

}  // namespace tenon::vm
