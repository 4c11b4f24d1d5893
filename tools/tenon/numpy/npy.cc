#include "tools/tenon/numpy/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>

#include "object/string_tensor.h"
#include "support/error.h"
#include "support/output_file.h"
#include "support/poll.h"
#include "tools/tenon/numpy/npy_strings.h"

namespace tenon::tool {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Name {
  std::string_view text;
  DataType dtype;
};
constexpr Name kNames[] = {{"b1", boolean}, {"i1", i8},  {"i2", i16}, {"i4", i32},  {"i8", i64},
                           {"u1", u8},      {"u2", u16}, {"u4", u32}, {"u8", u64},  {"f2", f16},
                           {"f4", f32},     {"f8", f64}, {"c8", c64}, {"c16", c128}};

// '<', or '|' for elements without a byte order.
char byte_order(DataType dtype) {
  return dtype.bytes() == 1 ? '|' : '<';
}

[[noreturn]] void damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::Damaged, cat(path, " is not a valid .npy file: ", why))
      .help("write it with numpy.save");
}

// The text after `key: ` in the header, which is a Python dictionary written by NumPy.
std::string_view value_of(const std::string& path, std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) damaged(path, cat("its header has no ", key));
  std::string_view rest = header.substr(at + key.size());
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) damaged(path, cat("its header has no value for ", key));
  rest.remove_prefix(colon + 1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

std::vector<int64_t> read_shape(const std::string& path, std::string_view text) {
  const size_t end = text.find(')');
  if (text.empty() || text.front() != '(' || end == std::string_view::npos) {
    damaged(path, "its shape is not a tuple");
  }
  std::vector<int64_t> shape;
  for (const char *at = text.data() + 1, *stop = text.data() + end; at < stop;) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t size = 0;
    auto [next, error] = std::from_chars(at, stop, size);
    if (error != std::errc() || size < 0) damaged(path, "its shape is not a tuple of sizes");
    shape.push_back(size);
    at = next;
  }
  if (shape.size() > static_cast<size_t>(kMaxRank)) damaged(path, "its rank is too large");
  return shape;
}

// A dtype of the header, such as '<f4' or '>i8' in quotes; nullopt for one that tensors don't have.
struct Elements {
  DataType dtype;
  bool big_endian;
};
std::optional<Elements> read_descr(std::string_view text) {
  if (text.size() < 5 || (text[0] != '\'' && text[0] != '"')) return std::nullopt;
  if (std::string_view("<>|=").find(text[1]) == std::string_view::npos) return std::nullopt;
  const std::string_view found = text.substr(2, text.find(text[0], 2) - 2);
  for (const Name& name : kNames) {
    if (found == name.text) {
      return Elements{name.dtype, text[1] == '>' && name.dtype.bytes() > 1};
    }
  }
  return std::nullopt;
}

void reverse_bytes(const Tensor& tensor) {
  const auto width = static_cast<size_t>(part_of(tensor.dtype()).bytes());
  Ticker ticker;
  char *at = tensor.data_as<char>(), *const end = at + tensor.bytes();
  for (; at < end; at += width) {
    ticker.tick();
    std::reverse(at, at + width);
  }
}

// The tensor whose elements `stored`, which isn't empty, has in Fortran order: the first axis
// varies fastest.
Tensor in_c_order(const Tensor& stored) {
  Tensor out = Tensor::empty(stored.shape(), stored.dtype());
  const auto width = static_cast<int64_t>(stored.dtype().bytes());
  const int32_t rank = stored.rank();
  std::vector<int64_t> strides, position(static_cast<size_t>(rank));  // in `stored`, in elements
  int64_t stride = 1;
  for (const int64_t size : stored.shape()) {
    strides.push_back(stride);
    stride *= size;
  }
  Ticker ticker;
  char* to = out.data_as<char>();
  int64_t from = 0;
  for (int64_t i = 0, n = stored.count(); i < n; ++i, to += width) {
    ticker.tick();
    std::memcpy(to, stored.data_as<char>() + from * width, static_cast<size_t>(width));
    for (int32_t axis = rank; axis-- > 0;) {
      const auto k = static_cast<size_t>(axis);
      from += strides[k];
      if (++position[k] < stored.dim(axis)) break;
      from -= strides[k] * position[k];
      position[k] = 0;
    }
  }
  return out;
}

// Strings that a file has in that order.
Tensor in_order(const Tensor& stored, bool fortran) {
  if (!fortran || stored.rank() < 2 || stored.count() == 0) return stored;
  Tensor places = Tensor::empty(stored.shape(), i64);
  std::iota(places.data_as<int64_t>(), places.data_as<int64_t>() + places.count(), int64_t{0});
  places = in_c_order(places);
  const Strings elements(stored);
  StringTensorBuilder made(stored.shape());
  for (int64_t i = 0; i < elements.size(); ++i) made.append(elements[places.data_as<int64_t>()[i]]);
  return made.finish();
}

}  // namespace

Tensor read_npy(ByteSource& in) {
  const std::string& path = in.name();
  char start[12] = {};
  constexpr size_t kShortest = 10;  // version 1, in which the header's length has 2 bytes, not 4
  const size_t begun = in.read(start, kShortest);
  if (begun == 0) damaged(path, "it is empty");
  if (begun < kShortest || !std::string_view(start, kShortest).starts_with(kMagic)) {
    damaged(path, "it has the wrong magic number");
  }
  const int version = start[kMagic.size()];
  const size_t fixed = version == 1 ? kShortest : sizeof start;
  in.read(start + kShortest, fixed - kShortest);
  size_t length = 0;
  for (size_t i = fixed; i-- > 8;) length = length << 8 | static_cast<unsigned char>(start[i]);
  constexpr size_t kLongestHeader = size_t{1} << 16;
  if (version < 1 || version > 3 || length > kLongestHeader) {
    damaged(path, "its version or the length of its header is unknown");
  }
  std::string header(length, '\0');
  if (in.read(header.data(), length) < length) damaged(path, "its header is truncated");

  const std::string_view order = value_of(path, header, "'fortran_order'");
  const bool fortran = order.starts_with("True");
  if (!fortran && !order.starts_with("False")) {
    damaged(path, "its fortran_order is neither True nor False");
  }
  const std::string_view descr = value_of(path, header, "'descr'");
  const std::optional<Elements> elements = read_descr(descr);
  const std::optional<StringForm> strings = elements ? std::nullopt : read_string_form(descr);
  if (!elements && !strings) {
    throw Error(ErrorKind::Usage,
                cat(path, ": dtype ", descr.substr(0, descr.find(',')), " is not supported"))
        .expected(
            "bool, integers of 8 to 64 bits, float16, float32, float64, complex64, complex128 or "
            "strings (U, S)");
  }
  const std::vector<int64_t> shape = read_shape(path, value_of(path, header, "'shape'"));
  size_t count = strings ? strings->bytes() : static_cast<size_t>(elements->dtype.bytes());
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(count, static_cast<size_t>(size), &count)) {
      damaged(path, "its shape is too large");
    }
  }
  const auto wrong_size = [&](const std::string& found) {
    damaged(path, cat("it has ", found, " bytes of data where its shape needs ", count));
  };
  if (in.size() && *in.size() != fixed + length + count) {
    wrong_size(cat(*in.size() - std::min(*in.size(), fixed + length)));
  }
  const auto size = static_cast<int64_t>(count);
  Tensor tensor = strings ? Tensor::empty({size}, u8) : Tensor::empty(shape, elements->dtype);
  const size_t found = in.read(tensor.data_as<char>(), count);
  if (found < count) wrong_size(cat(found));
  if (char more = 0; in.read(&more, 1) > 0) wrong_size(cat("more than ", count));
  if (strings)
    return in_order(strings_of_npy(path, *strings, {tensor.data_as<char>(), count}, shape),
                    fortran);
  if (elements->big_endian) reverse_bytes(tensor);
  return fortran && tensor.rank() > 1 && count > 0 ? in_c_order(tensor) : tensor;
}

NpyBytes::NpyBytes(const std::string& path, const Tensor& tensor) : tensor_(tensor) {
  std::string descr;
  if (is_string_tensor(tensor)) {
    StringForm form;
    strings_ = npy_strings(tensor, &form);
    descr = cat("<U", form.width);
  }
  for (const Name& name : kNames) {
    if (name.dtype == tensor.dtype()) descr = cat(byte_order(name.dtype), name.text);
  }
  if (descr.empty()) {
    throw Error(ErrorKind::Usage, cat(path, ": .npy has no dtype for ", to_text(tensor.dtype())));
  }
  std::string shape;
  for (int64_t size : tensor.shape()) shape += cat(size, ", ");
  std::string header =
      cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  header_ = kMagic;
  header_ += {'\x01', '\x00'};
  header_ += static_cast<char>(header.size() & 0xff);
  header_ += static_cast<char>(header.size() >> 8);
  header_ += header;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const NpyBytes bytes(path, tensor);
  OutputFile file(path);
  file.write(bytes.header());
  file.write(bytes.data());
  file.commit();
}

}  // namespace tenon::tool
