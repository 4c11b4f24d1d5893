#include "tools/tenon/input_spec.h"

#include <algorithm>
#include <optional>

#include "report/elements.h"
#include "support/error.h"
#include "tools/tenon/data_types.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_tensor.h"
#include "tools/tenon/number_text.h"
#include "tools/tenon/parse_number.h"
#include "tools/tenon/random_values.h"
#include "tools/tenon/tensor_store.h"
#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

bool is_random(std::string_view spec) {
  return spec == "random" || spec.starts_with("random:");
}

bool is_string_tensor_type(const vm::SignatureType& type) {
  return type.kind == vm::SignatureType::Kind::Tensor && type.dtype == string_elements;
}

// A value of the type on the command line, for help.
std::string_view example_of(const vm::SignatureType& type) {
  using Kind = vm::SignatureType::Kind;
  if (type.kind == Kind::Scalar) {
    return type.dtype.is_bool() ? "true" : type.dtype.is_float() ? "0.5" : "3";
  }
  if (type.kind == Kind::Opaque && type.name == vm::kString) return "TEXT";
  if (is_string_tensor_type(type)) return type.rank == 0 ? "'\"text\"'" : "'[\"text\", ...]'";
  const bool is_list = type.kind == Kind::Array || (type.kind == Kind::Adt && type.name == "list");
  return is_list ? "'[...]'" : type.kind == Kind::Adt ? "'Constructor(...)'" : "FILE.npy";
}

// The value of a parameter from a tensor: a scalar's is that of a tensor with one element.
Any stored_value(const vm::Param& param, const Any& value) {
  if (param.type.kind != vm::SignatureType::Kind::Scalar) return value;
  const auto tensor = value.as<Tensor>();
  if (tensor.count() != 1) return tensor;
  const DataType found = tensor.dtype();
  if (found.is_bool() != param.type.dtype.is_bool() ||
      found.is_float() != param.type.dtype.is_float()) {
    return tensor;  // which the program refuses
  }
  if (found.is_bool()) return Any(report::element_as_double(tensor, 0) != 0);
  if (found.is_float()) return Any(report::element_as_double(tensor, 0));
  return *scalar_value(found, report::element_text(tensor, 0));
}

// The number with which a text fills a tensor.
std::optional<Any> fill_of(const vm::Param& param, std::string_view text) {
  if (param.type.kind != vm::SignatureType::Kind::Tensor) return std::nullopt;
  return scalar_value(param.type.dtype, text);
}

// The value of a parameter from a file, a number or the text of data.
Any given_value(const vm::Param& param, const std::string& text, const DataTypes& types) {
  using Kind = vm::SignatureType::Kind;
  if (text.empty() && !is_string(param.type)) {  // a string may be empty
    throw Error(ErrorKind::Usage, cat("--input ", param.name, "= has no value"))
        .expected(vm::to_text(param.type))
        .help("write the value after the '=', such as --input x=x.npy, x=random or n=3");
  }
  if (param.type.kind == Kind::Scalar) {
    if (auto value = scalar_value(param.type.dtype, text)) return *value;
    if (is_tensor_file(text)) return stored_value(param, read_tensor(text));
    throw Error(ErrorKind::Usage, cat("--input ", param.name, "=", text, " is not a valid value"))
        .expected(param.type.dtype.is_bool() ? "true or false"
                                             : cat("a number of ", numbers_of(param.type.dtype)));
  }
  if (param.type.kind == Kind::Tensor && is_json_tensor(text, param.type.dtype) &&
      (is_string_tensor_type(param.type) || !is_tensor_file(text))) {
    try {
      return Any(parse_json_tensor(text, param.type.dtype));
    } catch (Error& error) {
      throw error.where(cat("--input ", param.name));
    }
  }
  if (param.type.kind == Kind::Tensor && is_scalar_dtype(param.type.dtype) &&
      parse_number<double>(text)) {  // and not of its type, or it would fill the tensor
    throw Error(ErrorKind::Usage, cat("--input ", param.name, "=", text, " is not a valid value"))
        .expected(cat("a number of ", numbers_of(param.type.dtype)));
  }
  if (is_string(param.type) && !text.starts_with('"')) return Any(String(text));
  const bool is_tensor =
      param.type.kind == Kind::Tensor && is_tensor_text(text) && !is_tensor_file(text);
  const bool is_text = is_tensor || (is_data(param.type) && !is_value_file(text, param.type));
  if (!is_text) return read_value(text, param.type);
  // The text of a function isn't a value, wherever it stands.
  const bool is_in_file = text.starts_with('@') && param.type.kind != Kind::Function;
  try {
    return parse_data(is_in_file ? read_input(text.substr(1)) : text, param.type, types);
  } catch (Error& error) {
    throw error.where(cat("--input ", param.name));
  }
}

// Maps each input's name to the text given for it; refuses duplicates.
std::map<std::string, std::string> read_specs(const std::vector<std::string>& inputs) {
  std::map<std::string, std::string> specs;
  for (const std::string& input : inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorKind::Usage, cat("--input ", input, " is not of the form NAME=VALUE"))
          .expected("such as --input x=x.npy, x=x.pb, x=random, x=random:0..9 or n=3");
    }
    const std::string name = input.substr(0, equals);
    if (!specs.emplace(name, input.substr(equals + 1)).second) {
      throw Error(ErrorKind::Usage, cat("input '", name, "' is given twice"))
          .found(cat("--input ", name, "=", specs[name], " and --input ", input));
    }
  }
  return specs;
}

// Refuses unknown names first, since a misspelt name also leaves an input missing.
void check_names(const FunctionSignature& signature,
                 const std::map<std::string, std::string>& specs) {
  std::vector<std::string> names;
  for (const vm::Param& param : signature.params) names.push_back(param.name);
  for (const auto& [name, spec] : specs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    Error error(ErrorKind::Usage, cat("'", signature.name, "' has no input '", name, "'"));
    error.expected(names.empty()       ? "none: it takes no inputs"
                   : names.size() == 1 ? names[0]
                                       : cat("one of ", join(names, ", ")));
    const std::string near = nearest(name, names);
    if (!near.empty() && name.size() > 1) error.help(cat("did you mean ", near, "?"));
    throw error;
  }
}

}  // namespace

Inputs make_inputs(const FunctionSignature& signature, const InputFlags& flags, bool random_rest) {
  std::map<std::string, std::string> specs = read_specs(flags.inputs);
  check_names(signature, specs);
  std::optional<TensorStore> store;
  if (!flags.store.empty()) store.emplace(flags.store, "input", "--inputs");
  Inputs out;
  out.values.resize(signature.params.size());
  const DataTypes types(signature.types);
  // Values first, since numbers that fill tensors and random ones take the sizes of their symbols.
  GivenSizes sizes = flags.sizes;
  std::vector<size_t> random_at;
  std::map<size_t, Any> fills;
  std::vector<std::string> chosen, random;
  for (size_t i = 0; i < signature.params.size(); ++i) {
    const vm::Param& param = signature.params[i];
    const auto spec = specs.find(param.name);
    if (spec != specs.end() && is_random(spec->second)) {
      random_at.push_back(i);
      continue;
    }
    if (spec != specs.end()) {
      if (const auto number = fill_of(param, spec->second)) {
        fills.emplace(i, *number);
        continue;
      }
      out.values[i] = given_value(param, spec->second, types);
    } else if (auto stored = store ? store->read_value(param.name, i, param.type) : std::nullopt) {
      out.values[i] = stored_value(param, *stored);
    } else if (random_rest) {
      random.push_back(param.name);
      specs[param.name] = "random";
      random_at.push_back(i);
      continue;
    } else {
      Error error(ErrorKind::Usage, cat("input '", param.name, "' is not given"));
      const std::string contents = store ? store->contents() : "";
      if (!contents.empty()) error.found(contents);
      throw error
          .expected(
              cat(vm::to_text(param.type), store ? cat(", in ", store->places(param.name, i)) : ""))
          .help(cat("--input ", param.name, "=", example_of(param.type), ", --input ", param.name,
                    "=random, or --inputs FOLDER or FILE.npz"));
    }
    check_given_sizes(param, out.values[i], flags.sizes);
    bind_sizes_of(param, out.values[i], &sizes);
  }
  for (const auto& [i, number] : fills) {
    out.values[i] = filled_tensor(signature.params[i], number, sizes, &chosen);
    check_given_sizes(signature.params[i], out.values[i], flags.sizes);
  }
  RandomValues generator(flags.seed, sizes, types);
  for (const size_t i : random_at) {
    const vm::Param& param = signature.params[i];
    out.values[i] = generator.value(param, specs[param.name], &chosen);
    check_given_sizes(param, out.values[i], flags.sizes);
  }
  if (!random.empty()) {
    out.notes.push_back(cat("random inputs, seed ", flags.seed, ": ", join(random, ", ")));
  }
  if (!chosen.empty()) out.notes.push_back(cat("sizes taken as 1: ", join(chosen, ", ")));
  return out;
}

}  // namespace tenon::tool
