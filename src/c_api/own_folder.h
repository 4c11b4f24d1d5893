// Where the shared object of this code lies: libraries lie beside it.
#pragma once

#include <string>

namespace tenon::c_api {

std::string own_folder();

}  // namespace tenon::c_api
