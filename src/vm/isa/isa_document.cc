#include "vm/isa/isa_document.h"

#include "object/tensor.h"
#include "support/text.h"
#include "vm/isa/limits.h"
#include "vm/isa/operand_check.h"
#include "vm/isa/unit.h"

namespace tenon::vm {
namespace {

// An instruction's assembly syntax: "%dst = add a, b".
std::string syntax(const OpcodeInfo& info) {
  std::string out, separator = " ";
  auto specs = info.specs();
  if (info.has_result()) {
    out = cat(specs[0].name(), " = ");
    specs = specs.subspan(1);
  }
  out += info.mnemonic;
  for (const OperandSpec& s : specs) {
    out += cat(separator, s.name(), s.list ? "..." : "");
    separator = ", ";
  }
  return out;
}

std::string operands(const OpcodeInfo& info) {
  std::string out;
  for (const OperandSpec& s : info.specs()) {
    out += cat(out.empty() ? "" : " ", s.name(), ":", name_of(s.kind), s.list ? "*" : "",
               s.rank_bounded ? "rank" : "");
  }
  return out;
}

std::string flags(const OpcodeInfo& info) {
  std::vector<std::string> names;
  if (info.ends()) names.emplace_back("ends");
  if (info.makes_fresh()) names.emplace_back("fresh");
  if (info.interleaves()) names.emplace_back("interleaves");
  if (info.calls()) names.emplace_back("calls");
  if (info.jumps()) names.emplace_back("jumps");
  return join(names, ", ");
}

constexpr std::string_view kIntroduction = R"(# The instruction set

Generated from `src/vm/isa/opcodes.def`, `operand_kinds.def`, `arg_kinds.def`, `rules.def` and
`counterparts.def`; the comment at the top of `opcodes.def` is the manual of encoding and notation. A
test keeps this page up to date.

A function's code is a sequence of 64-bit words: for each instruction a header (opcode in bits 0-15,
number of operand words in bits 32-63, zeros between) and its operands (kind in bits 56-63, value below).
Parameters arrive in registers 0, 1, ...; all other registers start as None. `R[x]` is the register
that operand `x` names, and `V(x)` the operand's value, whatever its kind. Operands are read before
registers are written, except where the flag `interleaves` says otherwise.

A register may borrow: it holds an object without owning a reference to it. A parameter borrows if its
function says so (`x: &list[i64]` in assembly), and so does what `borrow_field`, or `move` of a borrowed
register, writes. Something else keeps the object alive: the caller's register, which only `call` lends, or
the object whose field it is. So a borrowing register can be matched, read from and passed on, but not
returned, stored or kept; the rule `borrowed` below says which instructions may name it.

## Instructions

)";

}  // namespace

std::string isa_document() {
  std::string out(kIntroduction);
  out += "| number | syntax | operands | semantics | flags | since |\n";
  out += "| --- | --- | --- | --- | --- | --- |\n";
  for (const OpcodeInfo& info : all_opcodes()) {
    std::string semantics(semantics_of(info.opcode));
    for (size_t at = 0; (at = semantics.find('|', at)) != std::string::npos; at += 2) {
      semantics.replace(at, 1, "\\|");
    }
    out += cat("| ", hex(static_cast<uint64_t>(info.opcode)), " | `", syntax(info), "` | `",
               operands(info), "` | ", semantics, " | ", flags(info), " | ", info.since, " |\n");
  }
  out += R"(
Flags: `ends`: control never reaches the next instruction; `fresh`: the result is a tensor whose elements
nothing has written yet; `interleaves`: the list's registers are written from left to right, each before
what follows is read, so that `=%r` in `match_shape` sees an earlier `->%r`; `calls`: instruments see the
instruction, before and after; `jumps`: there are labels among its operands.

## Operand kinds

`name:kind*` is a list of any length, `name:kind*rank` a list with at most as many items as a tensor
may have dimensions.

| kind | meaning |
| --- | --- |
)";
#define TENON_OPERAND_KIND(identifier, name, accepts, role, form, meaning) \
  out += cat("| ", name, " | ", meaning, " |\n");
#include "vm/isa/operand_kinds.def"
  out += R"(
## Kinds of operand word

| number | kind | value | text |
| --- | --- | --- | --- |
)";
#define TENON_ARG_KIND(identifier, number, name, value, text) \
  out += cat("| ", number, " | ", name, " | ", value, " | `", text, "` |\n");
#include "vm/isa/arg_kinds.def"
  out += R"(
## The verifier's rules

The verifier checks these rules in one linear pass before any of a file's code runs. It proves nothing
about the types of values in registers: an instruction compares the tag before it reads a payload.

| rule | requirement |
| --- | --- |
)";
#define TENON_RULE(identifier, name, text) out += cat("| ", name, " | ", text, " |\n");
#include "vm/isa/rules.def"
  out += cat("\nLimits: ", kMaxFunctions, " functions, constants and packed functions each; ",
             kMaxRegisters, " registers and ", kMaxParams, " parameters of a function; ",
             kMaxCodeWords, " words of its code; ", kMaxOperandWords,
             " operand words of an instruction; rank ", kMaxRank, ".\n");
  out += R"(
## Counterparts

The instructions and built-ins of published machines, and their counterparts in Tenon.

| document | there | here |
| --- | --- | --- |
)";
#define TENON_COUNTERPART(document, there, here) \
  out += cat("| ", document, " | ", there, " | ", here, " |\n");
#include "vm/isa/counterparts.def"
#undef TENON_COUNTERPART
  return out;
}

}  // namespace tenon::vm
