#include "tools/tenon/call_results.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "loop/scalar_tensor.h"
#include "report/elements.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/input_spec.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/numpy/npy.h"
#include "tools/tenon/parse_number.h"
#include "tools/tenon/tensor_store.h"
#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

constexpr char kFull[] = "full";

// Null if the value is not a tensor.
Tensor tensor_in(const Any& value) {
  const auto tensor = value.try_as<Tensor>();
  return tensor ? *tensor : Tensor();
}

}  // namespace

void ShowFlags::add_to(CLI::App* command) {
  const auto set = [this](const std::string& text) {
    if (text == kFull) {
      elements_ = INT64_MAX;
      return;
    }
    elements_ = parse_number<int64_t>(text);
    if (elements_ && *elements_ >= 0) return;
    throw Error(ErrorKind::Usage, cat("--print: '", text, "' is not a number of elements"))
        .expected("full, or an integer, 0 or larger");
  };
  command
      ->add_option_function<std::string>(
          "--print", set,
          cat("elements of each tensor that are printed: full, or a number; ", kShownElements,
              " by\ndefault, and all of them with --json. Lists, arrays and values of data\ntypes "
              "are "
              "printed whole up to 64 KB, or with full"))
      ->type_name("N|full");
  command
      ->add_option("--top", top_,
                   "print the K greatest elements along each output's last axis instead")
      ->check(between(1, INT32_MAX))
      ->type_name("K");
  command->add_option("--labels", labels_file_,
                      "with --top: a text file with a name for each index, a line each");
}

void ShowFlags::prepare() {
  if (labels_file_.empty()) return;
  if (top_ == 0) {
    throw Error(ErrorKind::Usage, "--labels needs --top")
        .help("labels are printed beside the greatest elements: add --top 5");
  }
  const std::string text = read_input(labels_file_);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    labels_.push_back(std::move(line));
    at = end + 1;
  }
}

Tensor ShowFlags::ranked_tensor(const Any& value) const {
  const Tensor tensor = top_ > 0 ? tensor_in(value) : Tensor();
  return tensor && tensor.rank() > 0 && is_scalar_dtype(tensor.dtype()) ? tensor : Tensor();
}

void ShowFlags::check_labels(const CallResults& results) const {
  if (labels_.empty()) return;
  std::vector<std::string> sizes;
  for (const Any& value : results.values) {
    const Tensor tensor = ranked_tensor(value);
    if (!tensor) continue;
    const int64_t size = tensor.dim(tensor.rank() - 1);
    if (size == static_cast<int64_t>(labels_.size())) return;
    sizes.push_back(cat(size));
  }
  throw Error(ErrorKind::Usage, cat("--labels: ", labels_file_, " fits none of the outputs"))
      .found(counted(labels_.size(), "line"))
      .expected(sizes.empty() ? "an output that is a tensor with an axis"
                              : cat("one for each index of a last axis: ", join(sizes, ", ")));
}

std::vector<ShowFlags::Ranked> ShowFlags::ranked(const Tensor& tensor) const {
  std::vector<Ranked> rows;
  const int32_t last = tensor.rank() - 1;
  const int64_t size = tensor.dim(last);
  if (tensor.count() == 0) return rows;
  const int64_t most = std::min(elements_.value_or(json_output() ? INT64_MAX : kShownElements),
                                tensor.count() / size);
  for (int64_t row = 0; row < most; ++row) {
    Ranked out;
    out.at.resize(static_cast<size_t>(last));
    for (int64_t axis = last - 1, rest = row; axis >= 0; --axis) {
      out.at[static_cast<size_t>(axis)] = rest % tensor.dim(static_cast<int32_t>(axis));
      rest /= tensor.dim(static_cast<int32_t>(axis));
    }
    out.elements.resize(static_cast<size_t>(size));
    std::iota(out.elements.begin(), out.elements.end(), row * size);
    const auto count = static_cast<size_t>(std::min(top_, size));
    const auto middle = out.elements.begin() + static_cast<int64_t>(count);
    // NaN after all numbers; of equal ones the first.
    std::partial_sort(out.elements.begin(), middle, out.elements.end(), [&](int64_t a, int64_t b) {
      const double x = report::element_as_double(tensor, a),
                   y = report::element_as_double(tensor, b);
      if (std::isnan(x) || std::isnan(y)) return std::isnan(y) && (!std::isnan(x) || a < b);
      return x > y || (x == y && a < b);
    });
    out.elements.resize(count);
    rows.push_back(std::move(out));
  }
  return rows;
}

// Empty without a label for that index of the last axis.
std::string ShowFlags::label_of(const Tensor& tensor, int64_t index) const {
  if (tensor.dim(tensor.rank() - 1) != static_cast<int64_t>(labels_.size())) return "";
  return labels_[static_cast<size_t>(index)];
}

void ShowFlags::print_top(const std::string& name, const Tensor& tensor, FILE* to) const {
  std::fprintf(to, "%s: %s\n", printable(name).c_str(),
               tensor_type_text(tensor.dtype(), tensor.shape()).c_str());
  const int64_t size = tensor.dim(tensor.rank() - 1);
  const std::vector<Ranked> rows = ranked(tensor);
  for (const Ranked& row : rows) {
    std::vector<std::string> at;
    for (const int64_t index : row.at) at.push_back(cat(index));
    if (!at.empty()) std::fprintf(to, "  [%s]\n", join(at, ", ").c_str());
    for (const int64_t element : row.elements) {
      const std::string label = label_of(tensor, element % size);
      std::fprintf(to, "  %6lld  %s%s%s\n", static_cast<long long>(element % size),
                   report::element_text(tensor, element).c_str(), label.empty() ? "" : "  ",
                   printable(label).c_str());
    }
  }
  const int64_t all = size == 0 ? 0 : tensor.count() / size;
  if (static_cast<int64_t>(rows.size()) < all) {
    std::fprintf(to, "  and %lld more: --print full\n",
                 static_cast<long long>(all - static_cast<int64_t>(rows.size())));
  }
}

void ShowFlags::write_top(const Tensor& tensor, JsonWriter& out) const {
  write_tensor_type(out, tensor.dtype(), tensor.shape());
  const int64_t size = tensor.dim(tensor.rank() - 1);
  out.key("top").begin_array();
  for (const Ranked& row : ranked(tensor)) {
    out.begin_object().key("at").begin_row();
    for (const int64_t index : row.at) out.value(index);
    out.end_row().key("elements").begin_array();
    for (const int64_t element : row.elements) {
      out.begin_object().key("index").value(element % size).key("value");
      write_element(out, tensor, element);
      const std::string label = label_of(tensor, element % size);
      if (!label.empty()) out.key("label").value(label);
      out.end_object();
    }
    out.end_array().end_object();
  }
  out.end_array();
}

void ShowFlags::print(const CallResults& results, FILE* to) const {
  // Values that share their parts would have a text of any length.
  size_t left = elements_ == INT64_MAX ? kMostFullText : kMostText;
  const DataTypes types(results.signature.types);
  const vm::SignatureType& result = results.signature.result;
  if (result.results().empty()) std::fprintf(to, "result: ()\n");
  // Of several results, each is printed by itself; a tuple of one is no list of results.
  const bool is_one = result.kind == vm::SignatureType::Kind::Tuple && result.parts.size() == 1;
  for (size_t i = 0; i < results.values.size(); ++i) {
    if (const Tensor tensor = ranked_tensor(results.values[i])) {
      print_top(results.names[i], tensor, to);
      continue;
    }
    const Any& value = results.values[i];
    const std::string text = is_one ? value_text(Array<Any>({value}), result, types,
                                                 elements_.value_or(kShownElements), left)
                                    : value_text(value, result.results()[i], types,
                                                 elements_.value_or(kShownElements), left);
    left -= std::min(left, text.size());
    std::fprintf(to, "%s: %s\n", printable(results.names[i]).c_str(), text.c_str());
  }
}

void ShowFlags::write(const CallResults& results, JsonWriter& out) const {
  const DataTypes types(results.signature.types);
  out.begin_array();
  for (size_t i = 0; i < results.values.size(); ++i) {
    out.begin_object().key("name").value(results.names[i]);
    if (const Tensor tensor = ranked_tensor(results.values[i])) {
      write_top(tensor, out);
    } else {
      write_value(out, results.values[i], results.signature.result.results()[i], types,
                  elements_.value_or(INT64_MAX));
    }
    out.end_object();
  }
  out.end_array();
}

void StoreFlags::add_to(CLI::App* command) {
  add_repeated(command, "--output,-o", single_, "NAME=F.npy: store an output");
  command->add_option("--outputs", all_,
                      "store every output: NAME.npy in a folder, or all in a .npz file");
}

namespace {

// An output is written as NumPy's format, so another file extension is a mistake. Devices and
// pipes have any name.
void check_array_file(const std::string& path) {
  std::error_code ignored;
  const bool replaced =
      std::filesystem::is_regular_file(path, ignored) || !std::filesystem::exists(path, ignored);
  if (path == "-" || !replaced || path.ends_with(".npy")) return;
  throw Error(ErrorKind::Usage, cat("--output: ", path, " is not a .npy file"))
      .help(is_npz(path) ? "--outputs FILE.npz stores every output in one file"
                         : "outputs are written in NumPy's format: give a name that ends in .npy");
}

// A result as a tensor; null for one that is neither a tensor nor a number.
Tensor as_tensor(const Any& value, const vm::SignatureType& type) {
  if (const Tensor tensor = tensor_in(value)) return tensor;
  if (type.kind == vm::SignatureType::Kind::Scalar) return loop::scalar_tensor(type.dtype, value);
  return Tensor();
}

}  // namespace

void StoreFlags::prepare(const FunctionSignature& signature) {
  const std::vector<std::string> names = signature.outputs();
  for (const std::string& output : single_) {
    const size_t equals = output.find('=');
    if (equals + 1 == output.size()) {
      throw Error(ErrorKind::Usage, cat("--output ", output, " names no file"))
          .expected(cat("--output ", output, "FILE.npy"));
    }
    const auto name = std::ranges::find(names, output.substr(0, equals));
    if (equals == std::string::npos || name == names.end()) {
      Error error(ErrorKind::Usage, cat("--output ", output, " names no output"));
      error.expected(cat("NAME=FILE.npy with NAME one of ", join(names, ", ")));
      const std::string near = nearest(output.substr(0, equals), names);
      if (equals != std::string::npos && !near.empty())
        error.help(cat("did you mean --output ", near, output.substr(equals), "?"));
      throw error;
    }
    const std::string path = output.substr(equals + 1);
    check_array_file(path);
    check_writable(path);
    stored_.push_back({output, static_cast<size_t>(name - names.begin()), path});
  }
  if (all_.empty()) return;
  check_tensor_destination(all_, names, "--outputs");
  for (size_t i = 0; i < names.size(); ++i) {
    const vm::SignatureType& type = signature.result.results()[i];
    using Kind = vm::SignatureType::Kind;
    if (type.kind == Kind::Tensor || type.kind == Kind::Scalar || type.kind == Kind::Any) continue;
    throw Error(ErrorKind::Usage, cat("--outputs: output '", names[i], "' can't be stored"))
        .found(vm::to_text(type))
        .expected("tensors and numbers")
        .help("store single tensors with --output NAME=FILE.npy");
  }
}

bool StoreFlags::to_stdout() const {
  return std::ranges::find(stored_, "-", &Stored::path) != stored_.end();
}

void StoreFlags::store(const CallResults& results) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.values.size(); ++i) {
    tensors.push_back(as_tensor(results.values[i], results.signature.result.results()[i]));
  }
  for (const Stored& output : stored_) {
    if (!tensors[output.index]) {
      throw Error(ErrorKind::Usage, cat("--output ", output.text, " names no tensor"));
    }
    write_npy(output.path, tensors[output.index]);
  }
  if (all_.empty()) return;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]) continue;
    throw Error(ErrorKind::Usage,
                cat("--outputs: output '", results.names[i], "' is neither a tensor nor a number"))
        .found(value_text(results.values[i]));
  }
  write_tensors(all_, results.names, tensors);
}

}  // namespace tenon::tool
