// The formats that a recording can be written in, of which a file's name chooses one: formats.def.
#pragma once

#include <span>
#include <string>

#include "report/html.h"

namespace tenon::report {

struct Format {
  const char* suffix;
  std::string (*write)(const Report& report);  // its timeline is not null
  const char* summary;
};
std::span<const Format> all_formats();

// Throws Usage if no format has such a name.
const Format& format_for(const std::string& path);

// "layers.json (times by layer), ... or .html (a page to look at)"
std::string format_list();

}  // namespace tenon::report
