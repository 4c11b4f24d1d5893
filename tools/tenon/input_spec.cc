#include "tools/tenon/input_spec.h"

#include <charconv>
#include <filesystem>
#include <optional>
#include <random>

#include "device/device.h"
#include "import/onnx/tensor_file.h"
#include "support/error.h"
#include "tools/tenon/npy.h"

namespace tenon::tool {
namespace {

struct Range {
  double low, high;
};

Range default_range(DataType dtype) {
  return dtype.is_float() ? Range{-1, 1} : Range{0, 1};
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Range parse_range(std::string_view spec, DataType dtype) {
  if (spec == "random") return default_range(dtype);
  spec.remove_prefix(std::string_view("random:").size());
  const size_t dots = spec.find("..");
  auto low = parse_number(spec.substr(0, dots));
  auto high = dots == std::string_view::npos ? std::nullopt : parse_number(spec.substr(dots + 2));
  if (!low || !high || *low > *high) {
    throw Error(ErrorKind::Usage, cat("'", spec, "' is no range"))
        .expected("LOW..HIGH, such as random:0..9");
  }
  return {*low, *high};
}

uint16_t half_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t sign = bits >> 16 & 0x8000;
  const int exponent = static_cast<int>(bits >> 23 & 255) - 112;
  if (exponent <= 0) return static_cast<uint16_t>(sign);  // random values need no denormals
  if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7c00);
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent) << 10 | (bits >> 13 & 1023));
}

Tensor random_tensor(const std::vector<int64_t>& shape, DataType dtype, Range range,
                     std::mt19937_64& generator) {
  Tensor tensor = allocate_tensor(shape, dtype);
  const auto bytes = static_cast<size_t>(dtype.bytes());
  auto* out = static_cast<char*>(tensor.data());
  const auto low = static_cast<int64_t>(range.low), high = static_cast<int64_t>(range.high);
  for (int64_t i = 0, n = tensor.count(); i < n; ++i, out += bytes) {
    // The generator's numbers are the same everywhere; the library's distributions are not.
    const double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    if (dtype.is_float()) {
      const double value = range.low + unit * (range.high - range.low);
      if (dtype == f64) {
        std::memcpy(out, &value, 8);
      } else {
        const auto single = static_cast<float>(value);
        const uint16_t half = half_bits(single);
        std::memcpy(out, dtype == f16 ? static_cast<const void*>(&half) : &single, bytes);
      }
    } else {
      const int64_t value = low + static_cast<int64_t>(unit * static_cast<double>(high - low + 1));
      std::memcpy(out, &value, bytes);
    }
  }
  return tensor;
}

int64_t dim_value(const vm::SignatureDim& dim, const InputFlags& flags,
                  std::vector<std::string>* chosen) {
  if (dim.is_constant()) return dim.value;
  if (auto it = flags.dims.find(dim.text); it != flags.dims.end()) return it->second;
  if (std::find(chosen->begin(), chosen->end(), dim.text) == chosen->end()) {
    chosen->push_back(dim.text);
  }
  return 1;
}

Any random_value(const vm::Param& param, const InputFlags& flags, std::string_view spec,
                 std::mt19937_64& generator, std::vector<std::string>* chosen) {
  using Kind = vm::SignatureType::Kind;
  const Range range = parse_range(spec, param.type.dtype);
  if (param.type.kind == Kind::Scalar) {
    Tensor one = random_tensor({}, param.type.dtype.is_float() ? f64 : i64, range, generator);
    if (param.type.dtype.is_bool()) return Any(*one.data_as<int64_t>() != 0);
    if (param.type.dtype.is_float()) return Any(*one.data_as<double>());
    return Any(*one.data_as<int64_t>());
  }
  auto given = flags.shapes.find(param.name);
  if (param.type.kind != Kind::Tensor || (!param.type.dims_known && given == flags.shapes.end())) {
    throw Error(ErrorKind::Usage, cat("input '", param.name, "' cannot be made up"))
        .found(vm::to_text(param.type))
        .help(cat("give it with --input ", param.name, "=FILE, or its shape with --shape ",
                  param.name, "=2x3"));
  }
  std::vector<int64_t> shape;
  if (given != flags.shapes.end()) {
    shape = given->second;
  } else {
    for (const vm::SignatureDim& dim : param.type.dims) {
      shape.push_back(dim_value(dim, flags, chosen));
    }
  }
  return random_tensor(shape, param.type.dtype, range, generator);
}

Any scalar_value(const vm::Param& param, const std::string& text) {
  if (param.type.dtype.is_bool() && (text == "true" || text == "false")) return Any(text == "true");
  auto number = parse_number(text);
  if (!number) {
    throw Error(ErrorKind::Usage, cat("--input ", param.name, "=", text, " is no value"))
        .expected(vm::to_text(param.type));
  }
  if (param.type.dtype.is_bool()) return Any(*number != 0);
  return param.type.dtype.is_float() ? Any(*number) : Any(static_cast<int64_t>(*number));
}

}  // namespace

Tensor read_tensor(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".npy") return read_npy(path);
  if (extension == ".pb") return onnx::read_tensor_file(path);
  throw Error(ErrorKind::Usage, cat(path, " is no tensor file"))
      .expected(".npy (NumPy) or .pb (ONNX TensorProto)");
}

std::vector<std::string> numbered_files(const std::string& folder, const std::string& name) {
  std::vector<std::string> files;
  for (int i = 0;; ++i) {
    std::string path = cat(folder, "/", name, "_", i, ".pb");
    if (!std::filesystem::exists(path)) return files;
    files.push_back(std::move(path));
  }
}

Inputs make_inputs(const FunctionSignature& signature, const InputFlags& flags, bool random_rest) {
  std::map<std::string, std::string> specs;
  for (const std::string& input : flags.inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorKind::Usage, cat("--input ", input, " is not of the form NAME=VALUE"))
          .expected("such as --input x=x.npy, x=x.pb, x=random, x=random:0..9 or n=3");
    }
    specs[input.substr(0, equals)] = input.substr(equals + 1);
  }
  Inputs out;
  std::mt19937_64 generator(flags.seed);
  std::vector<std::string> chosen, random;
  for (size_t i = 0; i < signature.params.size(); ++i) {
    const vm::Param& param = signature.params[i];
    const std::string numbered = cat(flags.folder, "/input_", i, ".pb");
    const std::string named = cat(flags.folder, "/", param.name, ".npy");
    auto spec = specs.find(param.name);
    if (spec != specs.end() && !spec->second.starts_with("random")) {
      out.values.push_back(param.type.kind == vm::SignatureType::Kind::Scalar
                               ? scalar_value(param, spec->second)
                               : Any(read_tensor(spec->second)));
    } else if (spec != specs.end()) {
      out.values.push_back(random_value(param, flags, spec->second, generator, &chosen));
    } else if (!flags.folder.empty() && std::filesystem::exists(numbered)) {
      out.values.push_back(read_tensor(numbered));
    } else if (!flags.folder.empty() && std::filesystem::exists(named)) {
      out.values.push_back(read_tensor(named));
    } else if (random_rest) {
      random.push_back(param.name);
      out.values.push_back(random_value(param, flags, "random", generator, &chosen));
    } else {
      throw Error(ErrorKind::Usage, cat("input '", param.name, "' is not given"))
          .expected(vm::to_text(param.type))
          .help(cat("--input ", param.name, "=FILE.npy, --input ", param.name,
                    "=random, or --inputs FOLDER"));
    }
    if (spec != specs.end()) specs.erase(spec);
  }
  if (!specs.empty()) {
    std::string names;
    for (const vm::Param& param : signature.params)
      names += cat(names.empty() ? "" : ", ", param.name);
    throw Error(ErrorKind::Usage,
                cat("'", signature.name, "' has no input '", specs.begin()->first, "'"))
        .expected(names.empty() ? "no inputs" : names);
  }
  if (!random.empty()) {
    out.notes.push_back(cat("random inputs, seed ", flags.seed, ": ", join(random, ", ")));
  }
  if (!chosen.empty()) out.notes.push_back(cat("sizes taken as 1: ", join(chosen, ", ")));
  return out;
}

}  // namespace tenon::tool
