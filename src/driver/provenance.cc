#include "driver/provenance.h"

#include <filesystem>
#include <map>
#include <optional>

#include "driver/code_choice.h"
#include "driver/options.h"
#include "json/json.h"
#include "object/array.h"
#include "support/phase.h"
#include "support/poll.h"
#include "support/text.h"
#include "vm/executable/hash.h"

namespace tenon::driver {
namespace {

constexpr JsonLimits kLimits = {.depth = 4};

// The members of an origin.
constexpr char kSource[] = "source", kBytes[] = "bytes", kHash[] = "xxh64", kDims[] = "dims",
               kShapes[] = "shapes";

// What origin_of tells.
struct Origin {
  std::string source, hash;
  int64_t bytes = 0;
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::vector<int64_t>> shapes;
};

std::string hash_text(uint64_t hash) {
  std::string digits = hex(hash).substr(2);
  return std::string(16 - digits.size(), '0') + digits;
}

// Of a size, and of an array of sizes; nothing of anything else.
bool read(const Json& json, int64_t* size) {
  *size = json.integer;
  return json.kind == Json::Kind::Int;
}
bool read(const Json& json, std::vector<int64_t>* shape) {
  if (json.kind != Json::Kind::Array) return false;
  for (const Json& item : json.array) {
    if (!read(item, &shape->emplace_back())) return false;
  }
  return true;
}
template <class T>
bool read(const Json& json, std::map<std::string, T>* sizes) {
  if (json.kind != Json::Kind::Object) return false;
  for (const auto& [name, value] : json.object) {
    if (!read(value, &(*sizes)[name])) return false;
  }
  return true;
}

// "4", or "1x3" of a shape; nothing if it is neither.
std::optional<std::string> size_text(const Json& json) {
  int64_t size = 0;
  if (read(json, &size)) return cat(size);
  std::vector<int64_t> shape;
  if (!read(json, &shape)) return std::nullopt;
  std::vector<std::string> sizes;
  sizes.reserve(shape.size());
  for (const int64_t each : shape) sizes.push_back(cat(each));
  return join(sizes, "x");
}

// The record of a file; null if it is not JSON.
Json parsed(std::string_view record) {
  try {
    return parse_json(record, ErrorKind::Damaged, "provenance", kLimits);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Damaged) throw;  // a limit of the work
    return {};
  }
}

Map<String, Any> members(const Json& object);

Any plain(const Json& json) {
  switch (json.kind) {
    case Json::Kind::Null:
      return Any();
    case Json::Kind::Bool:
      return Any(json.boolean);
    case Json::Kind::Int:
      return Any(json.integer);
    case Json::Kind::Float:
      return Any(json.number);
    case Json::Kind::String:
      return Any(String(json.string));
    case Json::Kind::Array: {
      Array<Any> out;
      for (const Json& item : json.array) out.push_back(plain(item));
      return Any(out);
    }
    case Json::Kind::Object:
      return Any(members(json));
  }
  return Any();
}

Map<String, Any> members(const Json& object) {
  Map<String, Any> out;
  for (const auto& [name, value] : object.object) out.set(String(name), plain(value));
  return out;
}

void write(JsonWriter& out, const Origin& origin) {
  out.key(kSource).value(origin.source);
  out.key(kBytes).value(origin.bytes);
  out.key(kHash).value(origin.hash);
  if (!origin.dims.empty()) {
    out.key(kDims).begin_object();
    for (const auto& [name, size] : origin.dims) out.key(name).value(size);
    out.end_object();
  }
  if (!origin.shapes.empty()) {
    out.key(kShapes).begin_object();
    for (const auto& [name, shape] : origin.shapes) {
      out.key(name).begin_array();
      for (const int64_t size : shape) out.value(size);
      out.end_array();
    }
    out.end_object();
  }
}

}  // namespace

std::string origin_of(const Source& source, const onnx::ImportOptions& options) {
  Phase phase("hash");
  vm::Xxh64 hash;
  const std::string_view content = source.content();
  for (size_t start = 0; start < content.size(); start += kPollBytes) {
    poll();
    hash.update(content.substr(start, kPollBytes));
  }
  source.bytes->release_pages();
  Origin origin{std::filesystem::path(source.name).filename().string(), hash_text(hash.digest()),
                static_cast<int64_t>(content.size()), options.dims, options.shapes};
  JsonWriter out;
  out.begin_object();
  write(out, origin);
  return out.end_object().take();
}

namespace {

void write(JsonWriter& out, const auto& value) {
  out.value(value);
}
void write(JsonWriter& out, const std::optional<std::vector<std::string>>& names) {
  out.value(names.value_or(std::vector<std::string>()));
}

template <class T>
void write_unless_default(JsonWriter& out, std::string_view name, const T& value,
                          const T& initial) {
  if (value == initial) return;
  out.key(name);
  write(out, value);
}

// "passes simplify, fuse" or "fold_limit 5"; "keep_computes" if it is true.
std::string option_text(std::string_view name, const Json& value) {
  if (value.kind == Json::Kind::Bool) return std::string(name);
  std::vector<std::string> items;
  for (const Json& item : value.array) items.push_back(item.string);
  return cat(name, " ",
             value.kind == Json::Kind::Array    ? join(items, ", ")
             : value.kind == Json::Kind::String ? value.string
                                                : cat(value.integer));
}

Origin read_origin(const std::string& text) {
  const Json json = parse_json(text, ErrorKind::Usage, "option origin", kLimits);
  const auto require = [&](bool holds, const std::string& message) {
    if (holds) return;
    throw Error(ErrorKind::Usage, message)
        .found(printable(text.substr(0, 80)))
        .expected("what tenon.origin returns");
  };
  require(json.kind == Json::Kind::Object, "option origin is not an object of JSON");
  Origin out;
  for (const auto& [name, value] : json.object) {
    bool fits = false;
    if (name == kSource || name == kHash) {
      fits = value.kind == Json::Kind::String;
      (name == kSource ? out.source : out.hash) = value.string;
    } else if (name == kBytes) {
      fits = read(value, &out.bytes) && out.bytes >= 0;
    } else if (name == kDims) {
      fits = read(value, &out.dims);
    } else if (name == kShapes) {
      fits = read(value, &out.shapes);
    }
    require(fits, cat("option origin has a member ", tenon::quoted(name), " that no origin has"));
  }
  require(json.find(kSource) && json.find(kHash) && json.find(kBytes),
          "option origin is incomplete");
  return out;
}

}  // namespace

std::string provenance_of(const CompileOptions& options) {
  const CodeChoice code = choose_code(options);
  JsonWriter out;
  out.begin_object();
  if (!options.origin.empty()) write(out, read_origin(options.origin));
  out.key("level").value(options.level).key("cpu").begin_array();
  for (const codegen::Target& target : code.targets) out.value(target.cpu);
  out.end_array();
  out.key("target").value(code.targets.front().architecture->llvm_triple());
  out.key("libraries").value(code.libraries);
  CompileOptions defaults;
  std::vector<std::string> of_level;
  for (const Step& pass : all_passes()) {
    if (pass.level <= options.level) of_level.push_back(pass.name);
  }
  if (options.passes == of_level) defaults.passes = of_level;
#define TENON_COMPILE_OPTION(type, name, initial, text, allowed, flag, record, meaning) \
  if (record) write_unless_default(out, #name, options.name, defaults.name);
#include "driver/options.def"
  return out.end_object().take();
}

Map<String, Any> provenance_data(std::string_view record) {
  return members(parsed(record));
}

std::vector<std::string> provenance_lines(std::string_view record) {
  const Json json = parsed(record);
  const auto member = [&](std::string_view name, Json::Kind kind) {
    const Json* found = json.find(name);
    return found && found->kind == kind ? found : nullptr;
  };
  std::vector<std::string> out;
  if (const Json* source = member(kSource, Json::Kind::String)) {
    std::string line = cat("made from ", source->string);
    if (const Json* bytes = member(kBytes, Json::Kind::Int); bytes && bytes->integer >= 0) {
      line += cat(", ", bytes_text(static_cast<uint64_t>(bytes->integer)));
    }
    if (const Json* hash = member(kHash, Json::Kind::String)) line += cat(", xxh64 ", hash->string);
    out.push_back(line);
  }
  std::vector<std::string> sizes;
  for (const char* name : {kDims, kShapes}) {
    const Json* given = member(name, Json::Kind::Object);
    if (!given) continue;
    for (const auto& [symbol, size] : given->object) {
      if (const auto text = size_text(size)) sizes.push_back(cat(symbol, "=", *text));
    }
  }
  if (!sizes.empty()) out.push_back(cat("with the sizes ", join(sizes, ", ")));
  if (const Json* level = member("level", Json::Kind::Int)) {
    std::string line = cat("compiled with -O", level->integer);
    std::vector<std::string> cpus;
    if (const Json* names = member("cpu", Json::Kind::Array)) {
      for (const Json& cpu : names->array) cpus.push_back(cpu.string);
    }
    if (!cpus.empty()) line += cat(" for ", join(cpus, ", "));
    const Json* libraries = member("libraries", Json::Kind::Bool);
    if (libraries && !libraries->boolean) line += ", without libraries";
    out.push_back(line);
  }
  std::vector<std::string> others;
  const auto add = [&](std::string_view name) {
    if (const Json* value = json.find(name)) others.push_back(option_text(name, *value));
  };
#define TENON_COMPILE_OPTION(type, name, initial, text, allowed, flag, record, meaning) \
  if (record) add(#name);
#include "driver/options.def"
  if (!others.empty()) out.push_back(cat("with ", join(others, ", ")));
  return out;
}

}  // namespace tenon::driver
