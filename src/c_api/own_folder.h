// The folder of the shared object that contains this code; Tenon's libraries lie beside it.
#pragma once

#include <string>

namespace tenon::c_api {

std::string own_folder();

}  // namespace tenon::c_api
