#include "driver/open.h"

#include <filesystem>
#include <optional>

#include "driver/compile.h"
#include "driver/foreign_file.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "import/onnx/read_model.h"
#include "support/phase.h"
#include "vm/asm/assemble.h"
#include "vm/executable/file_format.h"
#include "vm/executable/read_file.h"

namespace tenon::driver {
namespace {

std::string all_kinds() {
  return cat(to_text(SourceKind::Model), ", ", to_text(SourceKind::Program), ", ",
             to_text(SourceKind::Assembly), ", or ", to_text(SourceKind::Executable));
}

// How many bytes is_text looks at.
constexpr size_t kTextHead = 512;

bool is_text(std::string_view content) {
  for (const char c : content.substr(0, kTextHead)) {
    const bool blank = c == '\n' || c == '\r' || c == '\t';
    if (static_cast<unsigned char>(c) < ' ' && !blank) return false;
  }
  return !content.empty();
}

std::optional<SourceKind> kind_of(std::string_view content) {
  if (vm::begins_like_executable(content)) return SourceKind::Executable;
  if (!is_text(content)) {
    return onnx::begins_like_model(content) ? std::optional(SourceKind::Model) : std::nullopt;
  }
  if (vm::begins_like_assembly(content)) return SourceKind::Assembly;
  if (graph::begins_like_module(content)) return SourceKind::Program;
  return std::nullopt;
}

// What a file is meant to be, so that the reader of that kind reports what is wrong with it.
std::optional<SourceKind> kind_by_name(const std::string& name) {
  const std::string extension = std::filesystem::path(name).extension();
  if (extension == ".onnx" || extension == ".pb") return SourceKind::Model;
  if (extension == ".tn") return SourceKind::Program;
  if (extension == ".tna") return SourceKind::Assembly;
  if (extension == ".tnx") return SourceKind::Executable;
  return std::nullopt;
}

Error unreadable(const std::string& name, const std::optional<ForeignFile>& foreign) {
  Error error(ErrorKind::Usage, cat(printable(name), " is not a file that Tenon can read"));
  if (foreign) error.found(foreign->name).help(foreign->help);
  return error.expected(all_kinds());
}

// Its native code would run where the user expects data.
Error unexpected_executable(const std::string& name, SourceKind expected) {
  return Error(ErrorKind::Usage, cat(printable(name), " is not what its name says"))
      .found("an executable, which may hold native code")
      .expected(to_text(expected))
      .help("if you trust its sender, rename it to end with .tnx");
}

Source recognise(Source source) {
  std::optional<SourceKind> kind = kind_of(source.content());
  const std::optional<SourceKind> named = kind_by_name(source.name);
  if (kind != SourceKind::Executable) {
    refuse_foreign(source.content(), source.name);
  } else if (named && named != kind) {
    throw unexpected_executable(source.name, *named);
  }
  if (!kind) kind = named;
  if (!kind) {
    const bool empty = source.content().empty();
    throw unreadable(source.name,
                     empty ? std::optional(ForeignFile{"an empty file", ""}) : std::nullopt);
  }
  source.kind = *kind;
  return source;
}

Error wrong_kind(const Source& source, std::string_view found) {
  return Error(ErrorKind::Usage, cat(printable(source.name), " ", found));
}

}  // namespace

void refuse_foreign(std::string_view content, const std::string& name) {
  if (const auto foreign = recognise_foreign(content)) throw unreadable(name, foreign);
}

std::string_view without_byte_order_mark(std::string_view content) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (content.starts_with(kMark)) content.remove_prefix(kMark.size());
  return content;
}

std::string_view to_text(SourceKind kind) {
  switch (kind) {
    case SourceKind::Model:
      return "an ONNX model";
    case SourceKind::Program:
      return "a program in Tenon's language";
    case SourceKind::Assembly:
      return "assembly";
    case SourceKind::Executable:
      break;
  }
  return "an executable";
}

Source open_source(const std::string& path, FileAccess access) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    const auto foreign = recognise_foreign_folder(path);
    if (foreign) throw unreadable(path, foreign);
    throw Error(ErrorKind::Usage, cat(printable(path), " is a folder")).expected(all_kinds());
  }
  Source source;
  source.name = path;
  source.bytes = access == FileAccess::Copied ? vm::read_whole_file(path) : vm::map_file(path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  source.directory = folder.empty() ? "." : folder.string();
  return recognise(std::move(source));
}

Source source_of(std::string_view bytes, const std::string& name) {
  Source source;
  source.name = name;
  source.bytes = vm::copy_bytes(bytes);
  return recognise(std::move(source));
}

onnx::Model read_model(const Source& source) {
  if (source.kind != SourceKind::Model) throw wrong_kind(source, "is not an ONNX model");
  const std::string file = std::filesystem::path(source.name).filename().string();
  onnx::Model model = onnx::parse_model(source.content(), file, source.directory);
  source.bytes->release_pages();  // the model has copies of its tensors
  return model;
}

onnx::ImportResult import_source(const Source& source, const onnx::ImportOptions& options) {
  initialise();
  Phase phase("import");
  return onnx::import_model(read_model(source), options);
}

graph::Module read_module(const Source& source, const onnx::ImportOptions& options) {
  initialise();
  if (source.kind == SourceKind::Model && !source.import_path.empty()) {
    throw Error(ErrorKind::Usage, "an import path has no effect on an ONNX model")
        .found(join(source.import_path, ", "))
        .help("leave it out: only programs in Tenon's language import files");
  }
  switch (source.kind) {
    case SourceKind::Model:
      return import_source(source, options).module;
    case SourceKind::Program: {
      Phase phase("parse");
      graph::Module module = graph::parse_module(source.content(), source.name, source.import_path);
      graph::check_module(module);
      return module;
    }
    case SourceKind::Assembly:
    case SourceKind::Executable:
      break;
  }
  throw wrong_kind(source, source.kind == SourceKind::Assembly ? "is assembly, which holds no graph"
                                                               : "is already compiled")
      .expected("an ONNX model or a program in Tenon's language")
      .help(source.kind == SourceKind::Assembly ? "make an executable of it with `tenon asm`"
                                                : "load or run it as it is");
}

vm::Unit read_code(const Source& source) {
  if (source.is_graph()) {
    throw wrong_kind(source, "is not compiled").expected("an executable or assembly");
  }
  if (source.kind == SourceKind::Assembly) return vm::assemble(source.content(), source.name);
  vm::ReadOptions options;
  options.name = source.name;
  return vm::read_unit(source.bytes, options).unit;
}

void refuse_shared(const vm::Unit& unit, const std::string& name) {
  if (!unit.shared_code) return;
  throw Error(ErrorKind::Usage,
              cat("the native code of ", printable(name), " can't be taken out of it"))
      .found("a shared object")
      .expected("a .tnx file")
      .help("compile the program to a .tnx file; `tenon dump --text` prints all but native code");
}

}  // namespace tenon::driver
