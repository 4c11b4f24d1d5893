#include "json/object_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <set>
#include <unordered_map>

#include "json/json.h"
#include "object/cell.h"
#include "object/device_name.h"
#include "object/field.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "object/walk.h"
#include "support/poll.h"
#include "support/utf8.h"

namespace tenon {

using detail::Child;
using detail::class_of;
using detail::ValueClass;

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string hex_of(std::string_view bytes) {
  std::string out;
  Ticker ticker;
  for (unsigned char c : bytes) {
    ticker.tick();
    out.push_back(kHexDigits[c >> 4]);
    out.push_back(kHexDigits[c & 15]);
  }
  return out;
}

std::string base64_of(std::string_view bytes) {
  std::string out;
  Ticker ticker;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    ticker.tick();
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out.push_back(i + k <= bytes.size() ? kBase64[group >> (18 - 6 * k) & 63] : '=');
    }
  }
  return out;
}

bool bytes_of_base64(std::string_view text, std::string& out) {
  if (text.size() % 4) return false;
  Ticker ticker;
  for (size_t i = 0; i < text.size(); i += 4) {
    ticker.tick();
    uint32_t group = 0;
    size_t padding = 0;
    for (size_t k = 0; k < 4; ++k) {
      char c = text[i + k];
      const char* at = c ? std::char_traits<char>::find(kBase64, 64, c) : nullptr;
      if (c == '=' && i + 4 == text.size() && k >= 2) {
        ++padding;
      } else if (!at || padding) {
        return false;
      }
      group = group << 6 | static_cast<uint32_t>(at ? at - kBase64 : 0);
    }
    for (size_t k = 0; k < 3 - padding; ++k) {
      out.push_back(static_cast<char>(group >> (16 - 8 * k) & 255));
    }
  }
  return true;
}

// A span is part of its node; as a value it is a map that is created on each access.
bool is_span(const Child& c) {
  return c.field && c.field->kind == FieldKind::Span;
}

// Gives every object a number, children first.
class Numbering {
 public:
  std::unordered_map<const Object*, int64_t> numbers;
  std::vector<Any> order;

  void visit(const AnyView& root) {
    Ticker ticker;
    enter(Any(root));
    while (!frames_.empty()) {
      ticker.tick();
      Frame& f = frames_.back();
      if (f.next == f.children.size()) {
        numbers[f.value.v.object] = static_cast<int64_t>(order.size());
        order.push_back(std::move(f.value));
        frames_.pop_back();
      } else {
        const Child& c = f.children[f.next++];
        if (!is_span(c)) enter(Any(c.value));
      }
    }
  }

 private:
  struct Frame {
    Any value;
    std::vector<Child> children;
    size_t next = 0;
  };
  void enter(Any value) {
    ValueClass c = class_of(value);
    if (c == ValueClass::Identity) {
      throw Error(ErrorKind::Usage,
                  cat("a ", type_name(value.type_index), " can't be written as JSON"));
    }
    if (c == ValueClass::Plain && value.type_index != TypeIndex::Tensor) return;
    if (!numbers.emplace(value.v.object, -1).second) return;  // objects can't form cycles
    Frame f{std::move(value), {}, 0};
    detail::append_children(f.value, kHidden, f.children);
    frames_.push_back(std::move(f));
  }
  std::vector<Frame> frames_;
};

class Writer {
 public:
  explicit Writer(int indent) : out_(indent) {}

  std::string run(const AnyView& root) {
    numbering_.visit(root);
    out_.begin_object().key("tenon").value(int64_t{1}).key("root");
    value(root);
    out_.key("nodes").begin_array();
    for (const Any& n : numbering_.order) node(n);
    out_.end_array().end_object();
    return out_.take();
  }

 private:
  void tagged(std::string_view tag, std::string_view text) {
    out_.begin_object().key(tag).value(text).end_object();
  }

  void dims(std::span<const int64_t> shape) {
    out_.begin_array();
    for (int64_t d : shape) out_.value(d);
    out_.end_array();
  }

  void text(std::string_view s) {
    if (is_utf8(s)) {
      out_.value(s);
    } else {
      tagged("text", hex_of(s));
    }
  }

  void value(const AnyView& v) {
    ticker_.tick();
    switch (v.type_index) {
      case TypeIndex::None:
        out_.null();
        return;
      case TypeIndex::Int:
        out_.value(v.v.i);
        return;
      case TypeIndex::Bool:
        out_.value(v.v.i != 0);
        return;
      case TypeIndex::Float:
        if (std::isfinite(v.v.f)) {
          out_.value(v.v.f);
        } else {
          tagged("float", hex(v.v.bits));
        }
        return;
      case TypeIndex::DataType:
        tagged("dtype", to_text(DataType(v.v.dtype)));
        return;
      case TypeIndex::Device:
        tagged("device", to_text(v.v.device));
        return;
      case TypeIndex::SmallStr:
      case TypeIndex::Str:
        text(detail::text_of(v));
        return;
      case TypeIndex::SmallBytes:
      case TypeIndex::Bytes:
        tagged("bytes", hex_of(detail::text_of(v)));
        return;
      case TypeIndex::Shape:
        out_.begin_object().key("shape");
        dims(payload_as<Shape>(v).dims());
        out_.end_object();
        return;
      default:
        break;
    }
    if (!v.is_object()) {
      throw Error(ErrorKind::Usage,
                  cat("a ", type_name(v.type_index), " can't be written as JSON"));
    }
    out_.begin_object().key("node").value(numbering_.numbers.at(v.v.object)).end_object();
  }

  void span(const Any& v) {
    if (v.is_none()) {
      out_.null();
      return;
    }
    out_.begin_object().key("span").begin_object();
    for (const auto& [key, part] : v.as<Map<String, Any>>()) {
      out_.key(key);
      if (key == "nodes") {
        out_.begin_array();
        for (const String& n : part.as<Array<String>>()) text(n);
        out_.end_array();
      } else {
        value(part);
      }
    }
    out_.end_object().end_object();
  }

  void node(const AnyView& v) {
    out_.begin_object();
    std::vector<Child> children;
    switch (class_of(v)) {
      case ValueClass::Array:
        detail::append_children(v, kHidden, children);
        out_.key("array").begin_array();
        for (const auto& c : children) value(c.value);
        out_.end_array();
        break;
      case ValueClass::Cell:
        detail::append_children(v, kHidden, children);
        out_.key("cell").begin_array();
        for (const auto& c : children) value(c.value);
        out_.end_array();
        break;
      case ValueClass::Map:
        out_.key("map").begin_array();
        for (const auto& e : static_cast<const MapObj*>(v.v.object)->entries) {
          out_.begin_array();
          value(e.key);
          value(e.value);
          out_.end_array();
        }
        out_.end_array();
        break;
      case ValueClass::Record:
        detail::append_children(v, kHidden, children);
        out_.key("$type").value(find_type(v.type_index)->type_key);
        for (const auto& c : children) {
          out_.key(c.field->name);
          is_span(c) ? span(c.value) : value(c.value);
        }
        break;
      default:
        tensor(payload_as<Tensor>(v));
    }
    out_.end_object();
  }

  void strings(const Tensor& t) {
    const Strings elements(t);
    out_.key("tensor").value(to_text(t.dtype())).key("shape");
    dims(t.shape());
    out_.key("data").begin_array();
    for (int64_t i = 0; i < elements.size(); ++i) out_.value(elements[i]);
    out_.end_array();
  }

  void tensor(const Tensor& t) {
    if (t.device().device_type != kDLCPU) {
      throw Error(ErrorKind::Usage, "a tensor on a device can't be written as JSON");
    }
    if (is_string_tensor(t)) return strings(t);
    Tensor c = t.compacted();
    std::string_view bytes(static_cast<const char*>(c.data()), static_cast<size_t>(c.bytes()));
    out_.key("tensor").value(to_text(c.dtype())).key("shape");
    dims(c.shape());
    out_.key("data").value(base64_of(bytes));
  }

  JsonWriter out_;
  Numbering numbering_;
  Ticker ticker_;
};

class Reader {
 public:
  Reader(std::string_view text, ErrorKind kind, std::string_view source, int max_depth)
      : text_(text), kind_(kind), source_(source), max_depth_(max_depth) {}

  Any run() {
    constexpr int kLevels = 8;  // the form needs no more
    Json document = parse_json(text_, kind_, source_, {kLevels});
    const Json* version = document.find("tenon");
    const Json* root = document.find("root");
    Json* const nodes = const_cast<Json*>(document.find("nodes"));  // `document` isn't const
    if (!version || version->kind != Json::Kind::Int || !root || !nodes ||
        nodes->kind != Json::Kind::Array) {
      fail(document, "not a Tenon value: it needs \"tenon\", \"root\" and \"nodes\"");
    }
    if (version->integer != 1) fail(*version, "an unknown version");
    // Each is freed where it was read: all together would take long without a poll.
    for (Json& n : nodes->array) {
      depth_ = 0;
      nodes_.push_back(node(n));
      if (n.find("$type") && ++depth_ > max_depth_) {
        fail(n, cat("objects are nested deeper than ", max_depth_, " levels"));
      }
      depths_.push_back(depth_);
      n = Json();
    }
    return value(*root);
  }

 private:
  [[noreturn]] void fail(const Json& at, std::string message) const {
    throw json_error(text_, kind_, source_, at.offset, std::move(message));
  }

  const std::string& string(const Json& j) const {
    if (j.kind != Json::Kind::String) fail(j, "expected a string");
    return j.string;
  }
  const std::vector<Json>& array(const Json& j) const {
    if (j.kind != Json::Kind::Array) fail(j, "expected an array");
    return j.array;
  }
  std::vector<int64_t> dims(const Json& j) const {
    std::vector<int64_t> out;
    for (const Json& d : array(j)) {
      if (d.kind != Json::Kind::Int) fail(d, "expected an integer");
      out.push_back(d.integer);
    }
    return out;
  }
  DataType dtype(const Json& j) const {
    auto t = parse_dtype(string(j));
    if (!t) fail(j, "not an element type");
    return *t;
  }

  Any value(const Json& j) const {
    ticker_.tick();
    switch (j.kind) {
      case Json::Kind::Null:
        return Any();
      case Json::Kind::Bool:
        return j.boolean;
      case Json::Kind::Int:
        return j.integer;
      case Json::Kind::Float:
        return j.number;
      case Json::Kind::String:
        return String(j.string);
      case Json::Kind::Array:
        fail(j, "an array must be a separate node");
      case Json::Kind::Object:
        break;
    }
    if (j.object.size() != 1) fail(j, "expected an object of one member");
    const auto& [tag, inner] = j.object[0];
    if (tag == "node") {
      if (inner.kind != Json::Kind::Int || inner.integer < 0 ||
          static_cast<uint64_t>(inner.integer) >= nodes_.size()) {
        fail(inner, "no node before this one has that number");
      }
      depth_ = std::max(depth_, depths_[static_cast<size_t>(inner.integer)]);
      return nodes_[static_cast<size_t>(inner.integer)];
    }
    if (tag == "shape") return Shape(dims(inner));
    if (tag == "dtype") return dtype(inner);
    if (tag == "device") {
      auto d = parse_device(string(inner));
      if (!d) fail(inner, "no device");
      return *d;
    }
    if (tag == "float") return float_of(inner);
    if (tag == "span") return span(inner);
    if (tag == "bytes" || tag == "text") {
      const auto bytes = bytes_of_hex(string(inner));
      if (!bytes) fail(inner, "expected hexadecimal digits");
      return tag == "text" ? Any(String(*bytes)) : Any(Bytes(*bytes));
    }
    fail(j, cat("an unknown form: ", quoted(tag)));
  }

  // Returns a map, which is checked when the field is set.
  Any span(const Json& j) const {
    Map<String, Any> parts;
    for (const auto& [key, part] : j.object) {
      if (key != "nodes") {
        parts.set(key, value(part));
        continue;
      }
      Array<Any> names;
      for (const Json& n : array(part)) names.push_back(value(n));
      parts.set(key, names);
    }
    return parts;
  }

  Any float_of(const Json& j) const {
    std::string_view s = string(j);
    uint64_t bits = 0;
    const bool has_prefix = s.starts_with("0x");
    if (has_prefix) s.remove_prefix(2);
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), bits, 16);
    if (!has_prefix || error != std::errc() || end != s.data() + s.size()) {
      fail(j, "expected the bits of a float");
    }
    return std::bit_cast<double>(bits);
  }

  Any node(const Json& j) {
    if (j.kind != Json::Kind::Object) fail(j, "expected a node");
    if (const Json* type = j.find("$type")) return record(j, *type);
    if (const Json* dtype_name = j.find("tensor")) return tensor(j, *dtype_name);
    if (j.object.size() != 1) fail(j, "a node of an unknown form");
    const auto& [tag, inner] = j.object[0];
    if (tag == "array") {
      Array<Any> out;
      for (const Json& e : array(inner)) out.push_back(value(e));
      return out;
    }
    if (tag == "cell") {
      const std::vector<Json>& parts = array(inner);
      if (parts.empty() || parts[0].kind != Json::Kind::Int || parts[0].integer < 0) {
        fail(inner, "expected a cell's tag");
      }
      auto cell = CellObj::of(parts[0].integer, parts.size() - 1);
      for (size_t i = 1; i < parts.size(); ++i) cell->begin()[i - 1] = value(parts[i]);
      return Any(std::move(cell));
    }
    if (tag == "map") {
      Map<Any, Any> out;
      for (const Json& e : array(inner)) {
        if (array(e).size() != 2) fail(e, "expected a key and a value");
        Any key = value(e.array[0]);
        if (out.contains(key)) fail(e, "a key appears twice");
        out.set(std::move(key), value(e.array[1]));
      }
      return out;
    }
    fail(j, "a node of an unknown form");
  }

  Any record(const Json& j, const Json& type) {
    const TypeInfo* info = find_type(string(type));
    if (!info || !info->make) fail(type, cat("no type ", quoted(type.string)));
    Ref<Object> made = info->make();
    std::vector<const Field*> fields = all_fields(*info);
    for (const Json::Member& member : j.object) {
      const std::string& name = member.name;
      const Json& inner = member.value;
      if (&inner == &type) continue;
      const Field* field = nullptr;
      for (const Field* f : fields) {
        if (name == f->name && !(f->flags & kHidden)) field = f;
      }
      if (!field) fail(inner, cat(info->type_key, " has no field ", quoted(name)));
      const Any given = value(inner);
      at(inner, [&] {
        const Json* number = inner.find("node");
        if (number && field->kind == FieldKind::Span) fail(inner, "expected a span");
        if (!number || checked_.emplace(number->integer, field).second) check_field(*field, given);
        set_checked_field(*made, *field, given);
      });
    }
    at(j, [&] { complete(*made); });
    return made;
  }

  // An error of `step` says where in the text it was.
  template <class Step>
  void at(const Json& j, const Step& step) const {
    try {
      step();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Usage) throw;
      Error located = json_error(text_, kind_, source_, j.offset, e.message());
      for (const auto& r : e.rows()) located.row(r.label, r.text, r.note);
      throw located;
    }
  }

  Any strings(const Json& data, const std::vector<int64_t>& sizes) const {
    const auto count = element_count(sizes);
    if (data.kind != Json::Kind::Array || sizes.size() > kMaxRank || !count ||
        static_cast<uint64_t>(*count) != data.array.size()) {
      fail(data, cat("expected the strings of ", tensor_type_text(string_elements, sizes)));
    }
    StringTensorBuilder made(sizes);
    for (const Json& element : data.array) made.append(string(element));
    return Any(made.finish());
  }

  Any tensor(const Json& j, const Json& dtype_name) const {
    const Json *shape = j.find("shape"), *data = j.find("data");
    if (!shape || !data) fail(j, "a tensor needs its shape and data");
    std::vector<int64_t> sizes = dims(*shape);
    DataType type = dtype(dtype_name);
    if (type == string_elements) return strings(*data, sizes);
    std::string bytes;
    if (!bytes_of_base64(string(*data), bytes)) fail(*data, "expected base 64");
    auto wanted = byte_count(sizes, type);
    if (!wanted || static_cast<uint64_t>(*wanted) != bytes.size() || sizes.size() > kMaxRank) {
      fail(*data, cat("data of ", bytes.size(), " bytes for ", tensor_type_text(type, sizes)));
    }
    return Tensor::copy_of_bytes(sizes, type, bytes.data(), bytes.size());
  }

  std::string_view text_;
  ErrorKind kind_;
  std::string_view source_;
  int max_depth_;
  std::vector<Any> nodes_;
  std::vector<int> depths_;  // by node
  mutable int depth_ = 0;    // of those that the current node refers to
  // Nodes and the fields that were found to accept them. A node that many records share is checked
  // once for each field, since that takes time in proportion to its size.
  std::set<std::pair<int64_t, const Field*>> checked_;
  mutable Ticker ticker_;
};

}  // namespace

std::string to_json(const AnyView& value, int indent) {
  return Writer(indent).run(value);
}

Any from_json(std::string_view text, ErrorKind kind, std::string_view source, int max_depth) {
  return Reader(text, kind, source, max_depth).run();
}

}  // namespace tenon
