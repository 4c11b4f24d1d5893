#include "import/onnx/custom_signature.h"

#include <algorithm>
#include <charconv>

#include "graph/ir/text.h"
#include "support/error.h"

namespace tenon::onnx {

namespace {

using Texts = std::vector<std::string_view>;

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \n\t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \n\t") + 1 - begin);
}

// Splits at a character outside of brackets and quotes.
Texts split(std::string_view text, char at) {
  Texts parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != at || depth > 0) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

template <class T>
std::optional<Any> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Any(value);
}

std::optional<Any> value_of(std::string_view text) {
  if (text == "true" || text == "false") return Any(text == "true");
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return Any(String(text.substr(1, text.size() - 2)));
  }
  const std::optional<Any> integer = number<int64_t>(text);
  return integer ? integer : number<double>(text);
}

CustomAttribute attribute_of(std::string_view text) {
  const size_t equals = text.find('=');
  CustomAttribute out{std::string(trimmed(text.substr(0, equals))), std::nullopt};
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (out.name.empty() || !std::ranges::all_of(out.name, is_letter)) {
    throw Error(ErrorKind::Usage, "the name of an attribute is missing").found(quoted(text));
  }
  if (equals == std::string_view::npos) return out;
  out.otherwise = value_of(trimmed(text.substr(equals + 1)));
  if (!out.otherwise) {
    throw Error(ErrorKind::Usage, cat("the attribute '", out.name, "' has an invalid default"))
        .found(std::string(trimmed(text.substr(equals + 1))))
        .expected("a number, true, false, or text in quotes");
  }
  return out;
}

CustomSignature parse(std::string_view text) {
  constexpr const char* kForm = "(TYPE, ...; ATTRIBUTE = DEFAULT, ...) -> TYPE";
  int depth = 0;
  size_t close = 0;
  for (; close < text.size(); ++close) {
    if (text[close] == '(') ++depth;
    if (text[close] == ')' && --depth == 0) break;
  }
  const std::string_view rest = trimmed(text.substr(std::min(close + 1, text.size())));
  if (!text.starts_with('(') || !rest.starts_with("->")) {
    throw Error(ErrorKind::Usage, "this is not a signature").expected(kForm);
  }
  const Texts parts = split(text.substr(1, close - 1), ';');
  if (parts.size() > 2) {
    throw Error(ErrorKind::Usage, "a signature has at most one semicolon outside of its types")
        .expected(kForm);
  }
  CustomSignature out;
  out.any_inputs = parts[0] == "...";
  const graph::TypeRef type =
      graph::parse_type(cat("fn(", out.any_inputs ? "" : parts[0], ") ", rest));
  const auto* function = graph::type_as<graph::FunctionType>(type);
  out.params = function->params.to_vector();
  out.result = function->result;
  if (parts.size() < 2) return out;
  if (parts[1].empty()) {
    out.attributes.emplace();
    return out;
  }
  for (const std::string_view part : split(parts[1], ',')) {
    const CustomAttribute attribute = attribute_of(part);
    if (attribute.name == graph::kEffectAttr || attribute.name == graph::kNoRetainAttr) {
      if (attribute.otherwise) out.promises.set(String(attribute.name), *attribute.otherwise);
      continue;
    }
    if (!out.attributes) out.attributes.emplace();
    out.attributes->push_back(attribute);
  }
  return out;
}

}  // namespace

CustomSignature parse_signature(const std::string& text) {
  try {
    return parse(trimmed(text));
  } catch (Error& error) {
    error.first_row("signature", printable(text));
    throw;
  }
}

}  // namespace tenon::onnx
