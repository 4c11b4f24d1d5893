#include "driver/host_options.h"

#include "driver/code_choice.h"
#include "object/reflect.h"
#include "object/shape.h"

namespace tenon::driver {

HostOptions::HostOptions(const Any& given) {
  if (given.is_none()) return;
  if (!given.is<Map<String, Any>>()) {
    throw Error(ErrorKind::Usage, "the options are not a map of strings to values")
        .found(repr(given, 200));
  }
  given_ = given.as<Map<String, Any>>();
}

const Any* HostOptions::find(const char* name) {
  taken_.emplace(name);
  return given_.find(name);
}

std::vector<std::string> HostOptions::take_names(const char* name) {
  const Any* value = find(name);
  if (!value || value->is_none()) return {};
  if (value->is<String>()) return {value->as<String>().str()};
  if (!value->is<Array<String>>()) fail_type(name, "a string or an array of strings", *value);
  std::vector<std::string> names;
  for (const String& each : value->as<Array<String>>()) names.push_back(each.str());
  return names;
}

void HostOptions::fail_type(const char* name, const std::string& wanted, const Any& found) {
  throw Error(ErrorKind::Usage, cat("option ", name, " has the wrong type"))
      .expected(wanted)
      .found(repr(found, 200));
}

void HostOptions::require_all_taken() const {
  const std::vector<std::string> known(taken_.begin(), taken_.end());
  for (const auto& [name, value] : given_) {
    if (taken_.contains(name.view())) continue;
    const std::string near = nearest(name, known);
    throw Error(ErrorKind::Usage, cat("there is no option ", quoted(name)))
        .expected(known.empty() ? "no options" : cat("one of ", join(known, ", ")))
        .help(near.empty() ? "leave it out" : cat("did you mean ", near, "?"));
  }
}

CompileOptions take_compile_options(HostOptions& given) {
  CompileOptions options;
  options.level = given.take<int>("level").value_or(options.level);
  if (options.level < 0 || options.level > 3) {
    throw Error(ErrorKind::Usage, "option level is out of range")
        .found(cat(options.level))
        .expected("0, 1, 2 or 3");
  }
  CodeChoice code;
  code.target = given.take<String>("target").value_or("").str();
  code.cpus = given.take_names("cpu");
  code.libraries = given.take<String>("libraries").value_or("").str();
  if (!code.libraries.empty() && code.libraries != "onednn" && code.libraries != "none") {
    throw Error(ErrorKind::Usage, "option libraries has an unknown value")
        .found(quoted(code.libraries))
        .expected("\"onednn\" or \"none\"");
  }
  code.keep_computes = given.take<bool>("keep_computes").value_or(false);
  code.apply_to(&options);
  options.fold_limit = given.take<int64_t>("fold_limit").value_or(options.fold_limit);
  options.fold_work = given.take<int64_t>("fold_work").value_or(options.fold_work);
  options.threads = given.take<int>("threads").value_or(options.threads);
  options.limits = take_limits(given);
  if (const auto passes = given.take<Array<String>>("passes")) {
    options.passes.emplace();
    for (const String& name : *passes) options.passes->push_back(name.str());
  }
  return options;
}

WorkLimits take_limits(HostOptions& given) {
  WorkLimits limits;
  const auto take = [&](const char* name) {
    const int64_t value = given.take<int64_t>(name).value_or(-1);
    if (value < -1 || (value == 0 && name == std::string_view("memory"))) {
      throw Error(ErrorKind::Usage, cat("option ", name, " is out of range"))
          .found(cat(value))
          .expected("a number above 0, or -1 for no limit");
    }
    return value;
  };
  if (const int64_t deadline = take("deadline_ns"); deadline >= 0) {
    limits.deadline = std::chrono::nanoseconds(deadline);
  }
  if (const int64_t memory = take("memory"); memory > 0) {
    limits.memory = static_cast<size_t>(memory);
  }
  return limits;
}

onnx::ImportOptions take_import_options(HostOptions& given) {
  onnx::ImportOptions options;
  if (const auto dims = given.take<Map<String, int64_t>>("dims")) {
    for (const auto& [name, size] : *dims) options.dims[name.str()] = size;
  }
  if (const auto shapes = given.take<Map<String, Shape>>("shapes")) {
    for (const auto& [name, shape] : *shapes) {
      options.shapes[name.str()] = {shape.begin(), shape.end()};
    }
  }
  return options;
}

}  // namespace tenon::driver
