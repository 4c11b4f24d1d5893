#include "object/walk.h"

#include <algorithm>
#include <cstring>

#include "object/cell.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/sort_numbers.h"

namespace tenon::detail {

uint64_t hash_text(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  return h;
}

ValueClass class_of(const AnyView& v) {
  if (!v.is_object()) return ValueClass::Plain;
  switch (v.type_index) {
    case TypeIndex::Str:
    case TypeIndex::Bytes:
    case TypeIndex::Shape:
    case TypeIndex::Tensor:
      return ValueClass::Plain;
    case TypeIndex::Array:
      return ValueClass::Array;
    case TypeIndex::Map:
      return ValueClass::Map;
    case TypeIndex::Cell:
      return ValueClass::Cell;
    default:
      return find_type(v.type_index) ? ValueClass::Record : ValueClass::Identity;
  }
}

namespace {

bool is_text(const AnyView& a) {
  return String::accepts(a) || Bytes::accepts(a);
}

// Orders keys that are strings, bytes or numbers.
bool key_less(const MapEntry* a, const MapEntry* b) {
  auto rank = [](const Any& k) {
    return String::accepts(k) ? 1000 : Bytes::accepts(k) ? 1001 : k.type_index;
  };
  if (rank(a->key) != rank(b->key)) return rank(a->key) < rank(b->key);
  if (is_text(a->key)) return text_of(a->key) < text_of(b->key);
  return a->key.v.i < b->key.v.i;
}

bool same_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool tensor_equal(const Tensor& a, const Tensor& b) {
  if (a.same_as(b)) return true;
  if (a.dtype() != b.dtype() || !same_shape(a.shape(), b.shape())) return false;
  if (a.device().device_type != kDLCPU || b.device().device_type != kDLCPU) return false;
  Tensor x = a.compacted(), y = b.compacted();
  const size_t bytes = content_bytes(x);
  if (bytes != content_bytes(y)) return false;
  return bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0;
}

uint64_t tensor_hash(const Tensor& t) {
  uint64_t h = combine(TypeIndex::Tensor, t.dtype().word());
  for (int64_t d : t.shape()) h = combine(h, static_cast<uint64_t>(d));
  if (t.device().device_type != kDLCPU) return h;
  // A sample suffices to tell constants apart; hashing must not read all of a model's weights.
  constexpr size_t kSample = 4096;
  Tensor c = t.compacted();
  const char* data = static_cast<const char*>(c.data());
  const size_t bytes = content_bytes(c);
  if (bytes == 0) return h;
  h = combine(h, hash_text({data, std::min(bytes, kSample)}));
  if (bytes > kSample) h = combine(h, hash_text({data + bytes - kSample, kSample}));
  return h;
}

void append_fields(const Object& o, const TypeInfo& type, uint8_t skip, std::vector<Child>& out) {
  if (type.parent)
    append_fields(o, *type.parent, skip, out);  // recurses only as deep as the inheritance
  for (const Field& f : type.fields) {
    const bool is_compared = skip & kIgnored;
    if (!(f.flags & skip)) out.push_back({&f, get_field(o, f, !is_compared)});
  }
}

}  // namespace

std::vector<const MapEntry*> canonical_entries(const MapObj& map, bool& sorted) {
  std::vector<int64_t> order;
  sorted = true;
  for (const auto& e : map.entries) {
    order.push_back(static_cast<int64_t>(order.size()));
    sorted = sorted && (is_text(e.key) || !e.key.is_object());
  }
  const auto entry = [&](int64_t i) { return &map.entries[static_cast<size_t>(i)]; };
  if (sorted) {
    tenon::sort_numbers(order, [&](int64_t a, int64_t b) { return key_less(entry(a), entry(b)); });
  }
  std::vector<const MapEntry*> out;
  out.reserve(order.size());
  for (const int64_t i : order) out.push_back(entry(i));
  return out;
}

void append_children(const AnyView& value, uint8_t skip, std::vector<Child>& out, size_t elements) {
  switch (class_of(value)) {
    case ValueClass::Array: {
      const auto& array = *static_cast<const ArrayObj*>(value.v.object);
      elements = std::min(elements, static_cast<size_t>(array.size));
      for (size_t i = 0; i < elements; ++i) out.push_back({nullptr, array.begin()[i]});
      return;
    }
    case ValueClass::Map: {
      bool sorted;
      for (const MapEntry* e :
           canonical_entries(*static_cast<const MapObj*>(value.v.object), sorted)) {
        out.push_back({nullptr, e->key});
        out.push_back({nullptr, e->value});
      }
      return;
    }
    case ValueClass::Cell: {
      const auto& cell = *static_cast<const CellObj*>(value.v.object);
      out.push_back({nullptr, Any(cell.tag)});
      for (const Any& field : cell) out.push_back({nullptr, field});
      return;
    }
    case ValueClass::Record:
      append_fields(*value.v.object, *find_type(value.type_index), skip, out);
      return;
    default:
      return;
  }
}

bool plain_equal(const AnyView& a, const AnyView& b) {
  if (is_text(a) || is_text(b)) return a.same(b);
  if (a.type_index != b.type_index) return false;
  if (a.type_index == TypeIndex::Shape) return payload_as<Shape>(a) == payload_as<Shape>(b);
  if (a.type_index == TypeIndex::Tensor) {
    return tensor_equal(payload_as<Tensor>(a), payload_as<Tensor>(b));
  }
  return a.v.bits == b.v.bits;
}

uint64_t plain_hash(const AnyView& a) {
  if (is_text(a)) return mix(hash_text(text_of(a)) + (Bytes::accepts(a) ? 1 : 0));
  if (a.type_index == TypeIndex::Shape) {
    uint64_t h = TypeIndex::Shape;
    for (int64_t d : payload_as<Shape>(a)) h = combine(h, static_cast<uint64_t>(d));
    return h;
  }
  if (a.type_index == TypeIndex::Tensor) return tensor_hash(payload_as<Tensor>(a));
  return combine(static_cast<uint64_t>(a.type_index), a.v.bits);
}

}  // namespace tenon::detail
