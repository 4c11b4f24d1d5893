#include "vm/executable/write_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "device/call_context.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/bulk.h"
#include "support/output_file.h"
#include "support/phase.h"
#include "support/text.h"
#include "vm/executable/file_format.h"
#include "vm/executable/generated_schema.h"
#include "vm/executable/hash.h"
#include "vm/executable/place_model.h"
#include "vm/executable/section_table.h"
#include "vm/executable/verify.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

std::string finish(FlatBufferBuilder& b, Offset<void> root) {
  b.Finish(Offset<flatbuffers::Table>(root.o));
  return {reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize()};
}

Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> strings(
    FlatBufferBuilder& b, const std::vector<std::string>& list) {
  return b.CreateVectorOfStrings(list);
}

std::string globals_section(const Unit& unit) {
  FlatBufferBuilder b;
  std::vector<Offset<tnx::Function>> functions;
  uint64_t code_begin = 0;
  for (const FunctionUnit& f : unit.functions) {
    std::vector<Offset<tnx::Param>> params;
    for (const Param& p : f.params) {
      auto name = b.CreateString(p.name);
      auto type = b.CreateString(to_text(p.type));
      params.push_back(tnx::CreateParam(b, name, type, p.borrowed));
    }
    auto name = b.CreateString(f.name);
    auto params_vector = b.CreateVector(params);
    auto result = b.CreateString(to_text(f.result));
    auto result_names = strings(b, f.result_names);
    functions.push_back(tnx::CreateFunction(b, name, f.exported, params_vector, result,
                                            result_names, f.register_count, code_begin,
                                            static_cast<uint32_t>(f.code.size())));
    code_begin += f.code.size();
  }
  auto functions_vector = b.CreateVector(functions);
  auto libraries = strings(b, unit.libraries);
  auto producer = b.CreateString(unit.producer);
  auto types = unit.types.empty() ? 0 : strings(b, unit.types);
  return finish(b, tnx::CreateGlobals(b, functions_vector, libraries, producer, types).Union());
}

// A section's bytes: its own, then blocks of data such as weights, which are borrowed, never
// copied.
class SectionBytes {
 public:
  SectionBytes() = default;
  explicit SectionBytes(std::string bytes) : head_(std::move(bytes)), size_(head_.size()) {}

  // A section with a directory (file_format.h) from `build`, which adds the blocks to the section
  // passed to it. The directory's size doesn't depend on its offsets, so it is built twice: the
  // first time to learn where the data starts.
  template <class Build>
  static SectionBytes with_directory(const Build& build) {
    SectionBytes measured, out;
    const uint64_t begin = align_up(8 + build(measured).size());
    out.size_ = begin;
    const std::string table = build(out);
    const uint64_t table_size = table.size();
    out.head_.assign(reinterpret_cast<const char*>(&table_size), 8);
    out.head_ += table;
    TENON_ASSERT(out.head_.size() <= begin, "a directory grew");
    if (out.blocks_.empty()) out.size_ = out.head_.size();
    return out;
  }

  // Returns the block's offset in the section; `block` must stay alive.
  uint64_t add(std::string_view block) {
    const uint64_t offset = align_up(size_);
    blocks_.push_back({offset, block});
    size_ = offset + block.size();
    return offset;
  }

  std::string_view head() const { return head_; }
  uint64_t size() const { return size_; }
  // Visits every byte after the head, in pieces.
  template <class F>
  void for_each_data(const F& f) const {
    static constexpr char kZeros[kFileAlignment] = {};
    uint64_t at = head_.size();
    for (const auto& [offset, block] : blocks_) {
      f(std::string_view(kZeros, offset - at));
      f(block);
      at = offset + block.size();
    }
  }

 private:
  std::string head_;
  uint64_t size_ = 0;
  std::vector<std::pair<uint64_t, std::string_view>> blocks_;
};

Offset<tnx::Constant> late_constant(FlatBufferBuilder& b, const Constant& c) {
  auto name = b.CreateString(c.name);
  auto shape = b.CreateVector(c.late->shape);
  return tnx::CreateConstant(b, name, tnx::ConstantKind_LateTensor, c.late->dtype.word(), 0, shape,
                             0, 0, c.late->alignment);
}

Offset<tnx::Constant> constant(FlatBufferBuilder& b, const Constant& c, SectionBytes& section) {
  const AnyView& v = c.value;
  auto name = b.CreateString(c.name);
  tnx::ConstantKind kind = tnx::ConstantKind_None;
  uint64_t bits = 0, begin = 0, bytes = 0;
  Offset<flatbuffers::Vector<uint8_t>> text = 0;
  Offset<flatbuffers::Vector<int64_t>> shape = 0;
  switch (v.type_index) {
    case TypeIndex::None:
      break;
    case TypeIndex::Int:
      kind = tnx::ConstantKind_Int;
      bits = v.v.bits;
      break;
    case TypeIndex::Bool:
      kind = tnx::ConstantKind_Bool;
      bits = v.v.i != 0;
      break;
    case TypeIndex::Float:
      kind = tnx::ConstantKind_Float;
      bits = v.v.bits;
      break;
    case TypeIndex::DataType:
      kind = tnx::ConstantKind_Dtype;
      bits = v.as<DataType>().word();
      break;
    case TypeIndex::Device:
      kind = tnx::ConstantKind_Device;
      bits = Arg::device(v.as<DLDevice>()).bits();
      break;
    case TypeIndex::Shape: {
      kind = tnx::ConstantKind_Shape;
      Shape s = v.as<Shape>();
      shape = b.CreateVector(s.data(), s.size());
      break;
    }
    case TypeIndex::Tensor: {
      kind = tnx::ConstantKind_Tensor;
      Tensor t = v.as<Tensor>();
      TENON_ASSERT(t.compact() && t.device().device_type == kDLCPU, "constant ", c.name,
                   " is not compact on the CPU");
      bits = t.dtype().word();
      shape = b.CreateVector(t.shape().data(), t.shape().size());
      bytes = content_bytes(t);
      begin = section.add({static_cast<const char*>(t.data()), bytes});
      break;
    }
    default:
      TENON_ASSERT(String::accepts(v), "a ", type_name(v.type_index), " can't be a constant");
      kind = tnx::ConstantKind_String;
      auto s = v.as<std::string_view>();
      text = b.CreateVector(reinterpret_cast<const uint8_t*>(s.data()), s.size());
  }
  return tnx::CreateConstant(b, name, kind, bits, text, shape, begin, bytes);
}

SectionBytes constants_section(const Unit& unit) {
  return SectionBytes::with_directory([&](SectionBytes& section) {
    FlatBufferBuilder b;
    b.ForceDefaults(true);  // the size must not depend on the offsets
    std::vector<Offset<tnx::Constant>> entries;
    for (const Constant& c : unit.constants) {
      entries.push_back(c.late ? late_constant(b, c) : constant(b, c, section));
    }
    auto vector = b.CreateVector(entries);
    return finish(b, tnx::CreateConstants(b, vector).Union());
  });
}

std::string packed_section(const Unit& unit) {
  FlatBufferBuilder b;
  std::vector<Offset<tnx::PackedFunction>> entries;
  for (const PackedName& p : unit.packed) {
    auto name = b.CreateString(p.name);
    entries.push_back(
        tnx::CreatePackedFunction(b, name, p.kernel, static_cast<tnx::Effect>(p.effect)));
  }
  auto vector = b.CreateVector(entries);
  return finish(b, tnx::CreatePackedFunctions(b, vector).Union());
}

std::string code_section(const Unit& unit) {
  std::string out;
  for (const FunctionUnit& f : unit.functions) {
    out.append(reinterpret_cast<const char*>(f.code.data()), f.code.size() * sizeof(Word));
  }
  return out;
}

SectionBytes kernels_section(const Unit& unit) {
  return SectionBytes::with_directory([&](SectionBytes& section) {
    FlatBufferBuilder b;
    b.ForceDefaults(true);
    std::vector<Offset<tnx::KernelTarget>> targets;
    for (const KernelTarget& target : unit.kernels) {
      std::vector<Offset<tnx::KernelImage>> images;
      for (const KernelImage& image : target.images) {
        auto architecture = b.CreateString(image.architecture);
        images.push_back(tnx::CreateKernelImage(b, static_cast<uint8_t>(image.kind), architecture,
                                                section.add(image.bytes), image.bytes.size()));
      }
      auto triple = b.CreateString(target.triple);
      auto cpu = b.CreateString(target.cpu);
      auto features = strings(b, target.cpu_features);
      auto images_vector = b.CreateVector(images);
      targets.push_back(tnx::CreateKernelTarget(b, triple, cpu, features, 0, 0, images_vector));
    }
    auto vector = b.CreateVector(targets);
    return finish(b, tnx::CreateKernels(b, vector).Union());
  });
}

bool has_debug(const Unit& unit) {
  return !unit.provenance.empty() || !unit.spans.empty() ||
         std::any_of(unit.functions.begin(), unit.functions.end(),
                     [](const FunctionUnit& f) { return !f.spans.empty(); });
}

std::string debug_section(const Unit& unit) {
  FlatBufferBuilder b;
  std::vector<Offset<tnx::Span>> spans;
  for (const Span& s : unit.spans) {
    auto file = b.CreateSharedString(s.file);
    std::vector<Offset<flatbuffers::String>> nodes;
    for (const auto& n : s.nodes) nodes.push_back(b.CreateSharedString(n));
    auto nodes_vector = b.CreateVector(nodes);
    spans.push_back(tnx::CreateSpan(b, file, s.line, s.column, nodes_vector));
  }
  std::vector<Offset<tnx::FunctionSpans>> functions;
  for (const FunctionUnit& f : unit.functions) {
    std::vector<tnx::CodeSpan> list;
    for (const CodeSpan& s : f.spans) list.emplace_back(s.offset, s.span);
    auto vector = b.CreateVectorOfStructs(list);
    functions.push_back(tnx::CreateFunctionSpans(b, vector));
  }
  auto spans_vector = b.CreateVector(spans);
  auto functions_vector = b.CreateVector(functions);
  auto provenance = unit.provenance.empty() ? 0 : b.CreateString(unit.provenance);
  return finish(b, tnx::CreateDebug(b, spans_vector, functions_vector, provenance).Union());
}

struct WholeFile {
  FileHeader header{};
  std::vector<SectionEntry> table;
  std::vector<SectionBytes> sections;

  explicit WholeFile(const Unit& unit) {
    add(SectionId::Globals, SectionBytes(globals_section(unit)));
    if (!unit.constants.empty()) add(SectionId::Constants, constants_section(unit));
    if (!unit.packed.empty()) add(SectionId::Packed, SectionBytes(packed_section(unit)));
    add(SectionId::Code, SectionBytes(code_section(unit)));
    if (!unit.kernels.empty()) add(SectionId::Kernels, kernels_section(unit));
    if (has_debug(unit)) add(SectionId::Debug, SectionBytes(debug_section(unit)));
    for (const auto& [id, text] : {std::pair(SectionId::Computes, &unit.computes),
                                   std::pair(SectionId::Graph, &unit.graph)}) {
      SectionBytes bytes;
      if (!text->empty()) bytes.add(*text);
      add(id, std::move(bytes));
    }
    finish();
  }
  size_t size() const { return header.file_size; }

  void add(SectionId id, SectionBytes section) {
    if (section.size() == 0) return;
    const SectionInfo& info = section_info(id);
    SectionEntry entry{};
    std::memcpy(entry.tag, info.tag.data(), sizeof entry.tag);
    entry.flags = info.required ? kSectionRequired : 0;
    entry.size = section.size();
    Phase hashing("hash");
    Xxh64 checked, data;
    checked.update(section.head());
    section.for_each_data(
        [&](std::string_view bytes) { (info.checked_whole() ? checked : data).update(bytes); });
    entry.checked = info.checked_whole() ? section.size() : section.head().size();
    entry.hash = checked.digest();
    entry.data_hash = entry.checked == entry.size ? 0 : data.digest();
    table.push_back(entry);
    sections.push_back(std::move(section));
  }

  // Assigns the sections' offsets.
  void finish() {
    uint64_t end = sizeof header + table.size() * sizeof(SectionEntry);
    for (SectionEntry& entry : table) {
      entry.offset = align_up(end);
      end = entry.offset + entry.size;
    }
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kFormatVersion;
    header.section_count = static_cast<uint32_t>(table.size());
    header.file_size = end;
    header.hash = table_hash(header, table_bytes());
  }
  std::string_view table_bytes() const {
    return {reinterpret_cast<const char*>(table.data()), table.size() * sizeof(SectionEntry)};
  }

  // Visits every byte, in pieces.
  template <class F>
  void for_each(const F& f) const {
    static constexpr char kZeros[kFileAlignment] = {};
    f(std::string_view(reinterpret_cast<const char*>(&header), sizeof header));
    f(table_bytes());
    uint64_t at = sizeof header + table_bytes().size();
    for (size_t i = 0; i < sections.size(); ++i) {
      f(std::string_view(kZeros, table[i].offset - at));
      f(sections[i].head());
      sections[i].for_each_data(f);
      at = table[i].offset + table[i].size;
    }
  }
};

const KernelImage& code_for_shared(const Unit& unit) {
  const KernelImage* code = unit.kernels.size() == 1 ? unit.kernels[0].host_object() : nullptr;
  TENON_ASSERT(code != nullptr, "a shared object needs the code of one target");
  return *code;
}

Unit without_code(Unit unit) {
  for (KernelTarget& target : unit.kernels) target.images.clear();
  return unit;
}

// The program's file without its native code, behind the shared object that is this code.
struct SharedFile {
  Unit unit;
  WholeFile file;
  std::string object;

  explicit SharedFile(const Unit& program)
      : unit(without_code(program)),
        file(unit),
        object(place_model(code_for_shared(program).bytes, file.size())) {}
  size_t size() const { return object.size() + file.size(); }
  template <class F>
  void for_each(const F& f) const {
    f(std::string_view(object));
    file.for_each(f);
  }
};

template <class Form>
std::string bytes_of(const Form& form) {
  charge(form.size());
  std::string out;
  out.reserve(form.size());
  form.for_each([&](std::string_view bytes) {
    in_parts(bytes.size(), [&](size_t at, size_t n) { out += bytes.substr(at, n); });
  });
  return out;
}

}  // namespace

std::string write_to_bytes(const Unit& unit) {
  return bytes_of(WholeFile(unit));
}

std::string write_shared_to_bytes(const Unit& unit) {
  return bytes_of(SharedFile(unit));
}

namespace {

// Verifies the unit, then writes its Form.
template <class Form>
size_t write_as(const Unit& unit, OutputFile& out, const std::string& name) {
  {
    Phase verifying("verify");
    verify(unit, {.name = name});
  }
  Phase writing("write");
  const Form form(unit);
  form.for_each([&](std::string_view bytes) { out.write(bytes); });
  return form.size();
}

}  // namespace

size_t write(const Unit& unit, OutputFile& out, const std::string& name) {
  return write_as<WholeFile>(unit, out, name);
}

size_t write_shared(const Unit& unit, OutputFile& out, const std::string& name) {
  return write_as<SharedFile>(unit, out, name);
}

size_t save(const Unit& unit, const std::string& path) {
  OutputFile out(path);
  const size_t bytes = write(unit, out, path);
  out.commit();
  return bytes;
}

}  // namespace tenon::vm
