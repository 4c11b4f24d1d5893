#include "loop/dim.h"

#include <algorithm>
#include <memory>

#include "loop/dim_terms.h"
#include "object/object_budget.h"
#include "object/reflect.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon {

using dim_terms::make_node;
using dim_terms::Terms;

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15 + (h << 12) + (h >> 4);
  return h * 0xff51afd7ed558ccd;
}

uint64_t hash_text(std::string_view s) {
  uint64_t h = 0xcbf29ce484222325;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

}  // namespace

const TypeInfo& DimNode::type_info() {
  static const Field fields[] = {field("kind", &DimNode::kind),
                                 field("value", &DimNode::value),
                                 field("name", &DimNode::name),
                                 field("args", &DimNode::args),
                                 field("hash", &DimNode::hash, kIgnored | kHidden),
                                 field("depth", &DimNode::depth, kIgnored | kHidden)};
  static const TypeInfo info = [] {
    TypeInfo made = type_of<DimNode>("loop.Dim", fields);
    made.complete = [](Object& object) {
      dim_terms::complete_node(static_cast<DimNode*>(&object));
    };
    return made;
  }();
  return info;
}

Dim dim_terms::make_node(DimKind kind, const std::vector<Dim>& args, int64_t value,
                         std::string_view name) {
  auto node = make<DimNode>();
  node->kind = kind;
  node->value = value;
  uint64_t h = mix(static_cast<uint64_t>(kind) + 1, static_cast<uint64_t>(value));
  if (kind == DimKind::kSymbol) {
    node->name = String(name);
    h = mix(h, hash_text(name));
  }
  if (args.size() > kMaxTerms) {
    dim_terms::too_many_terms(args.size());
  }
  uint32_t depth = 0;
  for (const Dim& a : args) {
    h = mix(h, hash(a));
    depth = std::max(depth, a.node().depth);
  }
  node->args.reserve(args.size());
  for (const Dim& a : args) node->args.push_back(Ref<const DimNode>(&a.node()));
  node->depth = depth + 1;
  node->hash = h ? h : 1;
  if (node->depth > kMaxDepth) {
    throw SizeError(
        Error(ErrorKind::Usage, cat("a size expression is nested ", node->depth, " levels deep"))
            .expected(cat("at most ", kMaxDepth)));
  }
  return Dim(Ref<const DimNode>(std::move(node)));
}

Dim::Dim(int64_t value) {
  constexpr int64_t kFirst = -16, kLast = 256;
  static const std::vector<Dim>& cached = *[] {
    const ObjectBudget uncounted(nullptr);  // they aren't the first user's
    auto all = std::make_unique<std::vector<Dim>>();
    for (int64_t v = kFirst; v <= kLast; ++v) all->push_back(make_node(DimKind::kConst, {}, v));
    return all.release();  // never destroyed: Dims may outlive static objects
  }();
  *this = value >= kFirst && value <= kLast ? cached[static_cast<size_t>(value - kFirst)]
                                            : make_node(DimKind::kConst, {}, value);
}

Dim Dim::symbol(std::string_view name) {
  return make_node(DimKind::kSymbol, {}, 0, name);
}

std::optional<int64_t> Dim::as_const() const {
  if (!is_const()) return std::nullopt;
  return node().value;
}

bool Dim::operator==(const Dim& other) const {
  if (object() == other.object()) return true;
  if (node().hash && other.node().hash && node().hash != other.node().hash) return false;
  return dim_terms::compare(node(), other.node()) == 0;
}

uint64_t hash(const Dim& d) {
  const DimNode& n = d.node();
  if (n.hash) return n.hash;
  uint64_t h = mix(static_cast<uint64_t>(n.kind) + 1, static_cast<uint64_t>(n.value));
  if (n.kind == DimKind::kSymbol) h = mix(h, hash_text(n.name.view()));
  for (const Ref<const DimNode>& a : n.args) h = mix(h, hash(Dim(a)));
  return h ? h : 1;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_const(0)) return b;
  if (b.is_const(0)) return a;
  Terms terms = dim_terms::of(a);
  dim_terms::append(b.node(), 1, &terms);
  dim_terms::normalise(&terms);
  return dim_terms::build(terms);
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b.is_const(0)) return a;
  Terms terms = dim_terms::of(a);
  dim_terms::append(b.node(), -1, &terms);
  dim_terms::normalise(&terms);
  return dim_terms::build(terms);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const(1)) return b;
  if (b.is_const(1)) return a;
  if (a.is_const(0) || b.is_const(0)) return Dim(0);
  return dim_terms::build(dim_terms::multiply(dim_terms::of(a), dim_terms::of(b)));
}

Dim ceildiv(const Dim& a, const Dim& b) {
  return floordiv(a + b - Dim(1), b);
}

Dim product(const std::vector<Dim>& dims) {
  Dim p(1);
  for (const Dim& d : dims) p = p * d;
  return p;
}

}  // namespace tenon
