#include "tools/tenon/json_output.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "object/array.h"
#include "object/map.h"
#include "object/reflect.h"
#include "object/shape.h"
#include "object/string_tensor.h"
#include "report/elements.h"
#include "support/text.h"
#include "support/utf8.h"
#include "tools/tenon/tensor_text.h"
#include "vm/asm/constant_text.h"

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
  while (!text.empty()) {
    const uint32_t point = take_code_point(text);
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else if (point < 0x10000) {
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

// A number, boolean, none or, as text, anything else. A number has the type that the signature
// gives it.
void write_scalar(JsonWriter& out, const Any& value, const vm::SignatureType& type) {
  constexpr size_t kLongest = 400;  // characters of a value that isn't data
  const bool scalar = type.kind == vm::SignatureType::Kind::Scalar;
  if (value.is_none()) {
    out.null();
  } else if (value.type_index == TypeIndex::Bool) {
    out.value(value.as<bool>());
  } else if (value.type_index == TypeIndex::Int && scalar && type.dtype == u64) {
    out.value(static_cast<uint64_t>(value.as<int64_t>()));
  } else if (value.type_index == TypeIndex::Int) {
    out.value(value.as<int64_t>());
  } else if (value.type_index == TypeIndex::Float && scalar && type.dtype != f64) {
    write_float(out, static_cast<float>(value.as<double>()));
  } else if (value.type_index == TypeIndex::Float) {
    write_float(out, value.as<double>());
  } else {
    out.value(repr(value, kLongest));
  }
}

// Writes the members of a value. Within tuples and arrays there is a bound, since values that share
// their parts would have a text of any length.
class ValueWriter {
 public:
  ValueWriter(JsonWriter& out, const DataTypes& types, int64_t elements)
      : out_(out), types_(types), elements_(elements) {}

  void write(const Any& value, const vm::SignatureType& type, int depth = 0) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) {
      out_.key("elided").value(true);
    } else if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) {
      write_tensor(*tensor, depth);
    } else if (auto fields = value.try_as<Array<Any>>(); fields && value.is_object()) {
      write_array(*fields, type, depth);
    } else if (const auto* cell = value.as_object<CellObj>()) {
      write_cell(*cell, type, depth);
    } else if (String::accepts(value)) {
      write_string(value.as<String>(), depth);
    } else {
      write_single(value, type);
    }
  }

 private:
  // What isn't UTF-8 can't be a string of JSON.
  void write_string(const String& text, int depth) {
    if (depth > 0) elements_left_ -= static_cast<int64_t>(text.view().size());
    if (elements_left_ < 0) {
      out_.key("elided").value(true);
    } else if (is_utf8(text.view())) {
      out_.key("value").value(text.view());
    } else {
      out_.key("hex").value(vm::hex_bytes(text.view()));
    }
  }

  void write_tensor(const Tensor& tensor, int depth) {
    const int64_t n = std::min(tensor.count(), elements_);
    write_tensor_type(out_, tensor.dtype(), tensor.shape());
    if (depth > 0) elements_left_ -= n;
    if (elements_left_ < 0) {
      out_.key("elided").value(true);
      return;
    }
    out_.key("data").begin_row();
    for (int64_t i = 0; i < n; ++i) write_element(out_, tensor, i);
    out_.end_row();
  }

  void write_array(const Array<Any>& fields, const vm::SignatureType& type, int depth) {
    using Kind = vm::SignatureType::Kind;
    const bool array = type.kind == Kind::Array;
    write_list(array ? "elements" : "fields", depth, [&, i = size_t{0}]() mutable -> Part {
      if (i == fields.size()) return {};
      const bool known = type.kind == Kind::Tuple && i < type.parts.size();
      const vm::SignatureType* part = known ? &type.parts[i] : array ? &type.parts[0] : &kUnknown;
      return {&fields[i++], part};
    });
  }

  void write_cell(const CellObj& cell, const vm::SignatureType& type, int depth) {
    const DataTypes::Instance* instance = types_.find(type, cell);
    if (instance && instance->is_list) {
      const CellObj* rest = &cell;
      write_list("elements", depth, [&]() -> Part {
        if (!rest || rest->tag == kNil || !types_.find(type, *rest)) return {};
        const Any* element = rest->begin();
        rest = element[1].as_object<CellObj>();
        return {element, &type.parts[0]};
      });
      return;
    }
    if (instance) {
      const auto tag = static_cast<size_t>(cell.tag);
      out_.key("constructor").value(instance->definition->constructors[tag].name);
    } else {
      out_.key("tag").value(cell.tag);
    }
    write_list("fields", depth, [&, i = size_t{0}]() mutable -> Part {
      if (i == static_cast<size_t>(cell.size)) return {};
      const vm::SignatureType* part =
          instance ? &instance->fields[static_cast<size_t>(cell.tag)][i] : &kUnknown;
      return {cell.begin() + i++, part};
    });
  }

  struct Part {
    const Any* value = nullptr;
    const vm::SignatureType* type = nullptr;
  };
  // An array of the values that `next` gives, until there are none.
  template <class F>
  void write_list(const char* key, int depth, F next) {
    out_.key(key).begin_array();
    for (Part part; fields_left_ > 0 && (part = next()).value;) {
      --fields_left_;
      out_.begin_object();
      write(*part.value, *part.type, depth + 1);
      out_.end_object();
    }
    out_.end_array();
    if (fields_left_ <= 0) out_.key("elided").value(true);
  }

  void write_single(const Any& value, const vm::SignatureType& type) {
    if (type.kind == vm::SignatureType::Kind::Scalar) {
      out_.key("dtype").value(tenon::to_text(type.dtype));
    }
    const auto shape = value.try_as<Shape>();
    if (!shape) return write_scalar(out_.key("value"), value, type);
    out_.key("value").begin_row();
    for (size_t i = 0; i < shape->size(); ++i) out_.value((*shape)[i]);
    out_.end_row();
  }

  static inline const vm::SignatureType kUnknown;

  JsonWriter& out_;
  const DataTypes& types_;
  int64_t elements_;  // of a tensor
  int64_t fields_left_ = int64_t{1} << 14;
  int64_t elements_left_ = int64_t{1} << 24;  // of tensors in fields, and bytes of strings
};

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
    out.value(error.span().nodes);
  }
  if (!error.stopped_by().empty()) out.key("stopped_by").value(error.stopped_by());
  out.key("rows").begin_array();
  for (const Error::Row& row : error.all_rows()) {
    if (!row.is_shown()) continue;
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

void write_plain(JsonWriter& out, const Any& value) {
  if (value.type_index == TypeIndex::Map) {
    out.begin_object();
    for (const auto& [name, member] : value.as<Map<String, Any>>()) {
      write_plain(out.key(std::string(name)), member);
    }
    out.end_object();
  } else if (value.type_index == TypeIndex::Array) {
    out.begin_array();
    for (const Any& element : value.as<Array<Any>>()) write_plain(out, element);
    out.end_array();
  } else if (const auto text = value.try_as<String>()) {
    out.value(std::string(*text));
  } else {
    write_scalar(out, value, vm::SignatureType());
  }
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
                 const DataTypes& types, int64_t elements) {
  ValueWriter(out, types, elements).write(value, type);
}

void write_difference(JsonWriter& out, const Difference& difference) {
  out.key("equal").value(difference.equal);
  if (difference.kind.empty()) {
    out.key("elements").value(difference.count);
    out.key("mismatches").value(difference.mismatches);
    out.key("nan_in_both").value(difference.nans);
    out.key("greatest_difference").value(difference.largest);
    if (!difference.place.empty()) out.key("place").value(difference.place);
    if (!difference.exact) {
      out.key("rtol").value(difference.tolerance.rtol);
      out.key("atol").value(difference.tolerance.atol);
    }
    if (std::isfinite(difference.noise)) {
      out.key("rms").value(difference.noise);
      out.key("rms_limit").value(difference.tolerance.noise);
    }
  }
  out.key("text").value(to_text(difference));
}

void write_tensor_type(JsonWriter& out, DataType dtype, std::span<const int64_t> shape) {
  out.key("dtype").value(tenon::to_text(dtype));
  out.key("shape").begin_row();
  for (const int64_t size : shape) out.value(size);
  out.end_row();
}

void write_element(JsonWriter& out, const Tensor& tensor, int64_t i) {
  const DataType dtype = tensor.dtype();
  if (dtype == string_elements) {
    out.value(Strings(tensor)[i]);
  } else if (dtype.is_bool()) {
    out.value(report::element_as_double(tensor, i) != 0);
  } else if (dtype == f64) {
    write_float(out, report::element_as_double(tensor, i));
  } else if (dtype.is_float()) {
    write_float(out, static_cast<float>(report::element_as_double(tensor, i)));
  } else if (dtype.is_complex()) {
    const std::complex<double> number = report::element_as_complex(tensor, i);
    out.begin_row();
    for (const double part : {number.real(), number.imag()})
      dtype == c64 ? write_float(out, static_cast<float>(part)) : write_float(out, part);
    out.end_row();
  } else if (dtype.bytes() == 8) {  // may not fit a double
    uint64_t word;
    std::memcpy(&word, tensor.data_as<char>() + i * int64_t{sizeof word}, sizeof word);
    dtype == u64 ? out.value(word) : out.value(static_cast<int64_t>(word));
  } else {
    out.value(static_cast<int64_t>(report::element_as_double(tensor, i)));
  }
}

}  // namespace tenon::tool
