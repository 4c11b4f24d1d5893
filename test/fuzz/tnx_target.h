// The target for untrusted .tnx files: loads a file and runs its exported functions under tight
// limits. Every outcome except a value, or an error that isn't a bug of Tenon, is a finding.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "object/array.h"
#include "object/registry.h"
#include "object/shape.h"
#include "object/string_tensor.h"
#include "vm/asm/disassemble.h"
#include "vm/builtin/register.h"
#include "vm/executable/read_file.h"
#include "vm/interp/machine.h"

namespace tenon::fuzz {

// A tensor of strings; nothing for one of many elements.
inline Any string_argument(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) {
    if (size < 0 || size > 64 || (count *= size) > 64) return Any();
  }
  StringTensorBuilder made{std::span<const int64_t>(dims)};
  for (int64_t i = 0; i < count; ++i) made.append("text");
  return Any(made.finish());
}

// An argument for a parameter: one of its type, or something that it doesn't expect.
inline Any argument(const vm::SignatureType& type, uint64_t choice) {
  using Kind = vm::SignatureType::Kind;
  switch (choice % 8) {
    case 0:
      return Any();
    case 1:
      return Any(Shape({2, 3}));
    case 2:
      return Any(int64_t{-1});
    default:
      break;
  }
  if (type.kind == Kind::Tensor && type.dims_known) {
    std::vector<int64_t> dims;
    for (const auto& d : type.dims) dims.push_back(d.is_constant() ? d.value : 2);
    if (type.dtype == string_elements) return string_argument(dims);
    auto bytes = byte_count(dims, type.dtype);
    if (bytes && *bytes < (1 << 20)) {
      Tensor t = allocate_tensor(dims, type.dtype);
      std::memset(t.data(), 0, static_cast<size_t>(*bytes));
      return Any(t);
    }
  }
  if (type.kind == Kind::Tuple) return Any(Array<Any>{Any(int64_t{1}), Any(int64_t{2})});
  return Any(static_cast<int64_t>(choice % 16));
}

struct TnxOutcome {
  bool loaded = false;
  bool foreign = false;  // has untrusted native code, which must not run
  bool native = false;   // its functions run in native code
  int values = 0, errors = 0;
  std::string problem;  // of a finding
};

// Calls a function again with the tensor that it returned as its output.
inline void call_into(vm::Machine& m, const vm::FunctionUnit& function,
                      std::span<const AnyView> args, const Any& result) {
  if (!function.exported || result.type_index != TypeIndex::Tensor) return;
  const Any output(result.as<Tensor>());
  m.call_into(function.name, args, std::array{AnyView(output)});
}

// Calls each function of a program, first with arguments of its types, then with others.
inline TnxOutcome run_program(const Ref<vm::Program>& program) {
  TnxOutcome outcome;
  vm::Limits limits;
  limits.fuel = 5000;
  limits.memory = 8 << 20;
  limits.depth = 200;
  limits.deadline = std::chrono::seconds(5);
  limits.threads = 1;
  vm::Machine m(program, limits);
  outcome.loaded = true;
  outcome.native = program->compiled() != nullptr;
  const auto& functions = program->unit().functions;
  constexpr size_t kFunctions = 40;
  for (uint32_t f = 0; f < functions.size() && f < kFunctions; ++f) {
    for (bool expected : {true, false}) {
      std::vector<Any> args;
      for (const vm::Param& p : functions[f].params) {
        args.push_back(argument(p.type, expected ? 3 : args.size() * 3 + f + 3));
      }
      std::vector<AnyView> views(args.begin(), args.end());
      try {
        const Any result = m.call(f, std::span<const AnyView>(views));
        ++outcome.values;
        if (expected) call_into(m, functions[f], views, result);
      } catch (const Error& e) {
        ++outcome.errors;
        if (e.kind() == ErrorKind::Internal) outcome.problem = e.render();
      }
      if (args.empty()) break;
    }
  }
  return outcome;
}

// What is bound to every late constant.
inline Tensor weight(std::string_view) {
  Tensor t = allocate_tensor(std::array<int64_t, 2>{2, 2}, f32);
  std::memset(t.data(), 0, t.bytes());
  return t;
}

inline TnxOutcome run_unit(vm::Unit unit, const vm::ReadOptions& read) {
  vm::ProgramOptions options;
  options.read = read;
  options.allow_missing = true;
  options.weights = weight;
  return run_program(vm::Program::from_unit(std::move(unit), options));
}

// Loads a file that isn't trusted, whose kernels are compiled if it carries their computes.
inline TnxOutcome run_untrusted(const std::string& bytes) {
  TnxOutcome outcome;
  try {
    vm::ProgramOptions options;
    options.trusted = false;
    options.weights = weight;
    options.limits.deadline = std::chrono::seconds(5);
    outcome = run_program(vm::Program::load_bytes(bytes, options));
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) outcome.problem = e.render();
  }
  return outcome;
}

// `trusted_kernels` is the native code that may be opened. A file with other code is loaded as one
// that isn't trusted: it must be refused, unless it carries computes to compile instead, or calls
// no kernel. Then its functions run as bytecode.
inline TnxOutcome run_tnx(const std::string& bytes, bool check_hashes,
                          const std::vector<std::string>& trusted_kernels) {
  vm::register_builtins();
  TnxOutcome outcome;
  try {
    vm::ReadOptions read;
    read.check_hashes = check_hashes;
    vm::Unit unit = vm::read_unit(vm::copy_bytes(bytes), read).unit;
    vm::disassemble(unit);
    for (const auto& target : unit.kernels) {
      for (const auto& image : target.images) {
        bool known = false;
        for (const auto& t : trusted_kernels) known = known || t == image.bytes;
        outcome.foreign = outcome.foreign || !known;
      }
    }
    if (!outcome.foreign) return run_unit(std::move(unit), read);
    const bool computes = !unit.computes.empty();
    const bool kernels =
        std::ranges::any_of(unit.packed, [](const vm::PackedName& p) { return p.kernel; });
    outcome = run_untrusted(bytes);
    outcome.foreign = true;
    if (outcome.loaded && !computes && (kernels || outcome.native)) {
      outcome.problem = "native code was taken from a file that isn't trusted";
    }
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) outcome.problem = e.render();
  }
  return outcome;
}

}  // namespace tenon::fuzz
