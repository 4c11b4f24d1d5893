#include "tools/tenon/given_sizes.h"

#include <algorithm>
#include <optional>

#include "graph/ir/name_text.h"
#include "graph/ir/text.h"
#include "loop/symbol_set.h"
#include "support/error.h"

namespace tenon::tool {
namespace {

// The size in a type. Text that is not a size, in an untrusted file, counts as one symbol.
Dim size_of(const vm::SignatureDim& dim) {
  if (dim.is_constant()) return dim.value;
  try {
    return graph::parse_size(dim.text);
  } catch (const Error&) {
    return Dim::symbol(dim.text);
  }
}

// A symbol as written in types: quoted unless it is an identifier.
std::string symbol_text(std::string_view symbol) {
  return graph::dim_text(Dim::symbol(symbol));
}

// The size that --dim gives to a symbol, by its name with or without quotes.
std::optional<int64_t> given_size(std::string_view symbol, const GivenSizes& given) {
  auto found = given.dims.find(std::string(symbol));
  if (found == given.dims.end()) found = given.dims.find(tenon::quoted(symbol));
  return found == given.dims.end() ? std::nullopt : std::optional(found->second);
}

void append_symbols(const vm::SignatureType& type, SymbolSet* symbols) {
  for (const vm::SignatureDim& dim : type.dims) collect_symbols(size_of(dim), symbols);
  for (const vm::SignatureType& part : type.parts) append_symbols(part, symbols);
}

}  // namespace

namespace {

Error unknown_name(const std::string& option, const FunctionSignature& signature, const char* what,
                   const std::string& name, const std::vector<std::string>& known,
                   const char* none) {
  Error error(ErrorKind::Usage, cat(option, ": '", signature.name, "' has no such ", what));
  error.expected(known.empty() ? none : join(known, ", "));
  graph::suggest(&error, name, known);
  return error;
}

// The name of a dimension that is a symbol alone; empty for any other.
std::string symbol_of(const vm::SignatureDim& dim) {
  const Dim size = size_of(dim);
  return size.kind() == DimKind::kSymbol ? std::string(size.node().name.view()) : "";
}

void bind_shape(const vm::Param& param, const std::vector<int64_t>& shape, GivenSizes* given) {
  if (param.type.kind != vm::SignatureType::Kind::Tensor || !param.type.dims_known) return;
  const std::vector<vm::SignatureDim>& dims = param.type.dims;
  Error mismatch(ErrorKind::Usage, cat("--shape ", param.name, " does not fit the input"));
  mismatch.expected(vm::to_text(param.type));
  if (shape.size() != dims.size()) throw mismatch.found(cat("rank ", shape.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_constant() && dims[i].value != shape[i]) {
      throw mismatch.found(cat(shape[i]), cat("axis ", i))
          .help("the program fixes this size: use a symbol there to change it");
    }
    const std::string symbol = symbol_of(dims[i]);
    if (symbol.empty()) continue;
    const auto size = given_size(symbol, *given);
    if (!size) {
      given->dims.emplace(symbol, shape[i]);
    } else if (*size != shape[i]) {
      throw Error(ErrorKind::Usage,
                  cat("the size ", symbol_text(symbol), " is given twice, and differs"))
          .found(cat(shape[i]), cat("--shape ", param.name, ", axis ", i))
          .expected(cat(*size), "given before");
    }
  }
}

}  // namespace

void bind_sizes(const FunctionSignature& signature, GivenSizes* given) {
  SymbolSet symbols;
  std::vector<std::string> names, texts;
  for (const vm::Param& param : signature.params) {
    append_symbols(param.type, &symbols);
    names.push_back(param.name);
  }
  for (const std::string& symbol : symbols) texts.push_back(symbol_text(symbol));
  for (const auto& dim : given->dims) {
    const std::string& name = dim.first;
    const bool known = std::any_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
      return symbol == name || tenon::quoted(symbol) == name;
    });
    if (known) continue;
    throw unknown_name(cat("--dim ", name, "=", dim.second), signature, "size", name, texts,
                       "none: all its sizes are known");
  }
  for (const auto& [name, shape] : given->shapes) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw unknown_name(cat("--shape ", name), signature, "input", name, names,
                         "none: it takes no inputs");
    }
    bind_shape(signature.params[static_cast<size_t>(at - names.begin())], shape, given);
  }
}

void bind_sizes_of(const vm::Param& param, const Any& value, GivenSizes* given) {
  const auto tensor = value.try_as<Tensor>();
  if (!tensor || !*tensor || !param.type.dims_known) return;
  const std::span<const int64_t> shape = tensor->shape();
  if (shape.size() != param.type.dims.size()) return;  // the program reports it
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::string symbol = symbol_of(param.type.dims[i]);
    if (!symbol.empty() && !given_size(symbol, *given)) given->dims.emplace(symbol, shape[i]);
  }
}

std::vector<int64_t> random_shape(const vm::Param& param, const GivenSizes& given,
                                  std::vector<std::string>* chosen) {
  if (auto shape = given.shapes.find(param.name); shape != given.shapes.end()) return shape->second;
  auto fail = [&](const std::string& found) {
    return Error(ErrorKind::Usage, cat("input '", param.name, "' cannot be generated"))
        .found(found)
        .help(param.type.kind == vm::SignatureType::Kind::Tensor
                  ? cat("give it with --input ", param.name, "=FILE, or its shape with --shape ",
                        param.name, "=2x3")
                  : cat("give its value as text: --input ", param.name, "='...'"));
  };
  if (param.type.kind != vm::SignatureType::Kind::Tensor || !param.type.dims_known) {
    throw fail(vm::to_text(param.type));
  }
  std::vector<int64_t> shape;
  for (const vm::SignatureDim& dim : param.type.dims) {
    const auto size =
        evaluate(size_of(dim), [&](std::string_view symbol) -> std::optional<int64_t> {
          if (const auto value = given_size(symbol, given)) return value;
          const std::string text = symbol_text(symbol);
          if (std::find(chosen->begin(), chosen->end(), text) == chosen->end()) {
            chosen->push_back(text);
          }
          return 1;
        });
    if (!size || *size < 0) {
      throw fail(cat(vm::to_text(param.type), ", where ", dim.text, " is ",
                     size ? cat(*size) : "no number"))
          .help("give other sizes of its symbols with --dim");
    }
    shape.push_back(*size);
  }
  return shape;
}

void check_given_sizes(const vm::Param& param, const Any& value, const GivenSizes& given) {
  const auto tensor = value.try_as<Tensor>();
  if (!tensor || !*tensor || param.type.kind != vm::SignatureType::Kind::Tensor) return;
  const std::span<const int64_t> found = tensor->shape();
  std::vector<int64_t> asked(found.begin(), found.end());
  const auto shape = given.shapes.find(param.name);
  if (shape != given.shapes.end()) {
    asked = shape->second;
  } else if (param.type.dims_known && param.type.dims.size() == asked.size()) {
    for (size_t i = 0; i < asked.size(); ++i) {
      if (param.type.dims[i].is_constant()) continue;  // the program reports a mismatch itself
      const auto size = evaluate(size_of(param.type.dims[i]), [&](std::string_view symbol) {
        return given_size(symbol, given);
      });
      if (size) asked[i] = *size;
    }
  }
  if (std::equal(found.begin(), found.end(), asked.begin(), asked.end())) return;
  auto text = [&](std::span<const int64_t> sizes) {
    return tensor_type_text(tensor->dtype(), sizes);
  };
  const char* flag = shape != given.shapes.end() ? "--shape" : "--dim";
  throw Error(ErrorKind::Usage, cat("input '", param.name, "' does not fit ", flag))
      .expected(text(asked))
      .found(text(found))
      .help(cat("correct ", flag, ", or give '", param.name, "' of that shape"));
}

}  // namespace tenon::tool
