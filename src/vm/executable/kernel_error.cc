#include "vm/executable/kernel_error.h"

#include "object/any.h"
#include "object/device_name.h"
#include "object/dtype.h"
#include "support/failures.h"

namespace tenon::vm {
namespace {

// The columns of kernel_errors.def. A switch instead of an array: that would be relocated at load.
struct Texts {
  ErrorKind kind;
  std::string_view message, found, expected;
};
Texts texts_of(KernelError code) {
  switch (code) {
#define TENON_KERNEL_ERROR(number, identifier, kind, message, found, expected) \
  case KernelError::identifier:                                                \
    return {ErrorKind::kind, message, found, expected};
#include "vm/executable/kernel_errors.def"
  }
  return {ErrorKind::Runtime, {}, {}, {}};
}

constexpr bool has_only_known_letters(std::string_view text) {
  for (size_t at = 0; (at = text.find('%', at)) != text.npos; ++at) {
    if (std::string_view("axnNdDvVtRS").find(text.substr(at + 1, 1)) == text.npos) return false;
  }
  return true;
}
#define TENON_KERNEL_ERROR(number, identifier, kind, message, found, expected) \
  static_assert(has_only_known_letters(message "," found "," expected));
#include "vm/executable/kernel_errors.def"

std::string device_text(int64_t word) {
  return to_text(
      DLDevice{static_cast<DLDeviceType>(word & 0xffffffff), static_cast<int32_t>(word >> 32)});
}

struct Values {
  int32_t argument, axis;
  int64_t found, expected;

  std::string of(char letter) const {
    switch (letter) {
      case 'a':
        return argument < 0 ? "scratch" : cat("argument ", argument);
      case 'x':
        return cat(axis);
      case 'n':
        return cat(found);
      case 'N':
        return cat(expected);
      case 'd':
        return to_text(DataType::from_word(static_cast<uint32_t>(found)));
      case 'D':
        return to_text(DataType::from_word(static_cast<uint32_t>(expected)));
      case 'v':
        return device_text(found);
      case 'V':
        return device_text(expected);
      case 't':
        return type_name(static_cast<int32_t>(found));
      default:  // R and S
        if (expected <= 0) return "none: there are no elements";
        return cat("from ", letter == 'S' ? -expected : 0, " to ", expected - 1);
    }
  }

  std::string filled(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[' && axis < 0) i = text.find(']', i);
      if (text[i] == '%') {
        out += of(text[++i]);
      } else if (text[i] != '[' && text[i] != ']') {
        out += text[i];
      }
    }
    return out;
  }
};

}  // namespace

Error kernel_error(const char* kernel, KernelError code, int32_t argument, int32_t axis,
                   int64_t found, int64_t expected) {
  const Values values{argument, axis, found, expected};
  const Texts texts = texts_of(code);
  const std::string message = texts.message.empty()
                                  ? cat("stopped with code ", static_cast<int32_t>(code))
                                  : values.filled(texts.message);
  Error error(texts.kind, cat("kernel '", kernel, "': ", message));
  if (texts.kind == ErrorKind::Internal) {
    error.help("this is a bug in Tenon; please report it with the program that shows it");
  }
  if (!texts.found.empty()) error.found(values.filled(texts.found));
  if (!texts.expected.empty()) error.expected(values.filled(texts.expected));
  return error;
}

Error abi_error(std::string_view name, const char* what, uint32_t found, uint32_t expected) {
  return failure(ErrorKind::Unsupported, cat(name, " has ", what), cat("version ", found),
                 cat("version ", expected))
      .help("compile it again with this version");
}

}  // namespace tenon::vm
