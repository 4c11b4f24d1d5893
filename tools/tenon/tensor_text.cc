#include "tools/tenon/tensor_text.h"

#include <bit>
#include <cmath>

#include "graph/ir/text.h"
#include "object/array.h"
#include "object/narrow_float.h"
#include "object/reflect.h"
#include "object/shape.h"
#include "object/string_tensor.h"
#include "report/elements.h"
#include "support/poll.h"

namespace tenon::tool {
bool is_tensor_text(std::string_view text) {
  return text.starts_with("tensor[");
}

Tensor parse_tensor(std::string_view text) {
  std::string literal(text);
  const size_t type_end = std::min(text.find(']'), text.size() - 1) + 1;
  const size_t equals = text.find_first_not_of(' ', type_end);
  if (equals != std::string_view::npos && text[equals] == '=') {
    const bool brackets = text.ends_with(']');
    const size_t begin = std::min(text.find_first_not_of(' ', equals + 1), text.size());
    const std::string_view elements = text.substr(begin);
    if (elements.find("...") != std::string_view::npos) {
      throw Error(ErrorKind::Usage, "the text of a tensor leaves elements out")
          .found("...")
          .help("`tenon run --print full` prints all elements");
    }
    // As long as the text, so that columns in errors are those of the text.
    literal = cat(text.substr(0, type_end), std::string(begin - type_end - (brackets ? 0 : 1), ' '),
                  '{', elements.substr(brackets ? 1 : 0));
    if (brackets) literal.pop_back();
    literal += '}';
  }
  const Any value = graph::parse_constant(literal);
  return value.as<Tensor>();
}

namespace {

constexpr int kDeepest = 6;       // nested tuples of unknown types
constexpr size_t kLongest = 400;  // characters of any other value

std::string elements_text(const Tensor& tensor, int64_t count) {
  std::string out;
  const int64_t total = tensor.count();
  for (int64_t i = 0; i < std::min(total, count); ++i) {
    out += cat(i ? ", " : "", report::element_text(tensor, i));
  }
  if (total > count) out += count > 0 ? ", ..." : "...";
  return out;
}

std::string tensor_text(const Tensor& tensor, int64_t count) {
  if (tensor.rank() == 0) return cat(to_text(tensor), " = ", report::element_text(tensor, 0));
  return cat(to_text(tensor), " = [", elements_text(tensor, count), "]");
}

// As it is written in a program.
std::string literal_text(const Tensor& tensor, int64_t count) {
  return cat(to_text(tensor), "{", elements_text(tensor, count), "}");
}

// A number, none, a shape, or any other value without fields, of which at most `longest`
// characters.
std::string scalar_text(const Any& value, const vm::SignatureType& type, size_t longest) {
  const bool scalar = type.kind == vm::SignatureType::Kind::Scalar;
  if (value.type_index == TypeIndex::Float) {
    const auto number = value.as<double>();
    return scalar && type.dtype != f64 ? report::float_text(static_cast<float>(number))
                                       : report::float_text(number);
  }
  if (value.type_index == TypeIndex::Int) {
    const auto number = value.as<int64_t>();
    return scalar && type.dtype == u64 ? cat(static_cast<uint64_t>(number)) : cat(number);
  }
  if (value.is_none()) return type.kind == vm::SignatureType::Kind::Tuple ? "()" : "none";
  if (auto shape = value.try_as<Shape>()) {
    std::string out = "shape[";
    for (size_t i = 0; i < shape->size() && out.size() < longest; ++i) {
      out += cat(i ? ", " : "", (*shape)[i]);
    }
    return out + (out.size() < longest ? "]" : ", ...]");
  }
  return repr(value, longest);
}

// Keeps what is still to be printed on a stack of its own: values may be nested to any depth.
class Printer {
 public:
  Printer(const DataTypes& types, int64_t count, size_t most)
      : types_(types), count_(static_cast<size_t>(count)), most_(most) {}

  std::string run(const Any& value, const vm::SignatureType& type) {
    pending_.push_back({value, &type, false, 0, 0});
    while (!pending_.empty() && out_.size() < most_) {
      poll();
      const Item item = std::move(pending_.back());
      pending_.pop_back();
      print(item);
    }
    if (!pending_.empty()) out_ += "...";
    return std::move(out_);
  }

 private:
  struct Item {
    Any value;
    const vm::SignatureType* type;
    bool in_data;   // where tensors are written as in a program
    int depth;      // in tuples
    size_t at = 0;  // how many of its fields, or of a list's elements before it, are printed
  };

  void print(const Item& item) {
    const Any& value = item.value;
    if (auto tensor = value.try_as<Tensor>(); tensor && *tensor) {
      const auto count = static_cast<int64_t>(count_);
      out_ += item.in_data ? literal_text(*tensor, count) : tensor_text(*tensor, count);
    } else if (auto fields = value.try_as<Array<Any>>(); fields && value.is_object()) {
      print_fields(*fields, item);
    } else if (const auto* cell = value.as_object<CellObj>()) {
      print_cell(*cell, item);
    } else {
      const bool whole = count_ == static_cast<size_t>(INT64_MAX);
      out_ += scalar_text(value, *item.type, whole ? most_ - out_.size() : kLongest);
    }
  }

  // Prints what stands around a container's fields, and leaves field `at` and those after it to be
  // printed.
  void print_parts(const Item& item, size_t size, const char* open, const char* close,
                   const Any* field, const vm::SignatureType* type, bool in_data) {
    if (item.at == 0) out_ += open;
    if (item.at == size) {
      out_ += close;
      return;
    }
    if (item.at > 0) out_ += ", ";
    pending_.push_back({item.value, item.type, item.in_data, item.depth, item.at + 1});
    pending_.push_back({*field, type, in_data, item.depth + 1, 0});
  }

  // A tuple in parentheses, or an array in brackets.
  void print_fields(const Array<Any>& fields, const Item& item) {
    using Kind = vm::SignatureType::Kind;
    static const vm::SignatureType kUnknown;
    const bool array = item.type->kind == Kind::Array;
    if (item.type->kind == Kind::Any && item.depth >= kDeepest) {
      out_ += "(...)";
      return;
    }
    const bool whole = array || item.in_data || fields.size() <= count_;
    const bool known = item.type->kind == Kind::Tuple && item.at < item.type->parts.size();
    const vm::SignatureType* type = known   ? &item.type->parts[item.at]
                                    : array ? &item.type->parts[0]
                                            : &kUnknown;
    print_parts(item, whole ? fields.size() : count_, array ? "[" : "(",
                array                ? "]"
                : fields.size() == 1 ? ",)"
                : whole              ? ")"
                                     : ", ...)",
                item.at < fields.size() ? &fields[item.at] : nullptr, type, true);
  }

  void print_cell(const CellObj& cell, const Item& item) {
    const DataTypes::Instance* instance = types_.find(*item.type, cell);
    if (!instance) {
      out_ += repr(item.value, kLongest);
      return;
    }
    const auto tag = static_cast<size_t>(cell.tag);
    const std::vector<vm::SignatureType>& types = instance->fields[tag];
    if (instance->is_list) {
      if (cell.tag == kNil) {
        out_ += item.at == 0 ? "[]" : "]";
        return;
      }
      out_ += item.at == 0 ? "[" : ", ";
      pending_.push_back({cell.begin()[1], &types[1], true, item.depth, 1});
      pending_.push_back({cell.begin()[0], &types[0], true, item.depth + 1, 0});
      return;
    }
    const std::string open = instance->definition->constructors[tag].name + "(";
    if (types.empty()) {
      out_ += instance->definition->constructors[tag].name;
      return;
    }
    print_parts(item, types.size(), open.c_str(), ")", cell.begin() + item.at,
                types.data() + item.at, true);
  }

  const DataTypes& types_;
  size_t count_;
  size_t most_;
  std::string out_;
  std::vector<Item> pending_;  // the next one last
};

}  // namespace

std::string value_text(const Any& value, const vm::SignatureType& type, const DataTypes& types,
                       int64_t count, size_t most) {
  return Printer(types, count, most).run(value, type);
}

}  // namespace tenon::tool
