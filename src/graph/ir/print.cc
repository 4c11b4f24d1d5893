// The printer of IR text; docs/language.md has the grammar.

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/condition.h"
#include "graph/ir/name_text.h"
#include "graph/ir/op.h"
#include "graph/ir/print_kernel.h"
#include "graph/ir/text.h"
#include "graph/ir/walk.h"
#include "graph/ir/weights.h"
#include "object/reflect.h"
#include "object/string_tensor.h"
#include "support/output_file.h"
#include "support/poll.h"

namespace tenon::graph {

namespace {

// The keys of the large constants of a module, one per tensor, in order of appearance.
class Weights {
 public:
  std::string key(const Tensor& tensor, std::string_view name) {
    auto [at, is_new] = keys_.try_emplace(tensor.object());
    if (is_new) {
      std::string base(name.empty() ? std::string_view("weight") : name);
      std::string key = base;
      while (!used_.insert(key).second) key = cat(base, "_", next_[base]++);
      at->second = key;
      list.emplace_back(key, tensor);
    }
    return at->second;
  }
  std::vector<std::pair<std::string, Tensor>> list;

 private:
  std::unordered_map<const Object*, std::string> keys_;
  std::set<std::string> used_;
  std::unordered_map<std::string, int64_t> next_;
};

class Printer {
 public:
  Printer(const PrintOptions& options, Weights* weights) : options_(options), weights_(weights) {}

  void module(const Module& m) {
    if (!options_.weights_path.empty()) {
      line(0, cat("weights ", quoted(options_.weights_path)));
      out_ += "\n";
    }
    bool first = true;
    auto gap = [&] {
      if (!first) out_ += "\n";
      first = false;
    };
    for (const auto& [name, adt] : m->adts) {
      gap();
      adt_definition(name, *adt);
    }
    for (const auto& [name, kernel] : m->kernels) {
      gap();
      print_kernel(kernel, name, &out_);
    }
    for (const auto& [name, f] : m->functions) {
      gap();
      function(name, *f);
    }
  }

  void function(std::string_view name, const FunctionExpr& f) {
    names_.clear();
    used_names_.clear();
    next_name_.clear();
    read_.clear();
    next_number_ = 0;
    collect_reads(*f.body);
    out_ += cat("fn @", name_text(name));
    function_rest(0, f);
    out_ += "\n";
  }

  std::string take() { return std::move(out_); }

 private:
  void line(int indent, std::string_view text) {
    pad(indent);
    out_ += text;
    out_ += "\n";
  }
  void pad(int indent) { out_.append(static_cast<size_t>(indent) * 2, ' '); }

  void adt_definition(std::string_view name, const AdtDefinition& d) {
    out_ += cat("type ", name, type_params(d.type_params), " {");
    for (size_t i = 0; i < d.constructors.size(); ++i) {
      const Constructor& c = *d.constructors[i];
      out_ += cat(i ? ", " : " ", c.name);
      if (c.fields.empty()) continue;
      out_ += "(";
      for (size_t k = 0; k < c.fields.size(); ++k) {
        out_ += cat(k ? ", " : "", graph::to_text(c.fields[k]));
      }
      out_ += ")";
    }
    out_ += " }\n";
  }

  static std::string type_params(const Array<String>& names) {
    if (names.empty()) return "";
    std::string out;
    for (const String& n : names) out += (out.empty() ? "[" : ", ") + n.str();
    return out + "]";
  }

  // Prints a function from its type parameters to the closing brace.
  void function_rest(int indent, const FunctionExpr& f) {
    out_ += type_params(f.type_params) + "(";
    for (size_t i = 0; i < f.params.size(); ++i) {
      const Var& p = *f.params[i];
      out_ += cat(i ? ", " : "", name_of(p), ": ", graph::to_text(p.type));
    }
    out_ += cat(") -> ", graph::to_text(f.result_type), " ");
    if (!f.attrs.empty()) out_ += cat("attrs(", attrs_text(f.attrs, nullptr), ") ");
    block(indent, *f.body);
  }

  // ---- names ----

  // The name of a variable, which is unique in its function.
  const std::string& name_of(const Var& v) {
    auto [at, is_new] = names_.try_emplace(&v);
    if (!is_new) return at->second;
    std::string base = v.name.str(), name = base;
    if (base.empty()) name = cat(next_number_++);
    while (!used_names_.insert(name).second) {
      name = base.empty() ? cat(next_number_++) : cat(base, "_", ++next_name_[base]);
    }
    return at->second = "%" + name_text(name);
  }

  // Collects the variables that are read; the unit of a check rarely is. Recurses over nesting.
  void collect_reads(const Block& b) {
    for (const auto& binding : b.bindings) {
      const ExprRef& e = binding->value;
      for_each_operand(e, [&](const Operand& o) { read_.insert(o.get()); });
      for_each_block(e, [&](const BlockRef& inner) { collect_reads(*inner); });
    }
    read_.insert(b.result.get());
  }

  // ---- blocks ----

  void block(int indent, const Block& b) {
    out_ += "{\n";
    for (const auto& binding : b.bindings) {
      poll();
      pad(indent + 1);
      const Var& v = *binding->var;
      bool statement = binding->value.is<Check>() && read_.count(&v) == 0;
      const auto* literal = binding->value.as<FunctionExpr>();
      if (!statement) {
        out_ += name_of(v);
        bool stated = literal && same_type(v.type, type_of(*literal));  // by the literal
        if (!stated) out_ += ": " + graph::to_text(v.type);
        out_ += " = ";
      }
      rhs(indent + 1, binding->value);
      if (options_.show_spans && !binding->span.empty()) out_ += span_text(binding->span);
      out_ += "\n";
    }
    line(indent + 1, operand(b.result));
    pad(indent);
    out_ += "}";
  }

  static std::string span_text(const Span& s) {
    std::string out = " at(";
    if (!s.file.empty() || s.line) out += cat(quoted(s.file), ", ", s.line, ", ", s.column);
    for (size_t i = 0; i < s.nodes.size(); ++i) {
      if (i == 0) out += out.back() == '(' ? "nodes " : ", nodes ";
      out += cat(i ? ", " : "", quoted(s.nodes[i]));
    }
    return out + ")";
  }

  // ---- right-hand sides ----

  void rhs(int indent, const ExprRef& e) {
    switch (e->type_index) {
      case Call::kTypeIndex:
        out_ += call(*e.as<Call>());
        return;
      case FunctionExpr::kTypeIndex: {
        const auto* f = e.as<FunctionExpr>();
        out_ += "fn";
        if (f->self) out_ += " " + name_of(*f->self);
        return function_rest(indent, *f);
      }
      case If::kTypeIndex: {
        const auto* i = e.as<If>();
        out_ += cat("if ", operand(i->condition), " ");
        block(indent, *i->then_block);
        out_ += " else ";
        return block(indent, *i->else_block);
      }
      case Loop::kTypeIndex: {
        const auto* l = e.as<Loop>();
        out_ += "loop (";
        for (size_t i = 0; i < l->vars.size(); ++i) {
          const Var& v = *l->vars[i];
          std::string init = operand(l->init[i]);
          out_ += cat(i ? ", " : "", name_of(v), ": ", graph::to_text(v.type), " = ", init);
        }
        out_ += ") while ";
        block(indent, *l->condition);
        out_ += " ";
        return block(indent, *l->body);
      }
      case Match::kTypeIndex: {
        const auto* m = e.as<Match>();
        out_ += cat("match ", operand(m->value), " {\n");
        for (size_t i = 0; i < m->patterns.size(); ++i) {
          pad(indent + 1);
          out_ += pattern(*m->patterns[i]) + " => ";
          block(indent + 1, *m->arms[i]);
          out_ += "\n";
        }
        pad(indent);
        out_ += "}";
        return;
      }
      case Tuple::kTypeIndex: {
        const Array<Operand>& fields = e.as<Tuple>()->fields;
        out_ += cat("(", operands(fields), fields.size() == 1 ? ",)" : ")");
        return;
      }
      case Field::kTypeIndex:
        out_ += cat(operand(e.as<Field>()->tuple), ".", e.as<Field>()->index);
        return;
      case Construct::kTypeIndex: {
        const auto* c = e.as<Construct>();
        out_ += cat(c->constructor, type_args(c->type_args), "(", operands(c->fields), ")");
        return;
      }
      case Closure::kTypeIndex: {
        const auto* c = e.as<Closure>();
        out_ += cat("closure @", name_text(c->function), type_args(c->type_args), "(",
                    operands(c->captures), ")");
        return;
      }
      case Size::kTypeIndex:
        out_ += cat("size(", dim_text(e.as<Size>()->size), ")");
        return;
      case MatchShape::kTypeIndex: {
        const auto* m = e.as<MatchShape>();
        out_ += cat(m->elements ? "match_elements(" : "match_shape(", operand(m->value), ", ",
                    dims(m->dims), ")");
        return;
      }
      case Check::kTypeIndex: {
        const auto* c = e.as<Check>();
        out_ += "check " + condition_text(c->kind, c->left, c->right);
        if (!c->message.empty()) out_ += ", " + quoted(c->message);
        return;
      }
      default:
        TENON_ASSERT(false, "no right-hand side has the type ", e->type_index);
    }
  }

  static std::string type_args(const Array<TypeRef>& types) {
    std::string out;
    for (const TypeRef& type : types) out += cat(out.empty() ? "[" : ", ", graph::to_text(type));
    return types.empty() ? out : out + "]";
  }

  std::string pattern(const Pattern& p) {
    switch (p.kind) {
      case PatternKind::kAny:
        return "_";
      case PatternKind::kVariable:
        return name_of(*p.var);
      case PatternKind::kConstant:
        return operand(p.constant);
      case PatternKind::kConstructor:
      case PatternKind::kTuple:
        break;
    }
    std::string fields;
    for (const PatternRef& field : p.fields) {
      fields += cat(fields.empty() ? "" : ", ", pattern(*field));
    }
    if (p.kind == PatternKind::kTuple) return cat("(", fields, p.fields.size() == 1 ? ",)" : ")");
    return p.fields.empty() ? p.constructor.str() : cat(p.constructor, "(", fields, ")");
  }

  std::string call(const Call& c) {
    std::string out;
    const Operator* op = nullptr;
    switch (c.kind) {
      case CalleeKind::kOperator:
        out = c.callee.str();
        op = OperatorTable::global().find(c.callee);
        break;
      case CalleeKind::kGlobal:
        out = cat("@", name_text(c.callee), type_args(c.type_args));
        break;
      case CalleeKind::kClosure:
        out = operand(c.closure);
        break;
      case CalleeKind::kKernel:
        out = "kernel @" + name_text(c.callee);
        break;
      case CalleeKind::kPacked:
        out = "packed " + quoted(c.callee);
        break;
    }
    std::string args = operands(c.args), attrs;
    const bool integers =
        c.kind == CalleeKind::kKernel && c.attrs.size() == 1 && c.attrs.contains(kIntegersAttr);
    attrs = integers ? cat(kIntegersAttr, "=", dims(kernel_integers(c))) : attrs_text(c.attrs, op);
    out += cat("(", args, !args.empty() && !attrs.empty() ? ", " : "", attrs, ")");
    if (c.result_type) out += " -> " + graph::to_text(c.result_type);
    return out;
  }

  // Omits attributes that have their default.
  std::string attrs_text(const Attrs& attrs, const Operator* op) {
    std::string out;
    for (const auto& [name, value] : attrs) {
      const AttrSpec* spec = nullptr;
      if (op) {
        for (const AttrSpec& s : op->attrs) {
          if (name == s.name) spec = &s;
        }
      }
      if (spec && spec->default_text && structural_equal(value, spec->default_value)) continue;
      if (!out.empty()) out += ", ";
      bool sizes = spec && (spec->kind == AttrKind::kDim || spec->kind == AttrKind::kDims);
      out += cat(name, "=", value_text(value, sizes));
    }
    return out;
  }

  static std::string value_text(const Any& value, bool sizes) {
    if (value.is_none()) return "()";
    if (String::accepts(value)) return quoted(value.as<String>());
    switch (value.type_index) {
      case TypeIndex::Int:
        return cat(value.as<int64_t>());
      case TypeIndex::Bool:
        return value.as<bool>() ? "true" : "false";
      case TypeIndex::Float:
        return float_text(value.as<double>());
      case TypeIndex::DataType:
        return to_text(value.as<DataType>());
      case TypeIndex::Array: {
        std::string out;
        for (const Any& item : value.as<Array<Any>>()) {
          out += cat(out.empty() ? "[" : ", ", value_text(item, sizes));
        }
        return out.empty() ? "[]" : out + "]";
      }
      case DimNode::kTypeIndex: {
        std::string d = dim_text(value.as<Dim>());
        return sizes ? d : cat("dim(", d, ")");
      }
      default:
        TENON_ASSERT(false, "an attribute can't hold a ", type_name(value.type_index));
        return "";
    }
  }

  // ---- operands ----

  static std::string dims(const Array<Dim>& list) {
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) out += cat(i ? ", " : "", dim_text(list[i]));
    return out + "]";
  }

  std::string operands(const Array<Operand>& list) {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += cat(i ? ", " : "", operand(list[i]));
    return out;
  }

  std::string operand(const Operand& o) {
    if (!o) return "()";
    if (const auto* v = o.as<Var>()) return name_of(*v);
    const auto* c = o.as<Constant>();
    TENON_ASSERT(c, "an operand is a variable or a constant");
    return constant(*c);
  }

  static std::string integer(int64_t value, const TypeRef& type) {
    const auto* scalar = type_as<ScalarType>(type);
    const DataType dtype = scalar ? scalar->dtype : i64;
    if (dtype == i64) return cat(value);
    return cat(to_text(dtype), "(", element_text(dtype, &value), ")");
  }

  std::string constant(const Constant& c) {
    const Any& v = c.value;
    if (String::accepts(v)) return quoted(v.as<String>());
    switch (v.type_index) {
      case TypeIndex::Int:
        return integer(v.as<int64_t>(), c.type);
      case TypeIndex::Bool:
        return v.as<bool>() ? "true" : "false";
      case TypeIndex::Float: {
        const auto* s = type_as<ScalarType>(c.type);
        const DataType dtype = s ? s->dtype : f32;
        const double d = v.as<double>();
        const auto f = static_cast<float>(d);
        std::string number = dtype == f64 || d != d ? float_text(d) : element_text(f32, &f);
        return dtype == f32 ? number : cat(to_text(dtype), "(", number, ")");
      }
      case TypeIndex::Shape: {
        std::string out = "shape[";
        for (size_t i = 0; i < v.as<Shape>().size(); ++i) {
          out += cat(i ? ", " : "", v.as<Shape>()[i]);
        }
        return out + "]";
      }
      case TypeIndex::Tensor:
        return tensor(v.as<Tensor>(), c.name);
      default:
        TENON_ASSERT(false, "a constant can't hold a ", type_name(v.type_index));
        return "";
    }
  }

  std::string tensor(const Tensor& t, std::string_view name) {
    std::vector<Dim> shape(t.shape().begin(), t.shape().end());
    std::string out = graph::to_text(TypeRef(tensor_type(t.dtype(), shape)));
    std::string as = name.empty() ? "" : " as " + quoted(name);
    if (is_string_tensor(t)) return out + strings(t) + as;
    const bool is_large = t.count() > kMaxInlineElements;
    if (is_large && options_.weights_path.empty()) return out + "{...}" + as;
    if (is_large && weight_file_holds(t.dtype())) {
      std::string key = weights_->key(t, name);
      return out + " from " + quoted(key) + (key == name ? "" : as);
    }
    TENON_ASSERT(t.compact() && t.device().device_type == kDLCPU,
                 "a constant is compact and on the CPU: ", to_text(t));
    out += "{";
    for (int64_t i = 0; i < t.count(); ++i) {
      out += i ? ", " : "";
      out += element_text(t.dtype(), t.data_as<char>() + i * t.dtype().bytes());
    }
    return out + "}" + as;
  }

  // Weight files don't hold strings, so that text holds all of a constant if it is to be complete.
  std::string strings(const Tensor& t) const {
    if (t.count() > kMaxInlineElements && options_.weights_path.empty()) return "{...}";
    const Strings elements(t);
    std::string out = "{";
    for (int64_t i = 0; i < elements.size(); ++i) out += cat(i ? ", " : "", quoted(elements[i]));
    return out + "}";
  }

  const PrintOptions& options_;
  Weights* weights_;
  std::string out_;
  std::unordered_map<const Var*, std::string> names_;
  std::unordered_set<std::string> used_names_;
  std::unordered_map<std::string, int64_t> next_name_;
  std::unordered_set<const Expr*> read_;
  int64_t next_number_ = 0;
};

}  // namespace

std::string to_text(const Module& module, const PrintOptions& options) {
  Weights weights;
  Printer p(options, &weights);
  p.module(module);
  return p.take();
}

std::string to_text(const FunctionRef& function, const PrintOptions& options) {
  Weights weights;
  Printer p(options, &weights);
  p.function(function->name.empty() ? std::string_view("f") : function->name.view(), *function);
  return p.take();
}

std::string to_text(const loop::KernelInterfaceRef& kernel, std::string_view name) {
  std::string out;
  print_kernel(kernel, name, &out);
  return out;
}

std::string weights_path(const std::string& path) {
  return path + ".weights";
}

void save_module(const Module& module, const std::string& path) {
  size_t slash = path.rfind('/');
  PrintOptions options;
  options.weights_path = weights_path(path.substr(slash == std::string::npos ? 0 : slash + 1));
  Weights weights;
  Printer p(options, &weights);
  p.module(module);
  std::string text = p.take();
  if (weights.list.empty()) {
    text.erase(0, text.find("\n\n") + 2);  // the line that names the weight file
  } else {
    write_weights(weights_path(path), weights.list);
  }
  write_file(path, text);
}

}  // namespace tenon::graph
