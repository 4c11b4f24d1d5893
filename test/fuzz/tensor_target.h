// The target for files of arrays: reads a .npy file, or every array of a .npz archive, and reads
// what is written of each again. Every outcome except arrays that stay the same, or an error that
// isn't a bug of Tenon, is a finding.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "support/error.h"
#include "support/memory_file.h"
#include "tools/tenon/input_stream.h"
#include "tools/tenon/npy.h"
#include "tools/tenon/zip_reader.h"

namespace tenon::fuzz {

struct TensorOutcome {
  int arrays = 0;       // that were read
  std::string problem;  // of a finding
};

inline Tensor read_npy_bytes(std::string_view bytes) {
  const MemoryFile file("mutant.npy", bytes);
  tool::InputStream in(file.path());
  return tool::read_npy(in);
}

// Why an array isn't read as it was written, or "".
inline std::string check_written(const Tensor& tensor) {
  const tool::NpyBytes written("array", tensor);
  const Tensor again = read_npy_bytes(cat(written.header(), written.data()));
  const bool same =
      to_text(again) == to_text(tensor) && tool::NpyBytes("array", again).data() == written.data();
  return same ? "" : cat("written, ", to_text(tensor), " is read as ", to_text(again));
}

inline TensorOutcome run_tensors(std::string_view bytes) {
  TensorOutcome outcome;
  const auto guard = [&](const auto& work) {
    try {
      work();
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) outcome.problem = e.render();
    }
  };
  const auto keep = [&](const Tensor& tensor) {
    ++outcome.arrays;
    const std::string problem = check_written(tensor);
    if (!problem.empty()) outcome.problem = problem;
  };
  guard([&] { keep(read_npy_bytes(bytes)); });
  guard([&] {
    const MemoryFile file("mutant.npz", bytes);
    const tool::ZipReader archive(file.path());
    for (const tool::ZipMember& member : archive.members()) {
      guard([&] { keep(tool::read_npy(*archive.open(member))); });
    }
  });
  return outcome;
}

}  // namespace tenon::fuzz
