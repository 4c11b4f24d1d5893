// Mutants of protobuf messages that are still messages: fields are dropped, repeated, swapped or
// copied from elsewhere, and get other numbers, texts and values; sometimes a length is wrong. They
// reach code behind the parser, unlike most mutants of plain bytes. Without a schema, bytes that
// parse as a message count as one.
#pragma once

#include <optional>
#include <utility>

#include "mutate.h"

namespace tenon::fuzz {

// A field, or the root of a message (number 0).
struct WireField {
  enum Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Type type = kBytes;
  uint64_t value = 0;       // of kVarint and the fixed ones
  std::string bytes;        // of kBytes that is no message
  bool is_message = false;  // of kBytes: `fields` instead of `bytes`
  std::vector<WireField> fields;
  int64_t lie = 0;  // added to the length that is written
};

class WireReader {
 public:
  // The fields of `bytes`, with inner messages up to a depth of 64; nullopt if it is not a message.
  static std::optional<std::vector<WireField>> read(std::string_view bytes, int depth = 0) {
    WireReader r{bytes};
    std::vector<WireField> out;
    while (!r.rest_.empty()) {
      uint64_t key = 0, length = 0;
      if (!r.varint(&key) || key >> 3 == 0 || key >> 3 > kLargestNumber) return std::nullopt;
      WireField f;
      f.number = static_cast<uint32_t>(key >> 3);
      f.type = static_cast<WireField::Type>(key & 7);
      switch (f.type) {
        case WireField::kVarint:
          if (!r.varint(&f.value)) return std::nullopt;
          break;
        case WireField::kFixed64:
        case WireField::kFixed32:
          if (!r.fixed(f.type == WireField::kFixed64 ? 8 : 4, &f.value)) return std::nullopt;
          break;
        case WireField::kBytes:
          if (!r.varint(&length) || length > r.rest_.size()) return std::nullopt;
          f.bytes = r.rest_.substr(0, length);
          r.rest_.remove_prefix(length);
          if (!f.bytes.empty() && depth < 64) {
            if (auto inner = read(f.bytes, depth + 1)) {
              f.is_message = true;
              f.fields = std::move(*inner);
              f.bytes.clear();
            }
          }
          break;
        default:
          return std::nullopt;
      }
      out.push_back(std::move(f));
    }
    return out;
  }

 private:
  static constexpr uint64_t kLargestNumber = 40;  // ONNX's fields have numbers up to 26

  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      *out |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool fixed(size_t size, uint64_t* out) {
    if (rest_.size() < size) return false;
    std::memcpy(out, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

inline void write_varint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

inline std::string write_message(const std::vector<WireField>& fields) {
  std::string out;
  for (const WireField& f : fields) {
    write_varint(uint64_t{f.number} << 3 | f.type, &out);
    if (f.type == WireField::kVarint) {
      write_varint(f.value, &out);
    } else if (f.type == WireField::kBytes) {
      const std::string inner = f.is_message ? write_message(f.fields) : f.bytes;
      write_varint(inner.size() + static_cast<uint64_t>(f.lie), &out);
      out += inner;
    } else {
      out.append(reinterpret_cast<const char*>(&f.value), f.type == WireField::kFixed64 ? 8 : 4);
    }
  }
  return out;
}

class WireMutator {
 public:
  explicit WireMutator(Mutator& mutator) : m_(mutator) {}

  // A mutant of the message, sometimes with parts of `other`.
  std::string mutant(const std::vector<WireField>& message, const std::vector<WireField>& other) {
    WireField root;
    root.is_message = true;
    root.fields = message;
    for (uint64_t changes = 1 + m_.below(3); changes > 0; --changes) change(root, other);
    return write_message(root.fields);
  }

 private:
  struct Place {
    WireField* parent;
    size_t index;
    WireField& field() const { return parent->fields[index]; }
  };

  static void collect(WireField& message, std::vector<Place>* out) {
    for (size_t i = 0; i < message.fields.size(); ++i) {
      out->push_back({&message, i});
      if (message.fields[i].is_message) collect(message.fields[i], out);
    }
  }

  static void collect(const std::vector<WireField>& fields, std::vector<const WireField*>* out) {
    for (const WireField& f : fields) {
      out->push_back(&f);
      if (f.is_message) collect(f.fields, out);
    }
  }

  void change(WireField& root, const std::vector<WireField>& other) {
    std::vector<Place> places;
    collect(root, &places);
    if (places.empty()) return;
    const Place at = places[m_.below(places.size())];
    std::vector<WireField>& siblings = at.parent->fields;
    switch (m_.below(12)) {
      case 0:
        siblings.erase(siblings.begin() + static_cast<std::ptrdiff_t>(at.index));
        break;
      case 1: {
        WireField copy = at.field();
        siblings.insert(siblings.begin() + static_cast<std::ptrdiff_t>(at.index), std::move(copy));
        break;
      }
      case 2:
        std::swap(at.field(), siblings[m_.below(siblings.size())]);
        break;
      case 3:
        replace(at, root.fields);
        break;
      case 4:
        replace(at, other);
        break;
      case 5:
        if (m_.below(4) == 0) {
          at.field().number = 1 + static_cast<uint32_t>(m_.below(26));
        } else if (m_.below(8) == 0) {
          at.field().lie = static_cast<int64_t>(m_.below(2) ? m_.below(9) : m_.below(1000)) - 4;
        }
        break;
      case 6: {  // nested in a copy of itself
        WireField copy = at.field();
        if (copy.is_message) at.field().fields.push_back(std::move(copy));
        break;
      }
      default:
        change_value(at.field(), places, other);
        break;
    }
  }

  // Replaces a field by one of `from` with the same number and type.
  void replace(const Place& at, const std::vector<WireField>& from) {
    std::vector<const WireField*> all, like;
    collect(from, &all);
    const WireField& old = at.field();
    for (const WireField* f : all) {
      if (f->number == old.number && f->type == old.type && f->is_message == old.is_message) {
        like.push_back(f);
      }
    }
    if (like.empty()) return;
    WireField copy = *like[m_.below(like.size())];
    at.field() = std::move(copy);
  }

  void change_value(WireField& f, const std::vector<Place>& places,
                    const std::vector<WireField>& other) {
    if (f.is_message) {
      if (!f.fields.empty()) change_value(f.fields[m_.below(f.fields.size())], places, other);
      return;
    }
    if (f.type != WireField::kBytes) {
      f.value = changed_number(f.value);
      return;
    }
    switch (m_.below(6)) {
      case 0:
      case 1: {  // another text of this message, to exchange operands and names
        const WireField& from = places[m_.below(places.size())].field();
        if (!from.is_message && from.type == WireField::kBytes) f.bytes = std::string(from.bytes);
        break;
      }
      case 2: {
        std::vector<const WireField*> all;
        collect(other, &all);
        if (all.empty()) break;
        const WireField* from = all[m_.below(all.size())];
        if (!from->is_message && from->type == WireField::kBytes) f.bytes = from->bytes;
        break;
      }
      case 3:  // a word of packed data, or of raw elements
        if (f.bytes.size() >= 4) {
          const size_t size = f.bytes.size() >= 8 && m_.below(2) ? 8 : 4;
          const size_t at = m_.below(f.bytes.size() / size) * size;
          uint64_t v = 0;
          std::memcpy(&v, f.bytes.data() + at, size);
          v = changed_number(v);
          std::memcpy(f.bytes.data() + at, &v, size);
          break;
        }
        [[fallthrough]];
      default:
        f.bytes = f.bytes.empty() ? std::string(m_.below(5), 'x') : m_.mutant(f.bytes, f.bytes);
        break;
    }
  }

  uint64_t changed_number(uint64_t v) {
    static constexpr uint64_t kHurting[] = {0,
                                            1,
                                            2,
                                            3,
                                            16,
                                            17,
                                            255,
                                            256,
                                            0xffff,
                                            1 << 20,
                                            0x7f800000 /* inf */,
                                            0x7fc00000 /* nan */,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            uint64_t{1} << 33,
                                            uint64_t{1} << 40,
                                            uint64_t{1} << 62,
                                            0x7fffffffffffffff,
                                            uint64_t{1} << 63,
                                            ~uint64_t{0},
                                            ~uint64_t{1}};
    switch (m_.below(5)) {
      case 0:
        return kHurting[m_.below(std::size(kHurting))];
      case 1:
        return v + m_.below(5) - 2;
      case 2:
        return m_.below(30);
      case 3:
        return ~v + m_.below(3);  // negated, or nearly
      default:
        return v ^ uint64_t { 1 } << m_.below(64);
    }
  }

  Mutator& m_;
};

}  // namespace tenon::fuzz
