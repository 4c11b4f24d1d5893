#include "graph/ir/pattern.h"

#include <algorithm>
#include <map>

#include "graph/ir/expected_text.h"
#include "graph/ir/name_text.h"
#include "support/poll.h"

namespace tenon::graph {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::Usage, message);
}

// Counts the patterns of a walk and the levels that it is in. A pattern that a host made may have
// one field in many places.
class Measure {
 public:
  void enter() {
    poll();
    if (++depth_ > kMaxNesting) {
      fail(cat("patterns are nested deeper than ", kMaxNesting, " levels"));
    }
    if (++size_ > kMaxPatternSize) {
      fail(cat("the patterns of a match have more than ", kMaxPatternSize, " parts"));
    }
  }
  void leave() { --depth_; }

 private:
  int depth_ = 0;
  size_t size_ = 0;
};

void add_variables(const Pattern& pattern, Measure* measure, std::vector<VarRef>* out) {
  measure->enter();
  if (pattern.kind == PatternKind::kVariable) out->push_back(pattern.var);
  for (const PatternRef& field : pattern.fields) {
    if (!field) fail("a pattern is missing");
    add_variables(*field, measure, out);
  }
  measure->leave();
}

// The number that a constant pattern stands for; booleans are 0 and 1.
int64_t number_of(const Pattern& pattern) {
  return pattern.constant.as<Constant>()->value.v.i;
}

bool is_boolean(const TypeRef& type) {
  const auto* scalar = type.as<ScalarType>();
  return scalar && scalar->dtype == boolean;
}

// The smallest number from 0 on that no case has. The cases are in ascending order.
int64_t number_without(const std::vector<Decision::Case>& cases) {
  int64_t number = 0;
  for (const Decision::Case& c : cases) number += c.value == number;
  return number;
}

class Deciding {
 public:
  Deciding(const Match& match, const Signatures& signatures)
      : match_(match), signatures_(signatures), reached_(match.arms.size()) {}

  DecisionTree run() {
    tree_.parts.push_back({0, 0, 0, type_of(match_.value)});
    std::vector<Row> rows;
    for (size_t i = 0; i < match_.patterns.size(); ++i) {
      arm_ = i;
      Row row{static_cast<uint32_t>(i), {}};
      tree_.bound.emplace_back();
      if (!match_.patterns[i]) fail("a pattern is missing");
      add(*match_.patterns[i], 0, &row);
      rows.push_back(std::move(row));
    }
    tree_.root = decide(rows, 0);
    const auto unreached = std::ranges::find(reached_, false);
    if (unreached != reached_.end()) {
      const auto arm = static_cast<size_t>(unreached - reached_.begin());
      throw ArmError(arm,
                     cat("arm ", arm + 1,
                         " of match is never reached: the arms before it take every value that "
                         "fits it"));
    }
    return std::move(tree_);
  }

 private:
  struct Test {
    uint32_t part;
    const Pattern* pattern;  // a constant, a constructor or a tuple
  };
  // An arm, with what is left to test for it.
  struct Row {
    uint32_t arm;
    std::vector<Test> tests;
  };
  using Rows = std::vector<Row>;

  // A field of a part that `constructor` made, by its place, or of a tuple (0).
  struct FieldOf {
    uint32_t parent;
    int64_t constructor;
    uint32_t field;
    auto operator<=>(const FieldOf&) const = default;
  };
  uint32_t part_of(const FieldOf& of, uint32_t siblings, const TypeRef& type) {
    const auto [parent, constructor, field] = of;
    const auto [at, fresh] = numbers_.try_emplace(of, tree_.parts.size());
    if (fresh) tree_.parts.push_back({parent, field, siblings, type});
    return at->second;
  }

  // Passes look at a field without asking for the kind.
  static void require_fields_of_kind(const Pattern& pattern) {
    const PatternKind kind = pattern.kind;
    const bool has_parts = kind == PatternKind::kConstructor || kind == PatternKind::kTuple;
    if ((pattern.var && kind != PatternKind::kVariable) ||
        (pattern.constant && kind != PatternKind::kConstant) ||
        (!pattern.constructor.empty() && kind != PatternKind::kConstructor) ||
        (!pattern.fields.empty() && !has_parts)) {
      fail("a pattern has a field that its kind has no use for");
    }
  }

  // Checks the pattern and adds what it tests of the part to the row, and what it binds to the arm.
  void add(const Pattern& pattern, uint32_t part, Row* row) {
    measure_.enter();
    require_fields_of_kind(pattern);
    const TypeRef type = tree_.parts[part].type;
    require_bounded(type);
    Array<TypeRef> types;
    int64_t constructor = 0;
    switch (pattern.kind) {
      case PatternKind::kAny:
        break;
      case PatternKind::kVariable:
        bind(pattern, part);
        break;
      case PatternKind::kConstant:
        require_constant(pattern, type);
        row->tests.push_back({part, &pattern});
        break;
      case PatternKind::kConstructor:
        types = constructor_parts(pattern.constructor, type, signatures_);
        constructor = case_of(pattern);
        row->tests.push_back({part, &pattern});
        break;
      case PatternKind::kTuple:
        types = tuple_parts(type);
        break;
      default:
        fail("a pattern is of an unknown kind");
    }
    if (pattern.fields.size() != types.size()) {
      throw Error(ErrorKind::Usage,
                  cat("the pattern ", pattern.constructor, " has the wrong number of fields"))
          .found(cat(pattern.fields.size()))
          .expected(cat(types.size()));
    }
    for (uint32_t i = 0; i < types.size(); ++i) {
      const PatternRef& field = pattern.fields[i];
      if (!field) fail("a pattern is missing");
      add(*field, part_of({part, constructor, i}, static_cast<uint32_t>(types.size()), types[i]),
          row);
    }
    measure_.leave();
  }

  void bind(const Pattern& pattern, uint32_t part) {
    if (!pattern.var) fail("a pattern's variable is missing");
    const TypeRef& type = tree_.parts[part].type;
    if (!is_subtype(type, pattern.var->type, signatures_.variances())) {
      throw Error(ErrorKind::Usage,
                  cat("the pattern's variable %", pattern.var->name, " has the wrong type"))
          .found(to_text(pattern.var->type))
          .expected(to_text(type));
    }
    tree_.bound[arm_].push_back(part);
  }

  static const Test* test_of(const Row& row, uint32_t part) {
    const auto at = std::ranges::find(row.tests, part, &Test::part);
    return at == row.tests.end() ? nullptr : &*at;
  }

  int64_t case_of(const Pattern& pattern) const {
    if (pattern.kind == PatternKind::kConstant) return number_of(pattern);
    return signatures_.find_constructor(pattern.constructor).place;
  }

  // How many cases a part has; 0 if there is no end to them.
  size_t case_count(uint32_t part) const {
    const TypeRef& type = tree_.parts[part].type;
    if (is_boolean(type)) return 2;
    const auto* adt = type.as<AdtType>();
    return adt ? signatures_.find_type(adt->name)->constructors.size() : 0;
  }

  // The rows for which the part has each value that any of them asks for, and those for the others.
  struct Split {
    std::map<int64_t, Rows> cases;
    Rows others;
  };
  Split split(const Rows& rows, uint32_t part) {
    Split out;
    for (const Row& row : rows) {
      const Test* test = test_of(row, part);
      if (!test) {
        for (auto& [_, fitting] : out.cases) add_to(&fitting, row);
        add_to(&out.others, row);
        continue;
      }
      Row rest{row.arm, {}};
      std::ranges::copy_if(row.tests, std::back_inserter(rest.tests),
                           [part](const Test& t) { return t.part != part; });
      const auto [at, fresh] = out.cases.try_emplace(case_of(*test->pattern));
      if (fresh) {
        for (const Row& other : out.others) add_to(&at->second, other);
      }
      add_to(&at->second, std::move(rest));
    }
    return out;
  }

  void add_to(Rows* rows, Row row) {
    poll();
    if (++rows_made_ > kMostRows) refuse_many();
    rows->push_back(std::move(row));
  }

  [[noreturn]] static void refuse_many() {
    throw Error(ErrorKind::Unsupported, "the patterns of `match` take too many tests")
        .expected(cat("at most ", kMaxDecisions, " tests in all, ", kMaxDepth, " in a row"))
        .help("match the fields one after the other, in nested matches");
  }

  uint32_t decide(const Rows& rows, int depth) {
    if (rows.empty()) refuse_missing();
    if (tree_.decisions.size() >= kMaxDecisions || depth > kMaxDepth) refuse_many();
    const Row& first = rows.front();
    if (first.tests.empty()) return arm(first.arm);
    if (const uint32_t* known = find(rows)) return *known;
    const uint32_t part = first.tests.front().part;
    const Split split = this->split(rows, part);
    Decision made;
    made.part = part;
    made.kind = tree_.parts[part].type.is<AdtType>() ? Decision::Kind::kConstructor
                                                     : Decision::Kind::kNumber;
    for (const auto& [value, fitting] : split.cases) {
      known_[part] = value;
      made.cases.push_back({value, decide(fitting, depth + 1)});
    }
    if (made.cases.size() != case_count(part)) {
      known_[part] = number_without(made.cases);
      made.otherwise = decide(split.others, depth + 1);
    }
    known_.erase(part);
    return shared_[key_of(rows)] = push(std::move(made));
  }

  uint32_t push(Decision made) {
    tree_.decisions.push_back(std::move(made));
    return static_cast<uint32_t>(tree_.decisions.size() - 1);
  }

  uint32_t arm(uint32_t index) {
    reached_[index] = true;
    const auto [at, fresh] = arms_.try_emplace(index);
    if (fresh) at->second = push({Decision::Kind::kArm, index, 0, {}});
    return at->second;
  }

  // What is decided depends only on the arms and what is left to test for them.
  using Key = std::vector<uintptr_t>;
  static Key key_of(const Rows& rows) {
    Key key;
    for (const Row& row : rows) {
      key.push_back(row.arm);
      key.push_back(row.tests.size());
      for (const Test& test : row.tests) key.push_back(reinterpret_cast<uintptr_t>(test.pattern));
    }
    return key;
  }
  const uint32_t* find(const Rows& rows) const {
    const auto at = shared_.find(key_of(rows));
    return at == shared_.end() ? nullptr : &at->second;
  }

  // ---- a value that no arm takes ----

  [[noreturn]] void refuse_missing() const {
    throw Error(ErrorKind::Usage, cat("match does not cover all of ", to_text(tree_.parts[0].type),
                                      ": no arm takes ", example(0)))
        .help("add an arm for it; `_` takes all that the others don't");
  }

  std::string example(uint32_t part) const {
    const TypeRef& type = tree_.parts[part].type;
    const auto known = known_.find(part);
    const auto fields = [&](size_t count) {
      std::string out;
      for (uint32_t i = 0; i < count; ++i) {
        const auto at = numbers_.find({part, known == known_.end() ? 0 : known->second, i});
        out += cat(i ? ", " : "", at == numbers_.end() ? "_" : example(at->second));
      }
      return out;
    };
    if (const auto* tuple = type.as<TupleType>()) {
      if (!has_known_field(part)) return "_";
      return cat("(", fields(tuple->fields.size()), tuple->fields.size() == 1 ? ",)" : ")");
    }
    if (known == known_.end()) return "_";
    const auto* adt = type.as<AdtType>();
    if (!adt) return is_boolean(type) ? (known->second ? "true" : "false") : cat(known->second);
    const Constructor& made =
        *signatures_.find_type(adt->name)->constructors[static_cast<size_t>(known->second)];
    return made.fields.empty() ? made.name.str()
                               : cat(made.name, "(", fields(made.fields.size()), ")");
  }

  bool has_known_field(uint32_t part) const {
    return std::ranges::any_of(known_, [&](const auto& known) {
      uint32_t at = known.first;
      while (at != 0 && at != part) at = tree_.parts[at].parent;
      return at == part;
    });
  }

  static constexpr int kMaxDepth = 500;
  static constexpr size_t kMostRows = 1'000'000;  // in all splits

  const Match& match_;
  const Signatures& signatures_;
  Measure measure_;
  size_t arm_ = 0;  // whose pattern is added
  size_t rows_made_ = 0;
  DecisionTree tree_;
  std::map<FieldOf, uint32_t> numbers_;  // of parts
  std::map<uint32_t, int64_t> known_;    // the case of each part on the path
  std::map<uint32_t, uint32_t> arms_;    // the decision for each arm
  std::map<Key, uint32_t> shared_;
  std::vector<bool> reached_;  // by arm
};

}  // namespace

std::vector<VarRef> variables_of(const Pattern& pattern) {
  std::vector<VarRef> out;
  Measure measure;
  add_variables(pattern, &measure, &out);
  return out;
}

TypeRef join_arm(const TypeRef& before, const TypeRef& arm, size_t index,
                 const Variances& variances) {
  TypeRef joined = before ? join(before, arm, variances) : arm;
  if (joined) return joined;
  ArmError error(index, "the arms of `match` give values of different types");
  error.found(to_text(arm), cat("arm ", index + 1)).expected(to_text(before), "the arms before");
  throw error;
}

namespace {

// What may stand for a value of a type that has no constructors.
std::string patterns_of(const TypeRef& type) {
  if (const auto* tuple = type.as<TupleType>()) {
    const std::vector<std::string> fields(tuple->fields.size(), "_");
    return cat("(", tenon::join(fields, ", "), fields.size() == 1 ? ",)" : ")",
               ", a variable or _");
  }
  if (is_boolean(type)) return "true, false, a variable or _";
  const auto* scalar = type.as<ScalarType>();
  return scalar && scalar->dtype.is_int() ? "an integer, a variable or _" : "a variable or _";
}

}  // namespace

Array<TypeRef> constructor_parts(std::string_view constructor, const TypeRef& type,
                                 const Signatures& signatures) {
  const auto* adt = type.as<AdtType>();
  const ConstructorRef found = signatures.find_constructor(constructor);
  if (!adt || !found.adt || found.adt->name != adt->name) {
    Error e(ErrorKind::Usage, cat(constructor, " is not a constructor of ", to_text(type)));
    std::vector<std::string> names;
    const AdtDefinition* definition = adt ? signatures.find_type(adt->name) : nullptr;
    if (definition) {
      for (const auto& c : definition->constructors) names.push_back(c->name.str());
    }
    e.expected(names.empty() ? patterns_of(type) : some_of(names));
    suggest(&e, constructor, names);
    throw e;
  }
  return constructor_fields(found, adt->args);
}

Array<TypeRef> tuple_parts(const TypeRef& type) {
  const auto* tuple = type.as<TupleType>();
  if (!tuple) {
    throw Error(ErrorKind::Usage, "a tuple pattern for a value that is not a tuple")
        .found(to_text(type));
  }
  return tuple->fields;
}

void require_constant(const Pattern& pattern, const TypeRef& type) {
  const auto* constant = pattern.constant.as<Constant>();
  const auto* stated = constant ? constant->type.as<ScalarType>() : nullptr;
  if (!stated || stated->dtype.is_float()) {
    Error e(ErrorKind::Usage, "a pattern's constant is an integer, true or false");
    e.found(to_text(constant ? constant->type : type));
    throw e.help(cat("compare the value with ", stated ? "equal" : "string_equal",
                     " before the match, or in the arm of a variable"));
  }
  const Any& value = constant->value;
  const bool holds = stated->dtype.is_bool() ? value.type_index == TypeIndex::Bool
                                             : value.type_index == TypeIndex::Int &&
                                                   wrap_to(stated->dtype, value.v.i) == value.v.i;
  if (!holds) throw Error(ErrorKind::Usage, "a constant's type does not match its value");
  const auto* scalar = type.as<ScalarType>();
  if (scalar && scalar->dtype == stated->dtype) return;
  throw Error(ErrorKind::Usage, "the pattern's constant can't equal the value")
      .found(to_text(stated->dtype))
      .expected(to_text(type));
}

DecisionTree decide(const Match& match, const Signatures& signatures) {
  if (match.patterns.size() != match.arms.size()) fail("a match needs one arm per pattern");
  return Deciding(match, signatures).run();
}

}  // namespace tenon::graph
