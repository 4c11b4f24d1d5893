#include "object/file_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace tenon {

FileBytes::~FileBytes() {
  if (memory == Memory::Allocated) {
    std::free(const_cast<char*>(data));
  } else if (size) {
    munmap(const_cast<char*>(data), size);
  }
  if (descriptor >= 0) close(descriptor);
}

}  // namespace tenon
