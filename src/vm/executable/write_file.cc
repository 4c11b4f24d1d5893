#include "vm/executable/write_file.h"

#include <cstring>
#include <functional>

#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"
#include "support/output_file.h"
#include "support/text.h"
#include "vm/executable/file_format.h"
#include "vm/executable/generated_schema.h"
#include "vm/executable/hash.h"
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
  return finish(b, tnx::CreateGlobals(b, functions_vector, libraries, producer).Union());
}

// Blocks of data behind a directory.
class DataBlocks {
 public:
  struct Block {
    uint64_t offset;
    const void* data;
    uint64_t size;
  };
  // The block's place, from the start of the data.
  uint64_t add(const void* data, uint64_t size) {
    blocks_.push_back({size_, data, size});
    uint64_t offset = size_;
    size_ = align_up(size_ + size);
    return offset;
  }
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  std::vector<Block> blocks_;
  uint64_t size_ = 0;
};

// The directory's size depends on nothing that its offsets say, so it is built twice: once to learn
// where the data begins.
std::string with_directory(const std::function<std::string(uint64_t data_begin)>& directory,
                           const DataBlocks& data, uint64_t* hashed_directory) {
  uint64_t begin = align_up(8 + directory(uint64_t{1} << 40).size());
  std::string table = directory(begin);
  uint64_t table_size = table.size();
  std::string out(reinterpret_cast<const char*>(&table_size), 8);
  out += table;
  *hashed_directory = out.size();
  TENON_ASSERT(out.size() <= begin, "a directory grew");
  out.resize(begin);
  for (const DataBlocks::Block& block : data.blocks()) {
    out.resize(begin + block.offset);
    out.append(static_cast<const char*>(block.data), block.size);
  }
  return out;
}

Offset<tnx::Constant> constant(FlatBufferBuilder& b, const Constant& c, uint64_t data_begin,
                               DataBlocks& data) {
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
      bytes = static_cast<uint64_t>(t.bytes());
      begin = data_begin + data.add(t.data(), bytes);
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

std::string constants_section(const Unit& unit, uint64_t* hashed) {
  DataBlocks data;
  auto directory = [&](uint64_t data_begin) {
    data = DataBlocks();
    FlatBufferBuilder b;
    b.ForceDefaults(true);  // the size must not depend on the offsets
    std::vector<Offset<tnx::Constant>> entries;
    for (const Constant& c : unit.constants) entries.push_back(constant(b, c, data_begin, data));
    auto vector = b.CreateVector(entries);
    return finish(b, tnx::CreateConstants(b, vector).Union());
  };
  return with_directory(directory, data, hashed);
}

std::string primitives_section(const Unit& unit) {
  FlatBufferBuilder b;
  std::vector<Offset<tnx::Primitive>> entries;
  for (const PackedName& p : unit.packed) {
    auto name = b.CreateString(p.name);
    entries.push_back(tnx::CreatePrimitive(b, name, p.kernel));
  }
  auto vector = b.CreateVector(entries);
  return finish(b, tnx::CreatePrimitives(b, vector).Union());
}

std::string code_section(const Unit& unit) {
  std::string out;
  for (const FunctionUnit& f : unit.functions) {
    out.append(reinterpret_cast<const char*>(f.code.data()), f.code.size() * sizeof(Word));
  }
  return out;
}

std::string kernels_section(const Unit& unit) {
  DataBlocks data;
  uint64_t hashed = 0;  // of kernels, all is hashed
  auto directory = [&](uint64_t data_begin) {
    data = DataBlocks();
    FlatBufferBuilder b;
    b.ForceDefaults(true);
    std::vector<Offset<tnx::KernelObject>> objects;
    for (const KernelObjectUnit& k : unit.kernels) {
      auto target = b.CreateString(k.target);
      auto cpu = b.CreateString(k.cpu);
      auto features = strings(b, k.cpu_features);
      uint64_t begin = data_begin + data.add(k.elf.data(), k.elf.size());
      objects.push_back(tnx::CreateKernelObject(b, target, cpu, features, begin, k.elf.size()));
    }
    auto vector = b.CreateVector(objects);
    return finish(b, tnx::CreateKernels(b, vector).Union());
  };
  return with_directory(directory, data, &hashed);
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
  return finish(b, tnx::CreateDebug(b, spans_vector, functions_vector).Union());
}

}  // namespace

std::string write_to_bytes(const Unit& unit) {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kFormatVersion;
  header.section_count = kSectionCount;
  uint64_t constants_hashed = 0;
  std::string sections[kSectionCount] = {
      globals_section(unit),    constants_section(unit, &constants_hashed),
      primitives_section(unit), code_section(unit),
      kernels_section(unit),    debug_section(unit)};
  std::string out(align_up(sizeof header), '\0');
  for (uint32_t i = 0; i < kSectionCount; ++i) {
    SectionEntry& entry = header.sections[i];
    out.resize(align_up(out.size()));
    entry.offset = out.size();
    entry.size = sections[i].size();
    entry.hashed = i == static_cast<uint32_t>(SectionId::Constants) ? constants_hashed : entry.size;
    entry.hash = xxh64(sections[i].data(), entry.hashed);
    out += sections[i];
    sections[i] = {};  // constants may be large
  }
  header.file_size = out.size();
  header.hash = header_hash(header);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

size_t save(const Unit& unit, const std::string& path) {
  verify(unit, {.name = path});
  const std::string bytes = write_to_bytes(unit);
  write_file(path, bytes);
  return bytes.size();
}

}  // namespace tenon::vm
