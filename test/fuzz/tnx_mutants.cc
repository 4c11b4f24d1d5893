// tnx_mutants COUNT FIRST FILE...: makes mutants FIRST to FIRST + COUNT - 1 of executables (.tnx),
// assembly (.tna) and compiled models and programs (.onnx, .tn), loads them and calls their
// functions under tight limits (tnx_target.h). By the mutant's number modulo ten:
//
//   0 1 2  some words of code of a valid file are changed: tests the verifier
//   3 4    names, constants or functions of a valid file are changed or exchanged, so that kernels
//          get arguments that they weren't compiled for: tests their entries
//   5      any bytes except those of kernels are changed, and the hashes updated
//   6      any bytes are changed, but not the hashes: tests the hashes
//   7      bytes of kernels are changed: refused because of the hash or, if it is updated, because
//          the native code isn't that of the seed; only a file with its computes runs then
//   8      the computes of a file are changed, and it is loaded as a file that isn't trusted: tests
//          that whatever they compute, they can be compiled and stay within their tensors
//   9      the same, or its graph and provenance are changed and read (record_target.h)
//
// Exits with 0 if each gave values or errors. Build it with a sanitizer preset; kernels have no
// sanitizer checks, so their tensors lie between guard pages (guarded_memory.cc).
#include <filesystem>
#include <fstream>
#include <iterator>

#include "arguments.h"
#include "bounds.h"
#include "codegen/llvm/target.h"
#include "driver/compile.h"
#include "driver/functions.h"
#include "graph/ir/text.h"
#include "import/onnx/import_model.h"
#include "library/onednn/register.h"
#include "mutate.h"
#include "record_target.h"
#include "text_mutate.h"
#include "tnx_target.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr unsigned kSeconds = 60;

struct Seed {
  std::string bytes;
  vm::Unit unit;
};

Seed seed_of(std::string bytes) {
  vm::Unit unit = vm::read_unit(vm::copy_bytes(bytes)).unit;
  return {std::move(bytes), std::move(unit)};
}

RecordOutcome run_records(const std::string& bytes) {
  try {
    return read_records(vm::read_unit(vm::copy_bytes(bytes)).unit);
  } catch (const Error& e) {
    return {.problem = e.kind() == ErrorKind::Internal ? e.render() : ""};
  }
}

// What is compiled gives two seeds: one may use libraries, the other carries its computes and
// graph.
void add_seeds(const std::string& path, std::vector<Seed>* seeds) {
  const std::string extension = std::filesystem::path(path).extension();
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (extension == ".tna") bytes = vm::write_to_bytes(vm::assemble(bytes, path));
  if (extension != ".tn" && extension != ".onnx") return seeds->push_back(seed_of(bytes));
  const graph::Module module =
      extension == ".tn" ? graph::parse_module(bytes, path) : onnx::import_model(path).module;
  for (const bool computes : {false, true}) {
    driver::CompileOptions options;
    options.keep_computes = options.keep_graph = computes;
    seeds->push_back(seed_of(vm::write_to_bytes(driver::compile(module, options))));
  }
}

class Mutants {
 public:
  Mutants(const std::vector<Seed>& seeds, uint64_t number)
      : seeds_(seeds), number_(number), m_(number), seed_(seeds[m_.below(seeds.size())]) {}

  struct Mutant {
    std::string bytes;
    bool refused = false;    // by a hash: loading it is a finding
    bool untrusted = false;  // to be loaded as a file that isn't trusted
    bool records = false;    // its graph and provenance are to be read
  };

  Mutant make() {
    switch (number_ % 10) {
      case 0:
      case 1:
      case 2:
        return {with_changed_code()};
      case 3:
      case 4:
        return {with_changed_parts()};
      case 5:
        return {with_changed_sections()};
      case 6:
        return {m_.mutant(seed_.bytes, seeds_[m_.below(seeds_.size())].bytes)};
      case 7:
        return with_changed_kernels();
      case 9:
        if (m_.below(2)) return with_changed_records();
        [[fallthrough]];
      default:
        return with_changed_computes();
    }
  }

 private:
  std::string with_changed_code() {
    vm::Unit unit = seed_.unit;
    for (uint64_t changes = 1 + m_.below(3); changes-- > 0;) change_code(unit);
    return vm::write_to_bytes(unit);
  }

  void change_code(vm::Unit& unit) {
    auto& f = unit.functions[m_.below(unit.functions.size())];
    if (f.code.empty()) return;
    vm::Word& word = f.code[m_.below(f.code.size())];
    switch (m_.below(5)) {
      case 0:
        word ^= vm::Word{1} << m_.below(5);
        break;
      case 1:
        word = f.code[m_.below(f.code.size())];
        break;
      case 2:
        word = (word & ~vm::Word{0xff}) | m_.below(16);
        break;
      case 3:  // a last use, or none any more
        word ^= vm::Arg::reg(0).word ^ vm::Arg::last(0).word;
        break;
      default:
        word = (word & 0xff00000000000000) | ((word + m_.below(5) - 2) & 0xffffffffffffff);
    }
  }

  std::string with_changed_parts() {
    vm::Unit unit = seed_.unit;
    for (uint64_t changes = 1 + m_.below(3); changes-- > 0;) change_part(unit);
    if (m_.below(4) == 0) change_code(unit);
    return vm::write_to_bytes(unit);
  }

  void change_part(vm::Unit& unit) {
    auto& f = unit.functions[m_.below(unit.functions.size())];
    switch (m_.below(7)) {
      case 0:
      case 1:  // another kernel or packed function
        if (!unit.packed.empty()) {
          std::swap(unit.packed[m_.below(unit.packed.size())].name,
                    unit.packed[m_.below(unit.packed.size())].name);
        }
        break;
      case 2:
      case 3:
        change_constant(unit);
        break;
      case 4:
        f.register_count = static_cast<uint32_t>(f.register_count + m_.below(9) - 4);
        break;
      case 5:
        if (f.params.empty()) break;
        f.params.erase(f.params.begin() + static_cast<std::ptrdiff_t>(m_.below(f.params.size())));
        break;
      default: {  // a function's code from another
        auto& other = unit.functions[m_.below(unit.functions.size())];
        std::swap(f.code, other.code);
        std::swap(f.spans, other.spans);
      }
    }
  }

  void change_constant(vm::Unit& unit) {
    if (unit.constants.empty()) return;
    Any& value = unit.constants[m_.below(unit.constants.size())].value;
    if (m_.below(2)) {
      value = unit.constants[m_.below(unit.constants.size())].value;
    } else if (value.type_index == TypeIndex::Tensor) {
      value = Any(other_tensor(value.as<Tensor>()));
    } else if (value.type_index == TypeIndex::Shape) {
      Shape old = value.as<Shape>();
      std::vector<int64_t> sizes(old.begin(), old.end());
      if (!sizes.empty()) sizes[m_.below(sizes.size())] = number();
      value = Any(Shape(sizes));
    } else {
      value = Any(number());
    }
  }

  // A tensor of other sizes or another dtype; small, so that it doesn't exhaust the memory.
  Tensor other_tensor(const Tensor& old) {
    static const DataType kTypes[] = {f32, f64, f16, i8, i32, i64, u8, boolean};
    std::vector<int64_t> sizes(old.shape().begin(), old.shape().end());
    DataType dtype = m_.below(3) ? old.dtype() : kTypes[m_.below(std::size(kTypes))];
    if (sizes.empty() || m_.below(8) == 0) {
      sizes.push_back(static_cast<int64_t>(m_.below(3)));
    } else if (m_.below(8) == 0) {
      sizes.pop_back();
    } else {
      int64_t& size = sizes[m_.below(sizes.size())];
      size = m_.below(2) ? static_cast<int64_t>(m_.below(5)) : std::max<int64_t>(size - 1, 0);
    }
    if (dtype == string_elements) return old;  // only its own builder makes one
    Tensor t = allocate_tensor(sizes, dtype);
    std::memset(t.data(), 0, t.bytes());
    return t;
  }

  int64_t number() {
    static constexpr int64_t kNumbers[] = {
        -1, 0, 1, 2, 3, 64, 1 << 20, 1 << 31, INT64_MAX, INT64_MIN, INT64_MAX / 8 + 1};
    return kNumbers[m_.below(std::size(kNumbers))];
  }

  static vm::SectionEntry section(const std::string& bytes, vm::SectionId id) {
    const vm::SectionTable table = vm::read_section_table(bytes, "seed", true);
    const vm::SectionEntry* entry = table.find(id);
    if (entry) return *entry;
    vm::SectionEntry none{};
    none.offset = bytes.size();
    return none;
  }

  std::string with_changed_sections() {
    const vm::SectionEntry kernels = section(seed_.bytes, vm::SectionId::Kernels);
    const std::string& other = seeds_[m_.below(seeds_.size())].bytes;
    std::string bytes = seed_.bytes;
    // Changes bytes before or after the kernels; sometimes changes the length, which moves
    // everything after it.
    const size_t end = kernels.offset + kernels.size;
    if (m_.below(4) == 0 && end < bytes.size()) {
      bytes = bytes.substr(0, end) + m_.mutant(bytes.substr(end), other);
    } else {
      std::string head = m_.mutant(bytes.substr(0, kernels.offset), other);
      if (m_.below(8)) head.resize(kernels.offset);
      bytes = head + bytes.substr(kernels.offset);
    }
    vm::repair_hashes(bytes);
    return bytes;
  }

  Mutant with_changed_kernels() {
    const vm::SectionEntry kernels = section(seed_.bytes, vm::SectionId::Kernels);
    if (kernels.size == 0) return {with_changed_code()};
    Mutant out{seed_.bytes};
    const std::string old = seed_.bytes.substr(kernels.offset, kernels.size);
    const std::string& other = seeds_[m_.below(seeds_.size())].bytes;
    std::string section = m_.mutant(old, other);
    section.resize(kernels.size);
    out.bytes.replace(kernels.offset, kernels.size, section);
    const bool repair = m_.below(2);
    if (repair) vm::repair_hashes(out.bytes);
    out.refused = section != old && !repair;
    return out;
  }

  // Of a seed with computes and a graph, if there is one.
  vm::Unit unit_with_computes() {
    size_t at = m_.below(seeds_.size());
    for (size_t tries = 0; seeds_[at].unit.computes.empty() && tries < seeds_.size(); ++tries) {
      at = (at + 1) % seeds_.size();
    }
    return seeds_[at].unit;
  }

  Mutant with_changed_records() {
    vm::Unit unit = unit_with_computes();
    for (std::string* record : {&unit.graph, &unit.provenance}) {
      *record =
          m_.below(8) ? TextMutator(number_).mutant(*record) : m_.mutant(*record, seed_.bytes);
    }
    return {.bytes = vm::write_to_bytes(unit), .records = true};
  }

  Mutant with_changed_computes() {
    vm::Unit unit = unit_with_computes();
    std::string& computes = unit.computes;
    if (computes.empty()) return {with_changed_code()};
    computes =
        m_.below(8) ? TextMutator(number_).mutant(computes) : m_.mutant(computes, seed_.bytes);
    if (m_.below(4) == 0) change_part(unit);
    return {.bytes = vm::write_to_bytes(unit), .untrusted = true};
  }

  const std::vector<Seed>& seeds_;
  uint64_t number_;
  Mutator m_;
  const Seed& seed_;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv);
  driver::initialise();
  register_onednn();
  driver::register_compiler_functions();
  vm::register_builtins();
  std::vector<Seed> seeds;
  std::vector<std::string> kernels;
  for (const std::string& file : arguments.files) {
    try {
      add_seeds(file, &seeds);
    } catch (const Error& e) {
      std::fprintf(stderr, "left out %s: %s\n", file.c_str(), e.message().c_str());
    }
  }
  if (seeds.empty()) return 2;
  for (const Seed& seed : seeds) {
    for (const auto& target : seed.unit.kernels) {
      for (const auto& image : target.images) kernels.push_back(image.bytes);
    }
  }
  set_bounds(kSeconds);

  long loaded = 0, foreign = 0, compiled = 0, values = 0, errors = 0, graphs = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    // A mutant depends only on its number, so that it can be made again without the others.
    const Mutants::Mutant mutant = Mutants(seeds, number).make();
    begin_mutant(number, mutant.bytes);
    if (mutant.records) {
      const RecordOutcome read = run_records(mutant.bytes);
      if (!read.problem.empty()) finding(cat("mutant ", number, ": ", read.problem));
      graphs += read.has_graph;
      continue;
    }
    TnxOutcome outcome =
        mutant.untrusted ? run_untrusted(mutant.bytes) : run_tnx(mutant.bytes, true, kernels);
    if (mutant.refused && (outcome.loaded || outcome.foreign)) {
      outcome.problem = "a changed kernel section passed its hash";
    }
    if (!outcome.problem.empty()) finding(cat("mutant ", number, ": ", outcome.problem));
    loaded += outcome.loaded;
    compiled += outcome.loaded && mutant.untrusted;
    foreign += outcome.foreign;
    values += outcome.values;
    errors += outcome.errors;
  }
  end_mutants();
  std::printf(
      "%llu mutants: %ld loaded, of these %ld with changed computes; %ld with foreign kernels, "
      "which "
      "didn't run; %ld calls gave values, %ld errors; %ld changed graphs were shown; %ld "
      "findings\n",
      static_cast<unsigned long long>(arguments.count()), loaded, compiled, foreign, values, errors,
      graphs, Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
