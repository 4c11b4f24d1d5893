#include "object/field.h"

#include <cstring>

#include "support/failures.h"

namespace tenon {

namespace {

template <class T>
const T& at(const Object& o, const Field& f) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&o) + f.offset);
}
template <class T>
T& at(Object& o, const Field& f) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(&o) + f.offset);
}

Any span_value(const Span& s) {
  if (s.empty()) return Any();
  Map<String, Any> m;
  if (!s.file.empty()) m.set("file", Any(s.file));
  if (s.line) m.set("line", s.line);
  if (s.column) m.set("column", s.column);
  if (!s.nodes.empty()) m.set("nodes", Array<String>(s.nodes.begin(), s.nodes.end()));
  return m;
}

[[noreturn]] void fail_field(const Field& f, const std::string& expected, const AnyView& found) {
  throw_misuse(cat("field ", f.name, " can't hold this value"), repr(found, 200), expected);
}

template <class T>
T value_for(const Field& f, const AnyView& value) {
  if (!value.is<T>()) fail_field(f, AnyTraits<T>::name(), value);
  return value.as<T>();
}

Span span_of(const Field& f, const AnyView& value) {
  Span s;
  if (value.is_none()) return s;
  auto m = value_for<Map<String, Any>>(f, value);
  for (const auto& [key, v] : m) {
    if (key == "file") {
      s.file = value_for<String>(f, v).str();
    } else if (key == "line") {
      s.line = value_for<int32_t>(f, v);
    } else if (key == "column") {
      s.column = value_for<int32_t>(f, v);
    } else if (key == "nodes") {
      for (const String& n : value_for<Array<String>>(f, v)) s.nodes.push_back(n.str());
    } else {
      fail_field(f, "a span's file, line, column, nodes", value);
    }
  }
  return s;
}

int64_t enumeration_value(const Field& f, const AnyView& value) {
  if (value.is<String>()) {
    String name = value.as<String>();
    for (size_t i = 0; i < f.names.size(); ++i) {
      if (name == f.names[i]) return static_cast<int64_t>(i);
    }
  } else if (value.type_index == TypeIndex::Int && value.v.i >= 0 &&
             static_cast<uint64_t>(value.v.i) < f.names.size()) {
    return value.v.i;
  }
  std::vector<std::string> names(f.names.begin(), f.names.end());
  fail_field(f, join(names, ", "), value);
}

}  // namespace

Any get_field(const Object& o, const Field& f, bool names) {
  const auto number = [&](int64_t v) -> Any {
    const bool has_name = names && v >= 0 && static_cast<uint64_t>(v) < f.names.size();
    return has_name ? Any(String(f.names[static_cast<size_t>(v)])) : Any(v);
  };
  switch (f.kind) {
    case FieldKind::Bool:
      return at<bool>(o, f);
    case FieldKind::UInt8:
      return number(at<uint8_t>(o, f));
    case FieldKind::Int32:
      return number(at<int32_t>(o, f));
    case FieldKind::Int64:
      return number(at<int64_t>(o, f));
    case FieldKind::Double:
      return at<double>(o, f);
    case FieldKind::DataType:
      return at<DataType>(o, f);
    case FieldKind::Device:
      return at<DLDevice>(o, f);
    case FieldKind::Any:
      return at<Any>(o, f);
    case FieldKind::Object:
      return Any(AnyView::of_object(at<Ref<Object>>(o, f).get()));
    case FieldKind::Array:
      return at<Array<Any>>(o, f);
    case FieldKind::Map:
      return at<Map<Any, Any>>(o, f);
    case FieldKind::Shape:
      return at<Shape>(o, f);
    case FieldKind::Span:
      return span_value(at<Span>(o, f));
    case FieldKind::StdString:
      return Any(at<std::string>(o, f));
  }
  return Any();
}

namespace {

// Whether an array or map contains a None that the field must not hold. Arrays and maps of Any may
// contain it, as fields of type Any may.
bool holds_stray_none(const Field& f, const AnyView& value) {
  if (f.flags & (kOptional | kHidden) || value.is_none()) return false;
  if (f.kind != FieldKind::Array && f.kind != FieldKind::Map) return false;
  if (f.type_text().ends_with(" any")) return false;
  if (f.kind == FieldKind::Array) {
    for (const Any& element : value.as<Array<Any>>()) {
      if (element.is_none()) return true;
    }
  } else {
    for (const auto& [key, element] : value.as<Map<Any, Any>>()) {
      if (element.is_none()) return true;
    }
  }
  return false;
}

}  // namespace

void check_field(const Field& f, const AnyView& value) {
  if (!f.accepts) return;
  if (!f.accepts(value) || holds_stray_none(f, value)) fail_field(f, f.type_text(), value);
}

void set_field(Object& o, const Field& f, const AnyView& value) {
  check_field(f, value);
  set_checked_field(o, f, value);
}

void set_checked_field(Object& o, const Field& f, const AnyView& value) {
  if (!f.names.empty()) {
    int64_t v = enumeration_value(f, value);
    switch (f.kind) {
      case FieldKind::UInt8:
        at<uint8_t>(o, f) = static_cast<uint8_t>(v);
        return;
      case FieldKind::Int32:
        at<int32_t>(o, f) = static_cast<int32_t>(v);
        return;
      default:
        at<int64_t>(o, f) = v;
        return;
    }
  }
  switch (f.kind) {
    case FieldKind::Bool:
      at<bool>(o, f) = value_for<bool>(f, value);
      return;
    case FieldKind::UInt8:
      at<uint8_t>(o, f) = value_for<uint8_t>(f, value);
      return;
    case FieldKind::Int32:
      at<int32_t>(o, f) = value_for<int32_t>(f, value);
      return;
    case FieldKind::Int64:
      at<int64_t>(o, f) = value_for<int64_t>(f, value);
      return;
    case FieldKind::Double:
      at<double>(o, f) = value_for<double>(f, value);
      return;
    case FieldKind::DataType:
      at<DataType>(o, f) = value_for<DataType>(f, value);
      return;
    case FieldKind::Device:
      at<DLDevice>(o, f) = value_for<DLDevice>(f, value);
      return;
    case FieldKind::Any:
      at<Any>(o, f) = Any(value);
      return;
    case FieldKind::Object:
    case FieldKind::Array:
    case FieldKind::Map:
    case FieldKind::Shape:
      at<Ref<Object>>(o, f) = Ref<Object>(value.object());
      return;
    case FieldKind::Span:
      at<Span>(o, f) = span_of(f, value);
      return;
    case FieldKind::StdString:
      at<std::string>(o, f) = value_for<String>(f, value).str();
      return;
  }
}

void complete(Object& object) {
  const TypeInfo* type = find_type(object.type_index);
  if (!type) return;
  for (const Field* field : all_fields(*type)) {
    if (field->kind != FieldKind::Object || field->flags & (kOptional | kHidden)) continue;
    if (at<Ref<Object>>(object, *field)) continue;
    throw Error(ErrorKind::Usage,
                cat(type->type_key, " lacks an object in its field ", field->name));
  }
  for (; type; type = type->parent) {
    if (type->complete) type->complete(object);
  }
}

}  // namespace tenon
