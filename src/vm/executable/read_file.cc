#include "vm/executable/read_file.h"

#include <cstring>
#include <iterator>

#include "device/call_context.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/generated_schema.h"
#include "vm/executable/kernel_error.h"
#include "vm/executable/verify.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

// Where tables of a section have a list of strings: the field of its root that lists the tables,
// and their field.
struct StringLists {
  flatbuffers::voffset_t tables = 0, strings = 0;
};

class Reader {
 public:
  // `bytes` are those of the .tnx file in `file`.
  Reader(const Ref<FileBytes>& file, std::string_view bytes, const ReadOptions& options)
      : file_(file), bytes_(bytes), options_(options) {}

  LoadedUnit run() {
    out_.table = read_section_table(bytes_, options_.name, options_.check_hashes);
    globals();
    constants();
    packed_functions();
    code();
    kernels();
    debug();
    text(SectionId::Computes, out_.unit.computes);
    text(SectionId::Graph, out_.unit.graph);
    const SectionEntry* code = out_.table.find(SectionId::Code);
    verify(out_.unit, {.name = options_.name,
                       .version = out_.table.version,
                       .code_offset = code ? code->offset : 0});
    return std::move(out_);
  }

 private:
  [[noreturn]] void damaged(std::string_view where, std::string_view found,
                            std::string_view expected) const {
    throw_damaged(options_.name, where, found, expected);
  }
  static std::string_view name_of(SectionId id) { return section_info(id).name; }
  // Empty if the file doesn't have the section.
  std::string_view section(SectionId id) const {
    const SectionEntry* entry = out_.table.find(id);
    return entry ? bytes_.substr(entry->offset, entry->size) : std::string_view();
  }

  // Whether the lists of strings can lie beside each other in the section. FlatBuffers' verifier
  // counts tables, not strings: of many references to one table with a long list, it would visit
  // each string once for every reference.
  static bool lists_fit(std::string_view bytes, const StringLists& lists,
                        flatbuffers::Verifier verifier) {
    using flatbuffers::Table;
    using Tables = flatbuffers::Vector<flatbuffers::Offset<Table>>;
    using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
    if (!verifier.VerifyOffset(0)) return false;
    const auto* root = flatbuffers::GetRoot<Table>(bytes.data());
    if (!root->VerifyTableStart(verifier) || !root->VerifyOffset(verifier, lists.tables)) {
      return false;
    }
    const auto* tables = root->GetPointer<const Tables*>(lists.tables);
    if (!verifier.VerifyVector(tables)) return false;
    uint64_t strings = 0;
    for (flatbuffers::uoffset_t i = 0; tables && i < tables->size(); ++i) {
      const Table* table = tables->Get(i);
      if (!table->VerifyTableStart(verifier) || !table->VerifyOffset(verifier, lists.strings)) {
        return false;
      }
      const auto* list = table->GetPointer<const Strings*>(lists.strings);
      if (!verifier.VerifyVector(list)) return false;
      strings += list ? list->size() : 0;
      verifier.EndTable();
    }
    return strings <= bytes.size() / sizeof(flatbuffers::uoffset_t);
  }

  // A flatbuffer's verified root; null for an empty section.
  template <class T>
  const T* root(SectionId id, std::string_view bytes, const StringLists& lists = {}) const {
    if (bytes.empty()) return nullptr;
    // FlatBuffers' verifier can't be interrupted: this bounds its work.
    constexpr size_t kMaxBytes = size_t{256} << 20;
    if (bytes.size() > kMaxBytes) {
      damaged(cat("section ", name_of(id)), bytes_text(bytes.size()),
              cat("at most ", bytes_text(kMaxBytes), " of metadata"));
    }
    poll();
    // A table takes at least 8 bytes; more tables than that share bytes.
    constexpr flatbuffers::uoffset_t kMaxDepth = 16;
    auto max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 16);
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                   kMaxDepth, max_tables);
    if ((lists.tables && !lists_fit(bytes, lists, verifier)) ||
        !verifier.VerifyBuffer<T>(nullptr)) {
      damaged(cat("section ", name_of(id)), "offsets outside of the section",
              "metadata that fits its schema");
    }
    return flatbuffers::GetRoot<T>(bytes.data());
  }

  // The flatbuffer of a section that starts with a directory.
  std::string_view directory(SectionId id) const {
    std::string_view bytes = section(id);
    if (bytes.empty()) return {};
    uint64_t size = 0;
    if (bytes.size() < 8) damaged(cat("section ", name_of(id)), "less than 8 bytes", "a directory");
    std::memcpy(&size, bytes.data(), 8);
    const bool alone = section_info(id).content == SectionContent::DirectoryAlone;
    const uint64_t checked = out_.table.find(id)->checked;
    if (size > bytes.size() - 8 || (alone && checked != size + 8)) {
      damaged(cat("section ", name_of(id)), cat("a directory of ", size, " bytes"),
              cat(alone ? checked - 8 : bytes.size() - 8));
    }
    return bytes.substr(8, size);
  }

  std::string_view block(SectionId id, size_t index, uint64_t begin, uint64_t size) const {
    std::string_view bytes = section(id);
    if (begin % kFileAlignment || begin > bytes.size() || size > bytes.size() - begin) {
      throw verification_error(options_.name, Rule::ConstantForm,
                               cat("section ", name_of(id), ", entry ", index),
                               cat(size, " bytes at ", hex(begin)),
                               cat("an aligned place within its ", bytes.size(), " bytes"));
    }
    return bytes.substr(begin, size);
  }

  // Offsets may share their targets: what is copied from a file is limited by its size.
  void charge_copied(uint64_t bytes) {
    charge(bytes);
    ticker_.tick();
    copied_ += bytes;
    uint64_t metadata = 0;
    for (const SectionEntry& s : out_.table.entries) metadata += s.checked;
    metadata -= section(SectionId::Kernels).size();
    constexpr uint64_t kShared = 32, kSmall = 1 << 20;
    if (copied_ > kShared * metadata + kSmall) {
      damaged("metadata", cat("more than ", copied_, " bytes of text and lists"),
              cat("at most what ", metadata, " bytes of metadata can hold"));
    }
  }
  std::string text(const flatbuffers::String* s) {
    charge_copied(sizeof(std::string) + (s ? s->size() : 0));
    return s ? std::string(s->data(), s->size()) : std::string();
  }
  std::vector<std::string> texts(
      const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
    std::vector<std::string> out;
    if (list) {
      for (const auto* s : *list) out.push_back(text(s));
    }
    return out;
  }

  SignatureType type(const flatbuffers::String* s, const std::string& function) {
    // At most kMostTypeParts are made of a megabyte.
    charge_copied(sizeof(SignatureType) + 8 * (s ? uint64_t{s->size()} : 0));
    try {
      return parse_signature_type(s ? std::string_view(s->data(), s->size()) : "any");
    } catch (const Error& e) {
      throw verification_error(options_.name, Rule::SignatureText,
                               cat("globals, function ", quoted(function)), e.message(),
                               "a type in the notation of graph IR");
    }
  }

  void limit(SectionId id, size_t n, uint32_t most, const char* what) const {
    if (n <= most) return;
    throw verification_error(options_.name, Rule::TableSize, cat("section ", name_of(id)),
                             cat(n, " ", what), cat("at most ", most));
  }

  void globals() {
    const auto* root_table =
        root<tnx::Globals>(SectionId::Globals, section(SectionId::Globals),
                           {tnx::Globals::VT_FUNCTIONS, tnx::Function::VT_RESULT_NAMES});
    if (!root_table) return;
    Unit& unit = out_.unit;
    unit.producer = text(root_table->producer());
    unit.libraries = texts(root_table->libraries());
    unit.types = texts(root_table->types());
    const auto* functions = root_table->functions();
    if (!functions) return;
    limit(SectionId::Globals, functions->size(), kMaxFunctions, "functions");
    for (const tnx::Function* f : *functions) {
      charge(sizeof(FunctionUnit) + sizeof(code_ranges_[0]));
      FunctionUnit out;
      out.name = text(f->name());
      out.exported = f->exported();
      if (const auto* params = f->params()) {
        limit(SectionId::Globals, params->size(), kMaxParams, "parameters");
        for (const tnx::Param* p : *params) {
          charge(sizeof(Param));
          out.params.push_back({text(p->name()), type(p->type(), out.name), p->borrows()});
        }
      }
      out.result = type(f->result(), out.name);
      out.result_names = texts(f->result_names());
      out.register_count = f->register_count();
      code_ranges_.push_back({f->code_begin(), f->code_words()});
      unit.functions.push_back(std::move(out));
    }
  }

  void constants() {
    const auto* root_table =
        root<tnx::Constants>(SectionId::Constants, directory(SectionId::Constants));
    if (!root_table || !root_table->entries()) return;
    limit(SectionId::Constants, root_table->entries()->size(), kMaxConstants, "constants");
    for (const tnx::Constant* c : *root_table->entries()) {
      charge(sizeof(Constant));
      Constant out{text(c->name()), {}, {}};
      if (c->kind() == tnx::ConstantKind_LateTensor) {
        charge_copied(c->shape() ? 8 * uint64_t{c->shape()->size()} : 0);
        out.late = LateTensor{dtype_of(c->bits()), sizes(*c), c->alignment()};
      } else {
        out.value = constant(*c);
      }
      out_.unit.constants.push_back(std::move(out));
    }
  }

  [[noreturn]] void bad_constant(std::string_view found, std::string_view expected) const {
    throw verification_error(options_.name, Rule::ConstantForm,
                             cat("constant ", out_.unit.constants.size()), found, expected);
  }

  static DataType dtype_of(uint64_t bits) {
    return DataType::from_word(static_cast<uint32_t>(bits));
  }

  Any constant(const tnx::Constant& c) {
    charge_copied((c.text() ? c.text()->size() : 0) +
                  (c.shape() ? 8 * uint64_t{c.shape()->size()} : 0));
    switch (c.kind()) {
      case tnx::ConstantKind_None:
        return Any();
      case tnx::ConstantKind_Int:
        return Any(static_cast<int64_t>(c.bits()));
      case tnx::ConstantKind_Bool:
        return Any(c.bits() != 0);
      case tnx::ConstantKind_Float: {
        double v;
        uint64_t bits = c.bits();
        std::memcpy(&v, &bits, sizeof v);
        return Any(v);
      }
      case tnx::ConstantKind_String:
        return Any(c.text() ? std::string_view(reinterpret_cast<const char*>(c.text()->data()),
                                               c.text()->size())
                            : std::string_view());
      case tnx::ConstantKind_Dtype:
        return Any(dtype_of(c.bits()));
      case tnx::ConstantKind_Device:
        return Any(Arg(ArgKind::Device, static_cast<int64_t>(c.bits())).as_device());
      case tnx::ConstantKind_Shape:
        return Any(Shape(sizes(c)));
      case tnx::ConstantKind_Tensor:
        return tensor(c);
      default:
        bad_constant(cat("kind ", static_cast<int>(c.kind())), "a kind that the format has");
    }
  }

  // FlatBuffers' verifier checks the alignment of a list's length, not of its elements.
  static std::vector<int64_t> sizes(const tnx::Constant& c) {
    std::vector<int64_t> out(c.shape() ? c.shape()->size() : 0);
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&out[i], c.shape()->Data() + i * sizeof(int64_t), sizeof(int64_t));
    }
    return out;
  }

  Any strings(const tnx::Constant& c, std::span<const int64_t> shape) {
    charge_copied(c.data_bytes());
    const std::string_view content =
        block(SectionId::Constants, out_.unit.constants.size(), c.data(), c.data_bytes());
    const Tensor made = string_tensor_of_content(shape, content);
    if (!made) {
      bad_constant(cat(content.size(), " bytes for ", tensor_type_text(string_elements, shape)),
                   "the end of each string, then their UTF-8");
    }
    return Any(made.as_constant());
  }

  Any tensor(const tnx::Constant& c) {
    const std::vector<int64_t> shape = sizes(c);
    if (shape.size() > kMaxRank)
      bad_constant(cat("rank ", shape.size()), cat("at most ", kMaxRank));
    DataType dtype = dtype_of(c.bits());
    if (dtype == string_elements) return strings(c, shape);
    if (!is_tensor_dtype(dtype)) {
      throw verification_error(options_.name, Rule::DtypeKnown,
                               cat("constant ", out_.unit.constants.size()), to_text(dtype),
                               "an element type that tensors can have");
    }
    auto bytes = byte_count(shape, dtype);
    if (!bytes || static_cast<uint64_t>(*bytes) != c.data_bytes()) {
      bad_constant(cat(c.data_bytes(), " bytes for ", tensor_type_text(dtype, shape)),
                   bytes ? cat(*bytes) : "dimensions whose product is a size");
    }
    std::string_view data =
        block(SectionId::Constants, out_.unit.constants.size(), c.data(), c.data_bytes());
    return Any(Tensor::view(data.data(), shape, dtype, file_).as_constant());
  }

  void packed_functions() {
    const auto* root_table =
        root<tnx::PackedFunctions>(SectionId::Packed, section(SectionId::Packed));
    if (!root_table || !root_table->entries()) return;
    limit(SectionId::Packed, root_table->entries()->size(), kMaxPacked, "packed functions");
    for (const tnx::PackedFunction* p : *root_table->entries()) {
      charge(sizeof(PackedName));
      out_.unit.packed.push_back({text(p->name()), p->kernel(), effect_of(*p)});
    }
  }

  // Files of format 1 have none. An unknown effect is read as the strongest, which forbids
  // everything.
  static Effect effect_of(const tnx::PackedFunction& p) {
    static_assert(tnx::Effect_Pure == static_cast<int>(Effect::Pure) &&
                  tnx::Effect_Reads == static_cast<int>(Effect::Reads) &&
                  tnx::Effect_Ordered == static_cast<int>(Effect::Ordered) &&
                  tnx::Effect_MAX == tnx::Effect_Ordered);
    if (p.kernel()) return Effect::Pure;
    return p.effect() <= tnx::Effect_MAX ? static_cast<Effect>(p.effect()) : Effect::Ordered;
  }

  void code() {
    std::string_view bytes = section(SectionId::Code);
    uint64_t next = 0;
    for (size_t i = 0; i < code_ranges_.size(); ++i) {
      auto [begin, words] = code_ranges_[i];
      // In order, so that no bytes are read twice.
      if (begin != next || words > bytes.size() / sizeof(Word) - next) {
        damaged(cat("globals, function ", i), cat(words, " words of code from word ", begin),
                cat("code from word ", next, ", within ", bytes.size() / sizeof(Word)));
      }
      next += words;
      charge(words * sizeof(Word));
      std::vector<Word>& code = out_.unit.functions[i].code;
      code.resize(words);
      if (words)
        std::memcpy(code.data(), bytes.data() + begin * sizeof(Word), words * sizeof(Word));
    }
    if (next * sizeof(Word) != bytes.size()) {
      damaged("section code", cat(bytes.size(), " bytes"), cat(next * sizeof(Word), " bytes"));
    }
  }

  void kernels() {
    const auto* root_table =
        root<tnx::Kernels>(SectionId::Kernels, directory(SectionId::Kernels),
                           {tnx::Kernels::VT_TARGETS, tnx::KernelTarget::VT_CPU_FEATURES});
    if (!root_table || !root_table->targets()) return;
    limit(SectionId::Kernels, root_table->targets()->size(), kMaxKernelTargets, "targets");
    for (const tnx::KernelTarget* t : *root_table->targets()) {
      KernelTarget out{text(t->triple()), text(t->cpu()), texts(t->cpu_features()), {}};
      if (out_.table.version == 1) {
        out.images.push_back({ImageKind::Elf, "", image_bytes(t->data(), t->data_bytes())});
      } else if (t->images()) {
        limit(SectionId::Kernels, t->images()->size(), kMaxKernelImages, "images of a target");
        for (const tnx::KernelImage* image : *t->images()) {
          const ImageKind kind{image->kind()};
          if (std::ranges::count(all_image_kinds(), kind) == 0) continue;
          out.images.push_back(
              {kind, text(image->architecture()), image_bytes(image->data(), image->data_bytes())});
        }
      }
      out_.unit.kernels.push_back(std::move(out));
    }
  }

  std::string image_bytes(uint64_t begin, uint64_t size) {
    const std::string_view bytes = block(SectionId::Kernels, out_.unit.kernels.size(), begin, size);
    // In order, so that no bytes are read twice.
    if (begin < images_end_) {
      damaged(cat("section ", name_of(SectionId::Kernels), ", entry ", out_.unit.kernels.size()),
              cat("native code at ", hex(begin)),
              cat("code behind the previous entry's, from ", hex(images_end_), " on"));
    }
    images_end_ = begin + size;
    charge(size);
    return std::string(bytes);
  }

  void text(SectionId id, std::string& out) {
    const std::string_view bytes = section(id);
    charge(bytes.size());
    out = bytes;
  }

  void debug() {
    const auto* root_table = root<tnx::Debug>(SectionId::Debug, section(SectionId::Debug),
                                              {tnx::Debug::VT_SPANS, tnx::Span::VT_NODES});
    if (!root_table) return;
    Unit& unit = out_.unit;
    unit.provenance = text(root_table->provenance());
    if (const auto* spans = root_table->spans()) {
      limit(SectionId::Debug, spans->size(), kMaxSpans, "spans");
      for (const tnx::Span* s : *spans) {
        charge(sizeof(Span));
        Span span = Span::at(text(s->file()), s->line(), s->column());
        span.nodes = texts(s->nodes());
        unit.spans.push_back(std::move(span));
      }
    }
    const auto* functions = root_table->functions();
    if (!functions || functions->size() == 0) return;
    if (functions->size() != unit.functions.size()) {
      damaged("section debug", cat("spans of ", functions->size(), " functions"),
              cat(unit.functions.size()));
    }
    for (uint32_t i = 0; i < functions->size(); ++i) {
      const auto* list = functions->Get(i)->spans();
      if (!list) continue;
      charge_copied(sizeof(CodeSpan) * uint64_t{list->size()});
      for (const tnx::CodeSpan* s : *list) {
        unit.functions[i].spans.push_back({s->offset(), s->span()});
      }
    }
  }

  const Ref<FileBytes>& file_;
  std::string_view bytes_;
  const ReadOptions& options_;
  Ticker ticker_;
  LoadedUnit out_;
  uint64_t copied_ = 0;
  uint64_t images_end_ = 0;  // of the images read so far
  std::vector<std::pair<uint64_t, uint32_t>> code_ranges_;
};

// The file in a shared object.
std::string_view file_in(std::string_view object, const std::string& name) {
  ElfModel model;
  auto why = why_not_closed(object, &model);
  if (!why && model.place && model.table.abi_version != kModelAbiVersion) {
    throw abi_error(name, "a program for another runtime", model.table.abi_version,
                    kModelAbiVersion);
  }
  if (!why && model.file.empty()) why = "no .tnx file in its read-only memory";
  if (!why) return model.file;
  throw verification_error(name, Rule::KernelClosed, "shared object", *why,
                           "what `tenon compile --shared` writes");
}

}  // namespace

LoadedUnit read_unit(const Ref<FileBytes>& file, const ReadOptions& options) {
  std::string_view bytes = file->view();
  if (begins_like_elf(bytes)) bytes = file_in(bytes, options.name);
  LoadedUnit loaded = Reader(file, bytes, options).run();
  loaded.file = bytes;
  loaded.unit.shared_code = file->size - bytes.size();
  return loaded;
}

}  // namespace tenon::vm
