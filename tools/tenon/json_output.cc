#include "tools/tenon/json_output.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "object/array.h"
#include "object/reflect.h"
#include "object/shape.h"
#include "support/text.h"
#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

bool is_json = false;

// Valid UTF-8 of a JSON text with \uXXXX for what isn't ASCII, which stands only in strings.
std::string in_ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto append = [&](uint32_t unit) {
    char escape[16];
    std::snprintf(escape, sizeof escape, "\\u%04x", unit);
    out += escape;
  };
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      out += text[i++];
      continue;
    }
    const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t point = first & (0x7f >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    }
    i += length;
    if (point < 0x10000) {
      append(point);
    } else {
      append(0xd800 + ((point - 0x10000) >> 10));
      append(0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  return out;
}

template <class T>
void write_float(JsonWriter& out, T value) {
  if (std::isfinite(value)) {
    out.value(value);
  } else {
    out.value(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  }
}

void write_tensor(JsonWriter& out, const Tensor& tensor, int64_t elements) {
  write_tensor_type(out, tensor.dtype(), tensor.shape());
  out.key("data").begin_row();
  for (int64_t i = 0, n = std::min(tensor.count(), elements); i < n; ++i) {
    write_element(out, tensor, i);
  }
  out.end_row();
}

void write_members(JsonWriter& out, const Any& value, const vm::SignatureType& type,
                   int64_t elements, int depth) {
  constexpr int kDeepest = 64;
  constexpr size_t kLongest = 400;  // characters of a value that isn't data
  if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) {
    return write_tensor(out, *tensor, elements);
  }
  if (auto fields = value.try_as<Array<Any>>(); fields && value.is_object() && depth < kDeepest) {
    out.key("fields").begin_array();
    for (size_t i = 0; i < fields->size(); ++i) {
      const bool known = type.kind == vm::SignatureType::Kind::Tuple && i < type.parts.size();
      out.begin_object();
      write_members(out, (*fields)[i], known ? type.parts[i] : vm::SignatureType(), elements,
                    depth + 1);
      out.end_object();
    }
    out.end_array();
    return;
  }
  const bool scalar = type.kind == vm::SignatureType::Kind::Scalar;
  if (scalar) out.key("dtype").value(tenon::to_text(type.dtype));
  if (auto shape = value.try_as<Shape>()) {
    out.key("value").begin_row();
    for (size_t i = 0; i < shape->size(); ++i) out.value((*shape)[i]);
    out.end_row();
    return;
  }
  out.key("value");
  if (value.is_none()) {
    out.null();
  } else if (value.type_index == TypeIndex::Bool) {
    out.value(value.as<bool>());
  } else if (value.type_index == TypeIndex::Int && scalar && type.dtype == u64) {
    out.value(static_cast<uint64_t>(value.as<int64_t>()));
  } else if (value.type_index == TypeIndex::Int) {
    out.value(value.as<int64_t>());
  } else if (value.type_index == TypeIndex::Float && scalar && type.dtype == f32) {
    write_float(out, static_cast<float>(value.as<double>()));
  } else if (value.type_index == TypeIndex::Float) {
    write_float(out, value.as<double>());
  } else {
    out.value(repr(value, kLongest));
  }
}

void write_type(JsonWriter& out, const std::string& name, const vm::SignatureType& type) {
  out.begin_object();
  out.key("name").value(name);
  out.key("type").value(vm::to_text(type));
  using Kind = vm::SignatureType::Kind;
  if (type.kind == Kind::Tensor || type.kind == Kind::Scalar) {
    out.key("dtype").value(tenon::to_text(type.dtype));
  }
  if (type.kind == Kind::Tensor) {
    out.key("shape");
    if (type.dims_known) {
      out.begin_row();
      for (const vm::SignatureDim& dim : type.dims) {
        if (dim.is_constant()) {
          out.value(dim.value);
        } else {
          out.value(dim.text);
        }
      }
      out.end_row();
    } else {
      out.null();
    }
  }
  out.end_object();
}

}  // namespace

bool json_output() {
  return is_json;
}

void set_json_output(bool json) {
  is_json = json;
}

void add_json(CLI::App* command) {
  const std::string meaning = "print one JSON document instead, as docs/json.md describes it";
  command->add_flag("--json", meaning);
}

JsonWriter json_document() {
  return JsonWriter(2);
}

void print_json(JsonWriter document) {
  const std::string text = in_ascii(document.take());
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void write_error(JsonWriter& out, const Error& error) {
  out.begin_object();
  out.key("kind").value(kind_name(error.kind()));
  out.key("exit_code").value(error.exit_code());
  out.key("message").value(error.message());
  if (!error.span().file.empty()) out.key("file").value(error.span().file);
  if (error.span().line > 0) out.key("line").value(error.span().line);
  if (error.span().column > 0) out.key("column").value(error.span().column);
  if (!error.span().nodes.empty()) {
    out.key("nodes");
    write_names(out, error.span().nodes);
  }
  out.key("rows").begin_array();
  for (const Error::Row& row : error.all_rows()) {
    out.begin_object();
    out.key("label").value(row.label);
    out.key("text").value(row.text);
    if (!row.note.empty()) out.key("note").value(row.note);
    out.end_object();
  }
  out.end_array();
  out.key("text").value(error.render());
  out.end_object();
}

void write_names(JsonWriter& out, const std::vector<std::string>& names) {
  out.begin_array();
  for (const std::string& name : names) out.value(name);
  out.end_array();
}

void write_signature(JsonWriter& out, const FunctionSignature& signature) {
  out.begin_object();
  out.key("name").value(signature.name);
  out.key("inputs").begin_array();
  for (const vm::Param& param : signature.params) write_type(out, param.name, param.type);
  out.end_array();
  out.key("outputs").begin_array();
  const std::vector<std::string> names = signature.outputs();
  for (size_t i = 0; i < names.size(); ++i) {
    write_type(out, names[i], signature.result.results()[i]);
  }
  out.end_array();
  out.end_object();
}

void write_value(JsonWriter& out, const Any& value, const vm::SignatureType& type,
                 int64_t elements) {
  write_members(out, value, type, elements, 0);
}

void write_difference(JsonWriter& out, const Difference& difference, const Tolerance& tolerance) {
  out.key("equal").value(difference.equal);
  if (difference.kind.empty()) {
    out.key("elements").value(difference.count);
    out.key("mismatches").value(difference.mismatches);
    out.key("nan_in_both").value(difference.nans);
    out.key("greatest_difference").value(difference.largest);
    if (!difference.place.empty()) out.key("place").value(difference.place);
    if (!difference.exact) {
      out.key("rtol").value(tolerance.rtol);
      out.key("atol").value(tolerance.atol);
    }
  }
  out.key("text").value(to_text(difference, tolerance));
}

void write_tensor_type(JsonWriter& out, DataType dtype, std::span<const int64_t> shape) {
  out.key("dtype").value(tenon::to_text(dtype));
  out.key("shape").begin_row();
  for (const int64_t size : shape) out.value(size);
  out.end_row();
}

void write_element(JsonWriter& out, const Tensor& tensor, int64_t i) {
  const DataType dtype = tensor.dtype();
  if (dtype.is_bool()) {
    out.value(element_as_double(tensor, i) != 0);
  } else if (dtype == f64) {
    write_float(out, element_as_double(tensor, i));
  } else if (dtype.is_float()) {
    write_float(out, static_cast<float>(element_as_double(tensor, i)));
  } else if (dtype.bytes() == 8) {  // may not fit a double
    uint64_t word;
    std::memcpy(&word, tensor.data_as<char>() + i * int64_t{sizeof word}, sizeof word);
    dtype == u64 ? out.value(word) : out.value(static_cast<int64_t>(word));
  } else {
    out.value(static_cast<int64_t>(element_as_double(tensor, i)));
  }
}

}  // namespace tenon::tool
