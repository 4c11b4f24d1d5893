#include "import/onnx/proto_tensor.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "graph/ir/referenced_file.h"
#include "import/onnx/mapped_file.h"
#include "object/counted_bytes.h"
#include "object/packed_elements.h"
#include "object/string_tensor.h"
#include "support/bulk.h"

namespace tenon::onnx {

static_assert(std::endian::native == std::endian::little, "ONNX's raw data is little-endian");

const Ref<StorageObj>& ExternalFiles::open(const std::string& location, const std::string& tensor) {
  std::string path =
      graph::referenced_file(directory_, location, cat("external data of '", tensor, "'"), "model");
  auto found = files_.find(path);
  if (found == files_.end()) {
    found = files_.emplace(path, map_file(path)).first;
  }
  return found->second;
}

namespace {

// Storage that owns a C++ container of elements.
template <class C>
Ref<StorageObj> own(C&& container, size_t bytes) {
  struct Held {
    CountedBytes counted;
    std::remove_cvref_t<C> container;
  };
  auto storage = make<StorageObj>();
  auto* held = new Held{CountedBytes(bytes), std::move(container)};
  storage->context = held;
  storage->free = [](StorageObj* self) { delete static_cast<Held*>(self->context); };
  storage->data = const_cast<void*>(static_cast<const void*>(held->container.data()));
  storage->size = bytes;
  storage->flags = StorageObj::kIsReadOnly;
  return storage;
}

class Taker {
 public:
  Taker(schema::TensorProto& proto, const std::string& what, ExternalFiles* external)
      : proto_(proto), what_(what), external_(external) {}

  TensorData take() {
    TensorData out;
    out.name = proto_.name();
    out.type = proto_.data_type();
    out.dims.assign(proto_.dims().begin(), proto_.dims().end());
    if (out.dims.size() > static_cast<size_t>(kMaxRank)) {
      throw damaged().found(cat("rank ", out.dims.size())).expected(cat("at most ", kMaxRank));
    }
    count_ = 1;
    bool zero = false;
    for (int64_t d : out.dims) {
      if (d < 0) throw damaged().found(cat("size ", d)).expected("sizes of 0 or more");
      zero = zero || d == 0;
    }
    for (int64_t d : out.dims) {
      if (!zero && __builtin_mul_overflow(count_, d, &count_)) {
        throw damaged().found("more elements than 64 bits can count").expected(kFewElements);
      }
    }
    if (zero) count_ = 0;
    if (proto_.has_segment()) {
      out.problem = "a tensor in segments is not implemented";
      return out;
    }
    std::optional<DataType> dtype = dtype_of(out.type);
    if (!dtype) {
      out.problem = cat(data_type_name(out.type), " is not implemented");
      return out;
    }
    dtype_ = *dtype;
    if (dtype_ == string_elements) {
      out.tensor = strings(out.dims);
      return out;
    }
    if (__builtin_mul_overflow(count_, dtype_.bytes(), &bytes_)) {
      throw damaged().found("more bytes than 64 bits can count").expected(kFewElements);
    }
    if (is_packed()) bytes_ = packed_bytes(dtype_, count_);
    out.tensor = elements(out.dims);
    return out;
  }

 private:
  static constexpr const char* kFewElements = "sizes that fit memory";

  bool is_packed() const { return dtype_.bits < 8; }

  Error damaged() const {
    return Error(ErrorKind::Damaged, cat("tensor '", printable(what_), "' is damaged"));
  }

  Error wrong_count(const char* where, uint64_t found, const char* unit, int64_t expected) const {
    return damaged()
        .where(where)
        .found(cat(found, " ", unit))
        .expected(cat(expected, " ", unit), cat("for ", count_, " elements of ", to_text(dtype_)));
  }

  Tensor strings(const std::vector<int64_t>& dims) {
    const auto& field = proto_.string_data();
    if (proto_.data_location() == schema::TensorProto::EXTERNAL || proto_.has_raw_data())
      throw damaged().found("strings outside string_data").expected("them in string_data");
    if (field.size() != count_)
      throw wrong_count("string_data", static_cast<uint64_t>(field.size()), "elements", count_);
    StringTensorBuilder made(dims);
    Ticker ticker;
    int64_t i = 0;
    for (const std::string& s : field) {
      ticker.tick(s.size());
      require_utf8(s, i++, cat("tensor '", printable(what_), "'"));
      made.append(s);
    }
    return made.finish();
  }

  Tensor elements(const std::vector<int64_t>& dims) {
    if (proto_.data_location() == schema::TensorProto::EXTERNAL) {
      return over(external_elements(), dims);
    }
    if (proto_.has_raw_data()) {
      std::string raw = std::move(*proto_.mutable_raw_data());
      if (raw.size() != static_cast<uint64_t>(bytes_)) {
        throw wrong_count("raw_data", raw.size(), "bytes", bytes_);
      }
      size_t size = raw.size();
      return over({own(std::move(raw), size), 0}, dims);
    }
    if (is_packed()) return packed_numbers(dims);
    if (dtype_.bytes() == 1) {
      return dtype_.is_bool() ? narrowed<bool>(proto_.int32_data(), "int32_data", dims)
                              : narrowed<uint8_t>(proto_.int32_data(), "int32_data", dims);
    }
    switch (proto_.data_type()) {
      case schema::TensorProto::FLOAT:
      case schema::TensorProto::COMPLEX64:
        return whole(*proto_.mutable_float_data(), "float_data", dims);
      case schema::TensorProto::DOUBLE:
      case schema::TensorProto::COMPLEX128:
        return whole(*proto_.mutable_double_data(), "double_data", dims);
      case schema::TensorProto::INT64:
        return whole(*proto_.mutable_int64_data(), "int64_data", dims);
      case schema::TensorProto::INT32:
        return whole(*proto_.mutable_int32_data(), "int32_data", dims);
      case schema::TensorProto::UINT64:
        return whole(*proto_.mutable_uint64_data(), "uint64_data", dims);
      case schema::TensorProto::UINT32:
        return narrowed<uint32_t>(proto_.uint64_data(), "uint64_data", dims);
      default:  // 16 bits
        return narrowed<uint16_t>(proto_.int32_data(), "int32_data", dims);
    }
  }

  // Takes over the memory of a field whose elements, or pairs of them, have the tensor's layout.
  template <class F>
  Tensor whole(F& field, const char* name, const std::vector<int64_t>& dims) {
    const int64_t wanted = bytes_ / static_cast<int64_t>(sizeof(typename F::value_type));
    if (field.size() != wanted)
      throw wrong_count(name, static_cast<uint64_t>(field.size()), "elements", wanted);
    F taken;
    taken.Swap(&field);
    return over({own(std::move(taken), static_cast<size_t>(bytes_)), 0}, dims);
  }

  template <class T, class F>
  Tensor narrowed(const F& field, const char* name, const std::vector<int64_t>& dims) {
    if (field.size() != count_) throw wrong_count(name, field.size(), "elements", count_);
    Tensor out = Tensor::empty(dims, dtype_);
    T* to = out.data_as<T>();
    Ticker ticker;
    for (auto v : field) {
      ticker.tick();
      *to++ = static_cast<T>(v);
    }
    return out.as_read_only();
  }

  // Each number of int32_data is a byte of them.
  Tensor packed_numbers(const std::vector<int64_t>& dims) {
    const auto& field = proto_.int32_data();
    if (field.size() != bytes_) throw wrong_count("int32_data", field.size(), "elements", bytes_);
    return unpack_elements(std::vector<uint8_t>(field.begin(), field.end()), dims, dtype_)
        .as_read_only();
  }

  struct Place {
    Ref<StorageObj> storage;
    uint64_t offset = 0;
  };

  uint64_t number(const std::string& key, const std::string& text) const {
    uint64_t v = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (ec != std::errc() || end != text.data() + text.size()) {
      throw damaged()
          .where("external_data")
          .found(cat(key, " ", tenon::quoted(text)))
          .expected("a number");
    }
    return v;
  }

  Place external_elements() {
    std::string location;
    uint64_t offset = 0;
    std::optional<uint64_t> length;
    for (const auto& entry : proto_.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = number(entry.key(), entry.value());
      if (entry.key() == "length") length = number(entry.key(), entry.value());
    }
    if (external_ == nullptr) {
      throw Error(ErrorKind::Usage, cat("tensor '", printable(what_), "' has external data"))
          .found(cat("location ", tenon::quoted(location)))
          .expected("its elements in the tensor itself")
          .help("open the model by its path: the data is searched beside it");
    }
    const Ref<StorageObj>& file = external_->open(location, what_);
    uint64_t bytes = static_cast<uint64_t>(bytes_);
    if (length && *length != bytes)
      throw wrong_count("external_data, length", *length, "bytes", bytes_);
    if (offset > file->size || bytes > file->size - offset) {
      throw damaged()
          .where(cat("external data ", tenon::quoted(location)))
          .found(cat(file->size, " bytes"))
          .expected(cat("at least ", offset, " + ", bytes, " bytes"));
    }
    return {file, offset};
  }

  // A view of the elements, or a copy if kernels can't take them as they are: if they are packed or
  // misaligned or a boolean is neither 0 nor 1.
  Tensor over(const Place& place, const std::vector<int64_t>& dims) {
    const auto* data = static_cast<const uint8_t*>(place.storage->data) + place.offset;
    if (is_packed())
      return unpack_elements({data, static_cast<size_t>(bytes_)}, dims, dtype_).as_read_only();
    size_t size = static_cast<size_t>(bytes_);
    bool loose = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype_.bytes()) != 0;
    bool wild = false;
    if (dtype_.is_bool()) {
      in_parts(size, [&](size_t at, size_t n) {
        wild = wild || std::any_of(data + at, data + at + n, [](uint8_t b) { return b > 1; });
      });
    }
    if (count_ > 0 && !loose && !wild) {
      return Tensor::over(place.storage, place.offset, dtype_, dims);
    }
    Tensor out = Tensor::empty(dims, dtype_);
    auto* to = out.data_as<uint8_t>();
    in_parts(size, [&](size_t at, size_t n) {
      if (wild) {
        std::transform(data + at, data + at + n, to + at, [](uint8_t b) { return b != 0; });
      } else {
        std::memcpy(to + at, data + at, n);
      }
    });
    return out.as_read_only();
  }

  schema::TensorProto& proto_;
  const std::string& what_;
  ExternalFiles* external_;
  DataType dtype_;
  int64_t count_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

TensorData take_tensor(schema::TensorProto& proto, const std::string& what,
                       ExternalFiles* external) {
  return Taker(proto, what, external).take();
}

}  // namespace tenon::onnx
