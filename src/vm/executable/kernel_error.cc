#include "vm/executable/kernel_error.h"

#include "object/any.h"
#include "object/device_name.h"
#include "object/dtype.h"

namespace tenon::vm {
namespace {

std::string dtype_text(int64_t word) {
  DataType t;
  t.code = static_cast<uint8_t>(word);
  t.bits = static_cast<uint8_t>(word >> 8);
  t.lanes = static_cast<uint16_t>(word >> 16);
  return to_text(t);
}

}  // namespace

Error kernel_error(const char* kernel, KernelError code, int32_t argument, int32_t axis,
                   int64_t found, int64_t expected) {
  const std::string which = argument < 0 ? "" : cat("argument ", argument);
  auto error = [&](const std::string& what) {
    return Error(ErrorKind::Runtime, cat("kernel '", kernel, "': ", what));
  };
  switch (code) {
    case KernelError::ArgumentCount:
      return error("wrong number of arguments").found(cat(found)).expected(cat(expected));
    case KernelError::NotATensor:
      return error(cat(which, " is not a tensor")).found(type_name(static_cast<int32_t>(found)));
    case KernelError::NotAnInteger:
      return error(cat(which, " is not an integer")).found(type_name(static_cast<int32_t>(found)));
    case KernelError::Dtype:
      return error(cat(which, " has the wrong dtype"))
          .found(dtype_text(found))
          .expected(dtype_text(expected));
    case KernelError::Rank:
      return error(cat(which, " has the wrong rank")).found(cat(found)).expected(cat(expected));
    case KernelError::Dimension:
      return error(cat(which, ", axis ", axis, " has the wrong size"))
          .found(cat(found))
          .expected(cat(expected));
    case KernelError::Device:
      return error(cat(which, " is on the wrong device"))
          .found(cat("device type ", found & 0xffffffff))
          .expected(cat("device type ", expected & 0xffffffff));
    case KernelError::NotCompact:
      return error(cat(which, ", axis ", axis, " is not compact"))
          .found(cat("stride ", found))
          .expected(cat("stride ", expected));
    case KernelError::Alignment:
      return error(cat(which, " is not aligned"))
          .found(cat(found, " bytes past a multiple of ", expected));
    case KernelError::NotWritable:
      return error(cat(which, " is written but read-only"));
    case KernelError::Overlap:
      return error(cat(which, " is written but shares memory with argument ", found));
    case KernelError::IndexOutOfRange:
      return error(axis < 0 ? std::string("an index is out of range")
                            : cat("an index into axis ", axis, " is out of range"))
          .found(cat(found))
          .expected(expected > 0 ? cat("from -", expected, " to ", expected - 1)
                                 : "none: there are no elements");
    case KernelError::OutsideBuffer: {
      const std::string buffer = argument < 0 ? "scratch" : which;
      return error(axis < 0 ? cat("an access lies outside ", buffer)
                            : cat("an access lies outside axis ", axis, " of ", buffer))
          .found(cat("index ", found))
          .expected(expected > 0 ? cat("from 0 to ", expected - 1) : "none: it has no elements");
    }
    case KernelError::DivisionByZero:
      return error("division of an integer by zero");
    case KernelError::NegativeSize:
      return error("a size is negative").found(cat(found));
    case KernelError::OutOfMemory:
      return error("not enough memory for its workspace").found(cat(found, " bytes"));
    case KernelError::NullData:
      return error(cat(which, " has elements but no data"));
    case KernelError::IntegerRange:
      return error(cat(which, " exceeds what the kernel supports"))
          .found(cat(found))
          .expected(cat("at most ", expected));
    case KernelError::NoDevice:
      return error("this runtime doesn't have the device")
          .expected(to_text(DLDevice{static_cast<DLDeviceType>(expected & 0xffffffff),
                                     static_cast<int32_t>(expected >> 32)}));
    case KernelError::Overflow:
      return error("a product of sizes overflows");
  }
  return error(cat("stopped with code ", static_cast<int32_t>(code)));
}

}  // namespace tenon::vm
