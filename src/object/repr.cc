// Human-readable text of any value.
#include "object/device_name.h"
#include "object/function.h"
#include "object/tensor.h"
#include "object/walk.h"

namespace tenon {

using detail::Child;
using detail::class_of;
using detail::ValueClass;

namespace {

std::string float_text(double d) {
  std::string s = cat(d);
  if (s.find_first_not_of("-0123456789") == std::string::npos) s += ".0";
  return s;
}

// `limit`: of what will be printed; of a longer string, no more is looked at.
std::string plain_text(const AnyView& v, size_t limit) {
  switch (v.type_index) {
    case TypeIndex::None:
      return "None";
    case TypeIndex::Int:
      return cat(v.v.i);
    case TypeIndex::Bool:
      return v.v.i ? "true" : "false";
    case TypeIndex::Float:
      return float_text(v.v.f);
    case TypeIndex::DataType:
      return to_text(DataType(v.v.dtype));
    case TypeIndex::Device:
      return to_text(v.v.device);
    case TypeIndex::RawStr:
      return quoted(v.v.c_str);
    case TypeIndex::SmallStr:
    case TypeIndex::Str:
      return quoted(detail::text_of(v).substr(0, limit));
    case TypeIndex::SmallBytes:
    case TypeIndex::Bytes:
      return "b" + quoted(detail::text_of(v).substr(0, limit));
    case TypeIndex::Shape:
      return "shape" + to_text(payload_as<Shape>(v));
    case TypeIndex::Tensor: {
      const auto* t = static_cast<const TensorObj*>(v.v.object);
      return tensor_type_text(t->dl.dtype, {t->dl.shape, static_cast<size_t>(t->dl.ndim)});
    }
    case TypeIndex::Function:
      if (const std::string_view name = name_of(v); !name.empty()) {
        return cat("<closure @", printable(name), ">");
      }
      [[fallthrough]];
    default:
      return cat("<", type_name(v.type_index), ">");
  }
}

class Printer {
 public:
  explicit Printer(size_t limit) : limit_(limit) {}

  std::string run(const AnyView& value) {
    stack_.push_back({"", Any(value), true});
    while (!stack_.empty()) {
      Item item = std::move(stack_.back());
      stack_.pop_back();
      if (!item.has_value) {
        out_ += item.text;
      } else {
        print(item.value);
      }
      if (out_.size() > limit_) {
        size_t end = limit_;
        while (end > 0 && (static_cast<unsigned char>(out_[end]) & 0xc0) == 0x80) --end;
        return out_.substr(0, end) + "...";
      }
    }
    return std::move(out_);
  }

 private:
  struct Item {
    std::string text;
    Any value;
    bool has_value;
  };

  // Pushes the parts of `value` on the stack, last first.
  void print(const Any& value) {
    ValueClass c = class_of(value);
    if (c == ValueClass::Plain || c == ValueClass::Identity) {
      out_ += plain_text(value, limit_);
      return;
    }
    std::vector<Child> children;
    if (c == ValueClass::Map) {  // in insertion order, as users expect
      for (const auto& e : static_cast<const MapObj*>(value.v.object)->entries) {
        children.push_back({nullptr, e.key});
        children.push_back({nullptr, e.value});
      }
    } else {  // of an array, each element takes a character at least
      detail::append_children(value, kHidden, children, limit_);
    }
    const char* close = c == ValueClass::Array ? "]" : c == ValueClass::Map ? "}" : ")";
    push_text(close);
    for (size_t i = children.size(); i-- > 0;) {
      const Field* f = children[i].field;
      bool is_value = c == ValueClass::Map && i % 2 == 1;
      if (f && f->kind == FieldKind::Span) {
        push_text(span_text(value, *f));
      } else if (f && !f->names.empty()) {
        push_text(children[i].value.as<String>().str());
      } else {
        stack_.push_back({"", std::move(children[i].value), true});
      }
      push_text(cat(is_value ? ": " : i ? ", " : "", f ? cat(f->name, "=") : std::string()));
    }
    if (c == ValueClass::Record) {
      out_ += find_type(value.type_index)->type_key;
      out_ += "(";
    } else if (c == ValueClass::Cell) {
      out_ += "cell(";
    } else {
      out_ += c == ValueClass::Array ? "[" : "{";
    }
  }

  void push_text(std::string text) { stack_.push_back({std::move(text), Any(), false}); }

  static std::string span_text(const Any& value, const Field& f) {
    const auto* at = reinterpret_cast<const char*>(value.v.object) + f.offset;
    std::string text = to_text(*reinterpret_cast<const Span*>(at));
    return text.empty() ? "None" : quoted(text);
  }

  size_t limit_;
  std::string out_;
  std::vector<Item> stack_;
};

}  // namespace

std::string repr(const AnyView& value, size_t limit) {
  return Printer(limit).run(value);
}

}  // namespace tenon
