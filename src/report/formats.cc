#include "report/formats.h"

#include "report/writers.h"
#include "support/error.h"

namespace tenon::report {
namespace {

constexpr Format kFormats[] = {
#define TENON_RECORDING_FORMAT(suffix, bytes, summary) \
  {suffix, [](const Report& report) { return bytes; }, summary},
#include "report/formats.def"
#undef TENON_RECORDING_FORMAT
};

}  // namespace

std::span<const Format> all_formats() {
  return kFormats;
}

const Format& format_for(const std::string& path) {
  for (const Format& format : kFormats) {
    if (path.ends_with(format.suffix)) return format;
  }
  throw Error(ErrorKind::Usage, cat("'", printable(path), "' doesn't name a format of recordings"))
      .expected(cat("a name that ends in ", format_list()));
}

std::string format_list() {
  std::string list;
  for (const Format& format : kFormats) {
    const bool is_last = &format == &kFormats[std::size(kFormats) - 1];
    list += cat(list.empty() ? ""
                : is_last    ? " or "
                             : ", ",
                format.suffix, " (", format.summary, ")");
  }
  return list;
}

}  // namespace tenon::report
