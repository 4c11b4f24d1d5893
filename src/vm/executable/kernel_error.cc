#include "vm/executable/kernel_error.h"

#include <algorithm>

#include "object/any.h"
#include "object/device_name.h"
#include "object/dtype.h"

namespace tenon::vm {
namespace {

// "message|found|expected", where %a is the argument, or "scratch" if there is none; %x the axis;
// and of the values found (lower case) and expected (upper case), %n and %N are the number, %d and
// %D the dtype, %v and %V the device. %t is the type whose index was found. %R is the range of
// indices below the expected size, %S the same with negative ones. Brackets enclose what is left
// out if there is no axis.
struct Texts {
  KernelError code;
  const char* texts;
};
constexpr Texts kTexts[] = {
    {KernelError::ArgumentCount, "wrong number of arguments|%n|%N"},
    {KernelError::NotATensor, "%a is not a tensor|%t"},
    {KernelError::NotAnInteger, "%a is not an integer|%t"},
    {KernelError::Dtype, "%a has the wrong dtype|%d|%D"},
    {KernelError::Rank, "%a has the wrong rank|%n|%N"},
    {KernelError::Dimension, "%a, axis %x has the wrong size|%n|%N"},
    {KernelError::Device, "%a is on the wrong device|%v|%V"},
    {KernelError::NotCompact, "%a, axis %x is not compact|stride %n|stride %N"},
    {KernelError::Alignment, "%a is not aligned|%n bytes past a multiple of %N"},
    {KernelError::NotWritable, "%a is written but read-only"},
    {KernelError::Overlap, "%a is written but shares memory with argument %n"},
    {KernelError::IndexOutOfRange, "an index[ into axis %x] is out of range|%n|%S"},
    {KernelError::DivisionByZero, "division of an integer by zero"},
    {KernelError::NegativeSize, "a size is negative|%n"},
    {KernelError::OutOfMemory, "not enough memory for its workspace|%n bytes"},
    {KernelError::NullData, "%a has elements but no data"},
    {KernelError::Overflow, "a product of sizes overflows"},
    {KernelError::OutsideBuffer, "an access lies outside[ axis %x of] %a|index %n|%R"},
    {KernelError::NoDevice, "this runtime doesn't have the device||%V"},
    {KernelError::ChecksDisagree, "the entry refused arguments that its checks accept"},
};

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
  std::string texts[3];  // the message, what was found, what was expected
  for (const Texts& row : kTexts) {
    if (row.code != code) continue;
    std::string_view rest = row.texts;
    for (std::string& text : texts) {
      const size_t end = std::min(rest.find('|'), rest.size());
      text = values.filled(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (texts[0].empty()) texts[0] = cat("stopped with code ", static_cast<int32_t>(code));
  const bool is_bug = code == KernelError::ChecksDisagree;
  Error error(is_bug ? ErrorKind::Internal : ErrorKind::Runtime,
              cat("kernel '", kernel, "': ", texts[0]));
  if (is_bug) error.help("this is a bug in Tenon; please report it with the program that shows it");
  if (!texts[1].empty()) error.found(texts[1]);
  if (!texts[2].empty()) error.expected(texts[2]);
  return error;
}

}  // namespace tenon::vm
