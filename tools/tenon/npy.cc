#include "tools/tenon/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "support/error.h"
#include "support/output_file.h"

namespace tenon::tool {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Name {
  std::string_view text;
  DataType dtype;
};
constexpr Name kNames[] = {{"|b1", boolean}, {"|i1", i8},  {"<i2", i16}, {"<i4", i32},
                           {"<i8", i64},     {"|u1", u8},  {"<u2", u16}, {"<u4", u32},
                           {"<u8", u64},     {"<f2", f16}, {"<f4", f32}, {"<f8", f64}};

[[noreturn]] void damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::Damaged, cat(path, " is not a valid .npy file: ", why))
      .help("write it with numpy.save, in C order");
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

}  // namespace

Tensor read_npy(InputStream& in) {
  const std::string& path = in.name();
  char start[12] = {};
  constexpr size_t kShortest = 10;  // version 1, in which the header's length has 2 bytes, not 4
  if (in.read(start, kShortest) < kShortest ||
      !std::string_view(start, kShortest).starts_with(kMagic)) {
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

  if (value_of(path, header, "'fortran_order'").starts_with("True")) {
    throw Error(ErrorKind::Usage, cat(path, " is in Fortran order"))
        .help("save numpy.ascontiguousarray(x) instead");
  }
  std::string_view descr = value_of(path, header, "'descr'");
  std::optional<DataType> dtype;
  for (const Name& name : kNames) {
    if (descr.size() > 5 && descr.substr(1, 3) == name.text) dtype = name.dtype;
  }
  if (!dtype) {
    throw Error(ErrorKind::Usage,
                cat(path, ": dtype ", descr.substr(0, descr.find(',')), " is not supported"))
        .expected("bool, integers of 8 to 64 bits, float16, float32 or float64, little-endian");
  }
  const std::vector<int64_t> shape = read_shape(path, value_of(path, header, "'shape'"));
  size_t count = static_cast<size_t>(dtype->bytes());
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
  Tensor tensor = Tensor::empty(shape, *dtype);
  const size_t found = in.read(tensor.data_as<char>(), count);
  if (found < count) wrong_size(cat(found));
  if (char more = 0; in.read(&more, 1) > 0) wrong_size(cat("more than ", count));
  return tensor;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string_view descr;
  for (const Name& name : kNames) {
    if (name.dtype == tensor.dtype()) descr = name.text;
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
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00'};
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  OutputFile file(path);
  file.write(bytes);
  file.write({static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  file.commit();
}

}  // namespace tenon::tool
