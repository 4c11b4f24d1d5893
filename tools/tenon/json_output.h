// --json: a command prints one JSON document to standard output, and no other text there.
// docs/json.md describes the documents.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "json/json.h"
#include "support/error.h"
#include "tools/tenon/compare.h"
#include "tools/tenon/data_types.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {

// Whether the command prints JSON. It is known before the arguments are parsed, so that errors in
// them are JSON, too.
bool json_output();
void set_json_output(bool json);
// Adds the flag to a command.
void add_json(CLI::App* command);

// A writer with the documents' indentation.
JsonWriter json_document();
// Prints a document and a line feed, in ASCII: other characters become \uXXXX.
void print_json(JsonWriter document);

// Each writes one value.
void write_error(JsonWriter& out, const Error& error);
// Plain data: a map from names, an array, a string, a number, a boolean or none.
void write_plain(JsonWriter& out, const Any& value);
// {"name", "inputs", "outputs"}
void write_signature(JsonWriter& out, const FunctionSignature& signature);
// At most `elements` of each tensor. Scalars and cells have the type that the signature gives them.
void write_value(JsonWriter& out, const Any& value, const vm::SignatureType& type,
                 const DataTypes& types, int64_t elements);
// Writes the members that describe how a value differs from what was expected: "equal", ...
void write_difference(JsonWriter& out, const Difference& difference);
// Writes the members of a tensor's type: "dtype" and "shape".
void write_tensor_type(JsonWriter& out, DataType dtype, std::span<const int64_t> shape);
// A number, or "NaN", "Infinity" or "-Infinity".
void write_element(JsonWriter& out, const Tensor& tensor, int64_t i);

}  // namespace tenon::tool
