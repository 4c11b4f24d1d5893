// Opens what a user names on a command line or passes to the compiler's library: a model, a program
// in Tenon's language, assembly, or an executable. The content decides which of them a file is; the
// name counts only where the content is unrecognisable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/ir/module.h"
#include "import/onnx/import_model.h"
#include "vm/executable/mapped_file.h"
#include "vm/isa/unit.h"

namespace tenon::driver {

enum class SourceKind : uint8_t {
  Model,       // ONNX
  Program,     // text in Tenon's language
  Assembly,    // bytecode as text
  Executable,  // a .tnx file, or a shared object that holds one
};
// "an ONNX model".
std::string_view to_text(SourceKind kind);

// Text without the UTF-8 byte order mark that some editors begin it with. No binary file that Tenon
// reads begins with these bytes.
std::string_view without_byte_order_mark(std::string_view content);

struct Source {
  std::string name;       // the path, or the name for errors
  std::string directory;  // of a model's external data, which is refused when this is empty
  SourceKind kind = SourceKind::Program;
  Ref<FileBytes> bytes;
#define TENON_SOURCE_OPTION(type, name, ...) type name;
#include "driver/options.def"

  std::string_view content() const {
    return without_byte_order_mark(bytes->view());
  }
  // Whether it is a graph, which can be compiled and interpreted; otherwise it is bytecode.
  bool is_graph() const {
    return kind == SourceKind::Model || kind == SourceKind::Program;
  }
};

enum class FileAccess : uint8_t {
  Mapped,  // the cheaper one
  Copied,  // nobody can change the bytes any more; they count for the memory of this thread's work
};

// Opens a regular file. Throws Usage if it can't be read, or if neither its content nor, for
// unrecognisable content (an empty or damaged file), its file extension identifies its kind.
Source open_source(const std::string& path, FileAccess access = FileAccess::Mapped);
// The same for bytes in memory, which are copied. A model's external data is refused; a program's
// weights are looked up beside `name`.
Source source_of(std::string_view bytes, const std::string& name);

// Throws Usage if the content is that of another kind of file, such as a PyTorch checkpoint.
void refuse_foreign(std::string_view content, const std::string& name);

// The ONNX model as data. Throws Usage if the source is not a model.
onnx::Model read_model(const Source& source);

// The imported model. Throws Usage if the source is not a model.
onnx::ImportResult import_source(const Source& source, const onnx::ImportOptions& options = {});

// The checked module of a model or program. `options` apply to models. Throws Usage for bytecode,
// and what import_model, parse_module and check_module throw.
graph::Module read_module(const Source& source, const onnx::ImportOptions& options = {});

// The code of an executable or of assembly. Throws Usage for a graph. An executable is read and
// verified, but not linked, and its kernels aren't opened; assembly is not verified.
vm::Unit read_code(const Source& source);

// Throws Usage for the unit of a shared object, whose native code can't be taken out of it.
void refuse_shared(const vm::Unit& unit, const std::string& name);

}  // namespace tenon::driver
