// What a user names on a command line or hands to the compiler's library: a model, a program in
// Tenon's language, assembly, or an executable. Which of them a file is, its content says, never
// its name.
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
  Assembly,    // text of the machine's code
  Executable,  // what compilation writes
};

struct Source {
  std::string name;       // the path, or what errors call it
  std::string directory;  // where a model's external data lies; empty: it is refused
  SourceKind kind = SourceKind::Program;
  Ref<vm::FileBytes> bytes;

  std::string_view content() const { return bytes->view(); }
  // Whether it is a graph, which can be compiled and interpreted; else it is code of the machine.
  bool is_graph() const { return kind == SourceKind::Model || kind == SourceKind::Program; }
};

// Maps a regular file. A Usage error when it can't be read, or when neither its content nor, for
// content that nothing recognises (an empty file, a damaged one), the ending of its name says which
// kind it is.
Source open_source(const std::string& path);
// The same for bytes in memory, which are copied. External data of a model is then refused; the
// weights of a program are looked up beside `name`.
Source source_of(std::string_view bytes, const std::string& name);

// The ONNX model as data. A Usage error when the source is no model.
onnx::Model read_model(const Source& source);

// The module of a model or program, checked. `options` are for models. A Usage error for code of
// the machine; otherwise what import_model, parse_module and check_module throw.
graph::Module read_module(const Source& source, const onnx::ImportOptions& options = {});

// The code of an executable or of assembly; a Usage error for a graph. An executable's is read and
// verified, and nothing of it is linked or opened; assembly isn't verified yet.
vm::Unit read_code(const Source& source);

}  // namespace tenon::driver
