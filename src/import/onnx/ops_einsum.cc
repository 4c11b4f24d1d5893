// Einsum, as transposes, sums and one matrix product per operand after the first.
//
// First, an operand with repeated labels is replaced by its diagonal. Then operands are multiplied
// two at a time: labels of both that are still needed become batch axes, labels of both that are
// not needed are contracted, and the others stay free. Labels of only one operand that are not
// needed are summed before.

#include <algorithm>
#include <string>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

constexpr size_t kMaxTerms = 64;

// An operand with a letter per axis; the axes of an ellipsis have letters from 0x80 on.
struct Term {
  Operand value;
  std::string labels;
};

bool has(const std::string& labels, char c) {
  return labels.find(c) != std::string::npos;
}

char ellipsis_label(size_t i) {
  return static_cast<char>(0x80 + i);
}

// The letters of a term of the equation; "..." stands for `own` axes, the last ones of `ellipsis`.
std::string labels_of(NodeContext& cx, const std::string& text, size_t own, size_t ellipsis) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0) {
      for (size_t k = ellipsis - own; k < ellipsis; ++k) out += ellipsis_label(k);
      i += 2;
    } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
      out += text[i];
    } else {
      cx.invalid(cat("the term ", tenon::quoted(text), " of the equation"),
                 "letters, and at most one ellipsis '...'");
    }
  }
  return out;
}

// x[i, i] along two axes: selects the diagonal with a mask and sums over the second axis.
Term diagonal(NodeContext& cx, Term t) {
  for (size_t i = 0; i < t.labels.size(); ++i) {
    size_t j;
    while ((j = t.labels.find(t.labels[i], i + 1)) != std::string::npos) {
      Dims dims = cx.dims(t.value);
      cx.b.check(graph::CheckKind::kEqual, dims[i], dims[j], "einsum: sizes of a repeated label");
      DataType dtype = cx.dtype(t.value);
      Operand eye =
          cx.op("eye", {},
                attrs({{"shape", graph::attr_dims({dims[i], dims[i]})}, {"dtype", Any(boolean)}}));
      Dims shape(dims.size(), Dim(1));
      shape[i] = shape[j] = dims[i];
      Operand kept = cx.op("where", {cx.reshape(eye, shape), t.value, cx.scalar(dtype, 0)});
      t.value = cx.reduce("reduce_sum", kept, {static_cast<int64_t>(j)}, false);
      t.labels.erase(j, 1);
    }
  }
  return t;
}

Term sum_away(NodeContext& cx, const Term& t, const std::string& needed) {
  Ints axes;
  Term out;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (has(needed, t.labels[i])) {
      out.labels += t.labels[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  out.value = axes.empty() ? t.value : cx.reduce("reduce_sum", t.value, axes, false);
  return out;
}

Operand arranged(NodeContext& cx, const Term& t, const std::string& order) {
  Ints perm;
  for (char c : order) perm.push_back(static_cast<int64_t>(t.labels.find(c)));
  return cx.transpose(t.value, perm);
}

Dims sizes(NodeContext& cx, const Term& t, const std::string& labels) {
  Dims all = cx.dims(t.value), out;
  for (char c : labels) out.push_back(all[t.labels.find(c)]);
  return out;
}

Term multiply(NodeContext& cx, Term left, Term right, const std::string& needed) {
  left = sum_away(cx, left, needed + right.labels);
  right = sum_away(cx, right, needed + left.labels);
  std::string batch, contracted, rows, columns;
  for (char c : left.labels) {
    (!has(right.labels, c) ? rows : has(needed, c) ? batch : contracted) += c;
  }
  for (char c : right.labels) {
    if (!has(left.labels, c)) columns += c;
  }
  Term out;
  out.labels = batch + rows + columns;
  Dims batch_left = sizes(cx, left, batch), batch_right = sizes(cx, right, batch);
  Dims rows_size = sizes(cx, left, rows), columns_size = sizes(cx, right, columns);
  if (contracted.empty()) {  // elementwise with broadcasting
    Dims l = batch_left, r = batch_right;
    l.insert(l.end(), rows_size.begin(), rows_size.end());
    l.resize(l.size() + columns.size(), Dim(1));
    r.resize(r.size() + rows.size(), Dim(1));
    r.insert(r.end(), columns_size.begin(), columns_size.end());
    out.value = cx.mul(cx.reshape(arranged(cx, left, batch + rows), l),
                       cx.reshape(arranged(cx, right, batch + columns), r));
    return out;
  }
  // A size of 1 broadcasts to the size in the other operand.
  for (char c : contracted) {
    size_t i = left.labels.find(c), j = right.labels.find(c);
    Dims l = cx.dims(left.value), r = cx.dims(right.value);
    if (l[i].is_const(1)) l[i] = r[j];
    if (r[j].is_const(1)) r[j] = l[i];
    left.value = cx.expand(left.value, l);
    right.value = cx.expand(right.value, r);
  }
  // [batch..., rows, contracted] x [batch..., contracted, columns]
  Dims inner_left = sizes(cx, left, contracted), inner_right = sizes(cx, right, contracted);
  for (size_t i = 0; i < inner_left.size(); ++i) {
    cx.b.check(graph::CheckKind::kEqual, inner_left[i], inner_right[i],
               "einsum: sizes of a contracted label");
  }
  Dims l = batch_left, r = batch_right;
  l.push_back(product(rows_size));
  l.push_back(product(inner_left));
  r.push_back(product(inner_left));
  r.push_back(product(columns_size));
  Operand y = cx.op("matmul", {cx.reshape(arranged(cx, left, batch + rows + contracted), l),
                               cx.reshape(arranged(cx, right, batch + contracted + columns), r)});
  Dims shape = cx.dims(y);  // whose batch sizes are broadcast
  shape.resize(batch.size());
  shape.insert(shape.end(), rows_size.begin(), rows_size.end());
  shape.insert(shape.end(), columns_size.begin(), columns_size.end());
  out.value = cx.reshape(y, shape);
  return out;
}

Operands einsum(NodeContext& cx) {
  std::string equation = cx.attr_string("equation", ""), output;
  std::erase(equation, ' ');
  size_t arrow = equation.find("->");
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
    equation.resize(arrow);
  }
  std::vector<std::string> texts(1);
  for (char c : equation) {
    if (c == ',') {
      texts.emplace_back();
    } else {
      texts.back() += c;
    }
  }
  if (texts.size() > kMaxTerms) cx.unsupported(cat(texts.size(), " terms not implemented"));
  if (texts.size() != cx.count())
    cx.invalid(cat("an equation of ", texts.size(), " terms"),
               cat(cx.count(), ", the number of operands"));
  std::vector<size_t> own(texts.size(), 0);
  size_t ellipsis = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].find("...") == std::string::npos) continue;
    size_t rank = static_cast<size_t>(cx.rank(i));
    if (rank + 3 < texts[i].size())
      cx.invalid(cat("the term ", tenon::quoted(texts[i]), " for operand ", i),
                 cat("at most ", rank, " labels, its rank"));
    own[i] = rank + 3 - texts[i].size();
    ellipsis = std::max(ellipsis, own[i]);
  }
  std::string all, out;
  std::vector<Term> terms;
  for (size_t i = 0; i < texts.size(); ++i) {
    Term t{cx.in(i), labels_of(cx, texts[i], own[i], ellipsis)};
    if (t.labels.size() != static_cast<size_t>(cx.rank(i))) {
      cx.invalid(cat("the term ", tenon::quoted(texts[i]), " for operand ", i),
                 cat(cx.rank(i), " labels, its rank"));
    }
    all += t.labels;
    terms.push_back(diagonal(cx, std::move(t)));
  }
  if (arrow != std::string::npos) {
    out = labels_of(cx, output, ellipsis, ellipsis);
  } else {
    // The ellipsis, then the letters that appear once, in order.
    for (size_t k = 0; k < ellipsis; ++k) out += ellipsis_label(k);
    for (char c = 'A'; c <= 'z'; ++c) {
      if (std::count(all.begin(), all.end(), c) == 1) out += c;
    }
  }
  for (char c : out) {
    if (!has(all, c) || std::count(out.begin(), out.end(), c) > 1)
      cx.invalid(cat("the label '", std::string(1, c), "' of the result"),
                 "labels of the operands, each once");
  }
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = out;
    for (size_t k = i + 1; k < terms.size(); ++k) needed += terms[k].labels;
    result = multiply(cx, result, terms[i], needed);
  }
  return {arranged(cx, sum_away(cx, result, out), out)};
}

}  // namespace

void register_einsum(OpTable& t) {
  t.add("Einsum", 12, einsum);
}

}  // namespace tenon::onnx
