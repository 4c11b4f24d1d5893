// Recognises files that are mistaken for models, for errors that say what to do with them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon::driver {

struct ForeignFile {
  const char* name;  // "a PyTorch checkpoint"
  const char* help;
};

// What the content is if Tenon can't read it; nullopt if it is nothing that this knows.
std::optional<ForeignFile> recognise_foreign(std::string_view content);

// The same for a folder.
std::optional<ForeignFile> recognise_foreign_folder(const std::string& path);

}  // namespace tenon::driver
