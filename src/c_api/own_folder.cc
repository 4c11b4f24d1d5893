#include "c_api/own_folder.h"

#include <dlfcn.h>

#include "tenon/c_api.h"

namespace tenon::c_api {

std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&tenon_c_api_version), &info) || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace tenon::c_api
