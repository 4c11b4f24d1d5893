#include "vm/executable/read_file.h"

#include <cstring>

#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/executable/generated_schema.h"
#include "vm/executable/hash.h"
#include "vm/executable/verify.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

class Reader {
 public:
  Reader(const Ref<FileBytes>& file, const ReadOptions& options)
      : file_(file), bytes_(file->view()), options_(options) {}

  LoadedUnit run() {
    header();
    globals();
    constants();
    primitives();
    code();
    kernels();
    debug();
    out_.version = out_.header.version;
    verify(out_.unit, {.name = options_.name,
                       .version = out_.version,
                       .code_offset = entry(SectionId::Code).offset});
    return std::move(out_);
  }

 private:
  [[noreturn]] void damaged(std::string_view where, std::string_view found,
                            std::string_view expected) const {
    throw Error(ErrorKind::Damaged, cat(options_.name, " is damaged; nothing was run"))
        .where(where)
        .found(found)
        .expected(expected)
        .help("compile it again, or compare checksums with its sender");
  }
  const SectionEntry& entry(SectionId id) const {
    return out_.header.sections[static_cast<uint32_t>(id)];
  }
  static std::string_view name_of(SectionId id) { return kSectionNames[static_cast<uint32_t>(id)]; }
  std::string_view section(SectionId id) const {
    return bytes_.substr(entry(id).offset, entry(id).size);
  }

  void header() {
    FileHeader& h = out_.header;
    if (bytes_.size() < sizeof kMagic || std::memcmp(bytes_.data(), kMagic, sizeof kMagic) != 0) {
      throw Error(ErrorKind::Damaged, cat(options_.name, " is no .tnx file"))
          .found(cat(quoted(bytes_.substr(0, 8)), bytes_.size() < 8 ? ", and no more" : ""))
          .expected("the 8 bytes that every .tnx begins with")
          .help("`tenon compile` makes one from a model");
    }
    if (bytes_.size() < 16) damaged("header", cat(bytes_.size(), " bytes"), "a whole header");
    std::memcpy(&h, bytes_.data(), std::min(bytes_.size(), sizeof h));
    if (h.version == 0 || h.version > kFormatVersion) {
      throw Error(ErrorKind::Unsupported,
                  cat(options_.name, " has a format that this build can't read"))
          .found(cat("format ", h.version))
          .expected(cat("a format from 1 to ", kFormatVersion))
          .help("use a newer tenon, or compile the model with this one");
    }
    if (bytes_.size() < sizeof h || h.section_count != kSectionCount) {
      damaged("header", cat(h.section_count, " sections in ", bytes_.size(), " bytes"),
              cat(kSectionCount, " sections"));
    }
    if (h.file_size != bytes_.size()) {
      damaged("header", cat("a file of ", bytes_.size(), " bytes"),
              cat(h.file_size, " bytes, as its header says"));
    }
    if (options_.check_hashes && h.hash != header_hash(h)) {
      damaged("header", cat("hash ", hex(header_hash(h))), hex(h.hash));
    }
    uint64_t end = sizeof h;
    for (uint32_t i = 0; i < kSectionCount; ++i) {
      const SectionEntry& s = h.sections[i];
      std::string where = cat("section table, ", kSectionNames[i]);
      if (s.offset < end || s.offset > bytes_.size() || s.size > bytes_.size() - s.offset ||
          s.offset % kFileAlignment || s.hashed > s.size) {
        damaged(where, cat(s.size, " bytes at ", hex(s.offset)),
                "sections one after another, aligned, within the file");
      }
      bool whole = i != static_cast<uint32_t>(SectionId::Constants);
      if (whole && s.hashed != s.size) {
        damaged(where, cat("a hash of ", s.hashed, " bytes"), cat("of all ", s.size));
      }
      end = s.offset + s.size;
      if (!options_.check_hashes) continue;
      uint64_t hash = xxh64(bytes_.data() + s.offset, s.hashed);
      if (hash != s.hash) {
        damaged(cat("section ", kSectionNames[i], ", bytes ", hex(s.offset), " to ", hex(end)),
                cat("hash ", hex(hash)), cat(hex(s.hash), ", as the section table says"));
      }
    }
  }

  // A flatbuffer's root, verified; null for a section that is empty.
  template <class T>
  const T* root(SectionId id, std::string_view bytes) const {
    if (bytes.empty()) return nullptr;
    constexpr size_t kMaxBytes = size_t{1} << 31;
    if (bytes.size() >= kMaxBytes) {
      damaged(cat("section ", name_of(id)), cat(bytes.size(), " bytes"), "metadata below 2 GiB");
    }
    // A table takes 8 bytes at least, so more of them than that are one table counted often.
    constexpr flatbuffers::uoffset_t kMaxDepth = 16;
    auto max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 16);
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                   kMaxDepth, max_tables);
    if (!verifier.VerifyBuffer<T>(nullptr)) {
      damaged(cat("section ", name_of(id)), "offsets that lead out of it",
              "metadata of its schema");
    }
    return flatbuffers::GetRoot<T>(bytes.data());
  }

  // The flatbuffer of a section that begins with a directory.
  std::string_view directory(SectionId id) const {
    std::string_view bytes = section(id);
    if (bytes.empty()) return {};
    uint64_t size = 0;
    if (bytes.size() < 8) damaged(cat("section ", name_of(id)), "less than 8 bytes", "a directory");
    std::memcpy(&size, bytes.data(), 8);
    if (size > bytes.size() - 8 || (id == SectionId::Constants && entry(id).hashed != size + 8)) {
      damaged(cat("section ", name_of(id)), cat("a directory of ", size, " bytes"),
              cat(id == SectionId::Constants ? entry(id).hashed - 8 : bytes.size() - 8));
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

  // Offsets may share what they lead to: what is copied of a file is limited by its size.
  void charge(uint64_t bytes) {
    copied_ += bytes;
    uint64_t metadata = bytes_.size() - entry(SectionId::Constants).size +
                        entry(SectionId::Constants).hashed - entry(SectionId::Kernels).size;
    constexpr uint64_t kShared = 32, kSmall = 1 << 20;
    if (copied_ > kShared * metadata + kSmall) {
      damaged("metadata", cat("more than ", copied_, " bytes of text and lists"),
              cat("what ", metadata, " bytes of metadata can say"));
    }
  }
  std::string text(const flatbuffers::String* s) {
    charge(sizeof(std::string) + (s ? s->size() : 0));
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
    charge(sizeof(SignatureType) + 8 * (s ? uint64_t{s->size()} : 0));
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
    const auto* root_table = root<tnx::Globals>(SectionId::Globals, section(SectionId::Globals));
    if (!root_table) return;
    Unit& unit = out_.unit;
    unit.producer = text(root_table->producer());
    unit.libraries = texts(root_table->libraries());
    const auto* functions = root_table->functions();
    if (!functions) return;
    limit(SectionId::Globals, functions->size(), kMaxFunctions, "functions");
    for (const tnx::Function* f : *functions) {
      FunctionUnit out;
      out.name = text(f->name());
      out.exported = f->exported();
      if (const auto* params = f->params()) {
        limit(SectionId::Globals, params->size(), kMaxParams, "parameters");
        for (const tnx::Param* p : *params) {
          out.params.push_back({text(p->name()), type(p->type(), out.name), p->borrowed()});
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
      out_.unit.constants.push_back({text(c->name()), constant(*c)});
    }
  }

  [[noreturn]] void bad_constant(std::string_view found, std::string_view expected) const {
    throw verification_error(options_.name, Rule::ConstantForm,
                             cat("constant ", out_.unit.constants.size()), found, expected);
  }

  static DataType dtype_of(uint64_t bits) {
    return Arg(ArgKind::Dtype, static_cast<int64_t>(bits)).as_dtype();
  }

  Any constant(const tnx::Constant& c) {
    charge((c.text() ? c.text()->size() : 0) + (c.shape() ? 8 * uint64_t{c.shape()->size()} : 0));
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

  // The flatbuffers' verifier looks after the alignment of a list's length, not of its elements.
  static std::vector<int64_t> sizes(const tnx::Constant& c) {
    std::vector<int64_t> out(c.shape() ? c.shape()->size() : 0);
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&out[i], c.shape()->Data() + i * sizeof(int64_t), sizeof(int64_t));
    }
    return out;
  }

  Any tensor(const tnx::Constant& c) const {
    const std::vector<int64_t> shape = sizes(c);
    if (shape.size() > kMaxRank)
      bad_constant(cat("rank ", shape.size()), cat("at most ", kMaxRank));
    DataType dtype = dtype_of(c.bits());
    if (!is_tensor_dtype(dtype)) {
      throw verification_error(options_.name, Rule::DtypeKnown,
                               cat("constant ", out_.unit.constants.size()), to_text(dtype),
                               "an element type of the machine's tensors");
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

  void primitives() {
    const auto* root_table =
        root<tnx::Primitives>(SectionId::Primitives, section(SectionId::Primitives));
    if (!root_table || !root_table->entries()) return;
    limit(SectionId::Primitives, root_table->entries()->size(), kMaxPacked, "primitive names");
    for (const tnx::Primitive* p : *root_table->entries()) {
      out_.unit.packed.push_back({text(p->name()), p->kernel()});
    }
  }

  void code() {
    std::string_view bytes = section(SectionId::Code);
    uint64_t next = 0;
    for (size_t i = 0; i < code_ranges_.size(); ++i) {
      auto [begin, words] = code_ranges_[i];
      // One after another, so that no bytes are read twice.
      if (begin != next || words > bytes.size() / sizeof(Word) - next) {
        damaged(cat("globals, function ", i), cat(words, " words of code from word ", begin),
                cat("code from word ", next, " on, within ", bytes.size() / sizeof(Word)));
      }
      next += words;
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
    const auto* root_table = root<tnx::Kernels>(SectionId::Kernels, directory(SectionId::Kernels));
    if (!root_table || !root_table->objects()) return;
    limit(SectionId::Kernels, root_table->objects()->size(), kMaxKernelObjects, "kernel objects");
    uint64_t end = 0;
    for (const tnx::KernelObject* k : *root_table->objects()) {
      // One after another, so that no bytes are read twice.
      if (k->data() < end) {
        damaged(cat("section ", name_of(SectionId::Kernels), ", entry ", out_.unit.kernels.size()),
                cat("native code at ", hex(k->data())),
                cat("code behind that of the entry before, from ", hex(end), " on"));
      }
      end = k->data() + k->data_bytes();  // `block` refuses what overflows
      std::string_view elf =
          block(SectionId::Kernels, out_.unit.kernels.size(), k->data(), k->data_bytes());
      out_.unit.kernels.push_back(
          {text(k->target()), text(k->cpu()), texts(k->cpu_features()), std::string(elf)});
    }
  }

  void debug() {
    const auto* root_table = root<tnx::Debug>(SectionId::Debug, section(SectionId::Debug));
    if (!root_table) return;
    Unit& unit = out_.unit;
    if (const auto* spans = root_table->spans()) {
      limit(SectionId::Debug, spans->size(), kMaxSpans, "spans");
      for (const tnx::Span* s : *spans) {
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
      charge(sizeof(CodeSpan) * uint64_t{list->size()});
      for (const tnx::CodeSpan* s : *list) {
        unit.functions[i].spans.push_back({s->offset(), s->span()});
      }
    }
  }

  const Ref<FileBytes>& file_;
  std::string_view bytes_;
  const ReadOptions& options_;
  LoadedUnit out_;
  uint64_t copied_ = 0;
  std::vector<std::pair<uint64_t, uint32_t>> code_ranges_;
};

}  // namespace

LoadedUnit read_unit(const Ref<FileBytes>& file, const ReadOptions& options) {
  return Reader(file, options).run();
}

bool repair_hashes(std::string& bytes) {
  FileHeader h;
  if (bytes.size() < sizeof h) return false;
  std::memcpy(&h, bytes.data(), sizeof h);
  for (SectionEntry& s : h.sections) {
    if (s.offset > bytes.size() || s.hashed > bytes.size() - s.offset) continue;
    s.hash = xxh64(bytes.data() + s.offset, s.hashed);
  }
  h.file_size = bytes.size();
  h.hash = header_hash(h);
  std::memcpy(bytes.data(), &h, sizeof h);
  return true;
}

}  // namespace tenon::vm
