#include "import/onnx/mapped_file.h"

#include <sys/mman.h>

#include <filesystem>

#include "support/error.h"
#include "support/input_file.h"

namespace tenon::onnx {

Ref<StorageObj> map_file(const std::string& path) {
  const InputFile file(path);
  auto storage = make<StorageObj>();
  storage->flags = StorageObj::kIsReadOnly;
  storage->data = const_cast<void*>(file.map());
  storage->size = file.size();
  if (storage->data) storage->free = [](StorageObj* self) { ::munmap(self->data, self->size); };
  return storage;
}

std::string resolve_external(const std::string& directory, const std::string& location,
                             const std::string& tensor) {
  namespace fs = std::filesystem;
  auto refuse = [&](const char* why) {
    return Error(ErrorKind::Usage, cat("external data of '", tensor, "' is refused"))
        .found(cat("location ", tenon::quoted(location)), why)
        .expected("a file in the model's folder or below it");
  };
  if (location.empty()) throw refuse("empty");
  if (location.find('\0') != std::string::npos) throw refuse("not a file name");
  fs::path relative(location);
  if (relative.is_absolute()) throw refuse("absolute path");
  for (const fs::path& part : relative) {
    if (part == "..") throw refuse("leaves the folder");
  }
  fs::path base = directory.empty() ? fs::path(".") : fs::path(directory);
  std::error_code ec;
  fs::path real_base = fs::canonical(base, ec);
  if (ec) throw refuse("the model's folder cannot be read");
  fs::path real = fs::canonical(base / relative, ec);
  if (ec) {
    throw Error(ErrorKind::Usage, cat("external data of '", tensor, "' cannot be read"))
        .found(cat("location ", tenon::quoted(location)), ec.message())
        .help("put the file beside the model, or export the model with its data inside");
  }
  fs::path inside = real.lexically_relative(real_base);
  if (inside.empty() || *inside.begin() == "..") throw refuse("a link that leaves the folder");
  if (!fs::is_regular_file(real, ec)) throw refuse("not a file");
  return real.string();
}

}  // namespace tenon::onnx
