// A Unit: a whole program in memory, with the same content as a .tnx file. The assembler and the
// compiler's emitter build units; vm/executable saves and loads them; the disassembler prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "object/any.h"
#include "object/effect.h"
#include "support/error.h"
#include "vm/isa/instruction.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

// The rule for every name in a unit: "1 to 65536 bytes, none of them a control byte".
std::string name_rule();
// How a text breaks that rule, such as "a name of 0 bytes"; nullopt if it is a name.
std::optional<std::string> name_fault(std::string_view text);

struct Param {
  std::string name;
  SignatureType type;
  bool borrowed = false;  // its register borrows (opcodes.def)
};

// From code word `offset` up to the next CodeSpan, instructions come from spans[span] of the unit.
struct CodeSpan {
  uint32_t offset = 0;
  uint32_t span = 0;
  bool operator==(const CodeSpan&) const = default;
};

struct FunctionUnit {
  std::string name;
  // Whether the host may call it. Other functions' names are only for people.
  bool exported = true;
  std::vector<Param> params;  // arrive in registers 0, 1, ...
  SignatureType result;
  std::vector<std::string>
      result_names;             // of the result, or of each field of a tuple; may be empty
  uint32_t register_count = 0;  // the frame's size
  std::vector<Word> code;
  std::vector<CodeSpan> spans;  // offsets ascending
};

// The required type of a tensor that is bound to a late constant, whose value the file leaves out.
struct LateTensor {
  DataType dtype;
  std::vector<int64_t> shape;
  uint32_t alignment = 64;  // of its data, a power of two; less aligned data is copied
};

// A Tensor (compact, on the CPU), Shape, string, integer, float, boolean, dtype or device. The
// value keeps tensor memory alive: nothing is copied until the file is written.
struct Constant {
  std::string name;  // for people, and the key of a late constant; otherwise optional
  Any value;         // None for a late constant until it is bound
  std::optional<LateTensor> late;
};

// A function that isn't bytecode: the callee of call_packed.
struct PackedName {
  std::string name;
  // Whether it is in a kernel object of this file; otherwise it is a function registered with the
  // host or found in one of the libraries.
  bool kernel = false;
  Effect effect = Effect::Ordered;  // always Pure for a kernel
  bool operator==(const PackedName&) const = default;
};

// The format of a kernel image.
enum class ImageKind : uint8_t {
#define TENON_IMAGE_KIND(identifier, number, name) identifier = number,
#include "vm/isa/image_kinds.def"
};
std::span<const ImageKind> all_image_kinds();
std::string_view to_text(ImageKind kind);  // "elf", ...

struct KernelImage {
  ImageKind kind = ImageKind::Elf;
  std::string architecture;  // of device code, such as "sm_80"; empty for host code
  std::string bytes;
};

// The kernels for one target: code for a host and the devices that it drives.
struct KernelTarget {
  std::string triple;                     // LLVM's, of the host
  std::string cpu;                        // the CPU it was compiled for, for people
  std::vector<std::string> cpu_features;  // required by the host code, named as in cpu_features.def
  std::vector<KernelImage> images;

  // The host's ELF object; null if there is none.
  const KernelImage* host_object() const;
};

struct Unit {
  std::vector<FunctionUnit> functions;
  // The definitions of all data types in the exported functions' signatures (AdtSignature), for
  // hosts, in text. Nothing here relies on them, or checks more than their size.
  std::vector<std::string> types;
  std::vector<Constant> constants;
  std::vector<PackedName> packed;
  std::vector<KernelTarget> kernels;
  // The bytes of the host code, if that is the shared object that holds the file, instead of an
  // image (vm/executable/model_abi.h); otherwise 0.
  uint64_t shared_code = 0;
  std::vector<Span> spans;
  std::vector<std::string> libraries;  // needed, by name: "onednn"
  // The kernels' computes, from which they can be compiled again, in the encoding of the compiler
  // that wrote them; may be empty.
  std::string computes;
  // The model's graph before and after compilation, for reports, in the encoding of the compiler
  // that wrote it (driver/model_graph.h); may be empty.
  std::string graph;
  std::string producer;    // "tenon 0.1.0", for people
  std::string provenance;  // what it was made from and how, for people (driver/provenance.h)

  // The index of the exported function of that name, or -1.
  int64_t find_exported(std::string_view name) const;
  // The exported functions' names, in the unit's order.
  std::vector<std::string> exported_names() const;
  uint32_t add_constant(Any value, std::string name = "");
  // The index of the span; an equal last span is reused.
  uint32_t add_span(const Span& span);
};

}  // namespace tenon::vm
