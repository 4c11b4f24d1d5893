// Data types, their values, lists and options.
#include "test_program.h"

namespace {

using namespace tenon;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(CppDataType, ConstructorsMakeAndTakeApartCells) {
  const Constructor leaf = program().constructor("Leaf"), node = program().constructor("Node");
  EXPECT_EQ(node.tag(), 1);
  EXPECT_EQ(node.size(), 3u);
  const Cell tree = node(leaf, 7, node(leaf, 8, leaf));
  EXPECT_EQ(tree.tag(), 1);
  EXPECT_EQ(tree[1].as<int>(), 7);
  const auto fields = node.match<Cell, int64_t, Cell>(tree);
  ASSERT_TRUE(fields);
  const auto& [left, x, right] = *fields;
  EXPECT_EQ(x, 7);
  EXPECT_TRUE(leaf.made(left));
  EXPECT_EQ(right.fields()[1].as<int>(), 8);
  EXPECT_FALSE((node.match<Cell, std::string, Cell>(tree)));
  EXPECT_FALSE((node.match<Cell>(tree)));
  EXPECT_FALSE(leaf.match<>(tree));
  EXPECT_TRUE(leaf.match<>(left));
  EXPECT_FALSE(node.made(3));
  EXPECT_EQ(program()["label"](tree).as<int>(), 7);
  EXPECT_EQ(tree, node(leaf, 7, node(leaf, 8, leaf)));
}

TEST(CppDataType, AreTextByTheNamesOfConstructors) {
  const Constructor leaf = program().constructor("Leaf"), node = program().constructor("Node");
  const Cell tree = node(leaf, 1, node(leaf, 2, leaf));
  EXPECT_EQ(tree.repr(), "cell(1, cell(0), 1, cell(1, cell(0), 2, cell(0)))");
  const auto text = [](const Value& value, std::string_view type) {
    return program().repr(value, type);
  };
  EXPECT_EQ(text(tree, "tree[i64]"), "Node(Leaf, 1, Node(Leaf, 2, Leaf))");
  EXPECT_EQ(text(node(leaf, list({tree, Value(leaf)}), leaf), "tree[list[tree[i64]]]"),
            "Node(Leaf, [Node(Leaf, 1, Node(Leaf, 2, Leaf)), Leaf], Leaf)");
  EXPECT_EQ(text(Array{tree}, "(tree[i64],)"), "(Node(Leaf, 1, Node(Leaf, 2, Leaf)),)");
  EXPECT_EQ(text(Array{leaf, leaf}, "array[tree[i64]]"), "[Leaf, Leaf]");
  EXPECT_EQ(text(list({}), "list[i64]"), "[]");
  EXPECT_EQ(text(Value(), "()"), "()");
  EXPECT_EQ(text(Value(3), "i64"), "3");
  // Of another type, and of a shape that no constructor makes.
  EXPECT_EQ(text(tree, "list[i64]"), tree.repr());
  EXPECT_EQ(text(Cell(7, {}), "tree[i64]"), "cell(7)");
  EXPECT_THAT(caught<DamagedError>([&] { text(tree, "tree["); }), HasSubstr("wrongly"));
  // A deep one is cut.
  Cell deep = leaf();
  for (int i = 0; i < 100'000; ++i) deep = node(deep, i, leaf);
  EXPECT_THAT(text(deep, "tree[i64]"), testing::EndsWith("..."));
  EXPECT_THAT(text(list(std::vector<int>(100'000)), "list[i64]"), testing::EndsWith("..."));
}

TEST(CppDataType, WrongConstructorsAndFieldsAreErrors) {
  EXPECT_THAT(caught<UsageError>([] { program().constructor("Nod"); }),
              AllOf(HasSubstr("have no constructor of this name"), HasSubstr("Nod")));
  const Constructor leaf = program().constructor("Leaf"), node = program().constructor("Node");
  EXPECT_THAT(
      caught<UsageError>([&] { node(1); }),
      AllOf(HasSubstr("'Node' is given the wrong number of fields"), HasSubstr("expected  3")));
  EXPECT_THAT(caught<UsageError>([&] { node(leaf, 2, leaf)[3]; }),
              AllOf(HasSubstr("a cell has no field at this index"),
                    HasSubstr("expected  a number below 3")));
  EXPECT_THAT(caught<UsageError>([] { Value(3).as<Cell>(); }), HasSubstr("expected  cell"));
  EXPECT_EQ(Cell().tag(), -1);
  EXPECT_EQ(Cell().size(), 0u);
  const Cell odd(99, {});
  EXPECT_THAT(caught<ExecutionError>([&] { program()["label"](odd); }), HasSubstr("out of range"));
}

TEST(CppDataType, ConstructorsCheckTheTypesOfTheirFields) {
  const auto type = TypeDefinition::parse(
      "tx[T] { Deposit(i64, f64), Names(array[string], u8), Of(T, array[array[f32]]), Flag(bool) "
      "}");
  const Constructor deposit(type, 0), names(type, 1), of(type, 2), flag(type, 3);
  EXPECT_EQ(deposit(0, 10)[1].as<double>(), 10.0);
  EXPECT_EQ(deposit(0, 10)[1].type_index(), TENON_FLOAT);
  const auto refused = [](const auto& make) { return caught<UsageError>(make); };
  EXPECT_THAT(refused([&] { deposit(0.5, 10.0); }),
              AllOf(HasSubstr("field 0 of Deposit has another type"), HasSubstr("found     float"),
                    HasSubstr("expected  i64")));
  EXPECT_THAT(refused([&] { deposit(0, (int64_t{1} << 53) + 1); }), HasSubstr("expected  f64"));
  EXPECT_THAT(refused([&] { deposit(true, 1.0); }), HasSubstr("found     bool"));
  EXPECT_EQ(names(std::vector<std::string>{"ann", "a name that is longer"}, 255).size(), 2u);
  EXPECT_THAT(refused([&] { names(std::vector<std::string>{}, 256); }),
              AllOf(HasSubstr("found     int 256"), HasSubstr("expected  u8")));
  EXPECT_THAT(refused([&] {
                names(Array{"ann", 1}, 0);
              }),
              AllOf(HasSubstr("element 1 of field 0 of Names"), HasSubstr("expected  string")));
  EXPECT_THAT(refused([&] { names("ann", 0); }), HasSubstr("expected  array[string]"));
  // A type parameter takes anything, and integers become floats at any depth.
  const Cell nested = of("x", Array{Array{1, 2.5}, Array{}});
  EXPECT_EQ(nested[1].as<Array>()[0].as<Array>()[0].type_index(), TENON_FLOAT);
  EXPECT_THAT(refused([&] { flag(1); }), HasSubstr("expected  bool"));
  const Constructor leaf = program().constructor("Leaf"), node = program().constructor("Node");
  EXPECT_EQ(node(leaf, "any", leaf).size(), 3u);
  EXPECT_THAT(refused([&] { node(1, 2, leaf); }), HasSubstr("expected  tree[T]"));
}

TEST(CppDataType, ListsAndOptionsAreVectorsAndOptionals) {
  const Cell numbers = list({1, 2, 3});
  EXPECT_THAT(numbers.as<std::vector<int>>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(list(std::vector<bool>{true, false}).as<std::vector<bool>>(),
              ElementsAre(true, false));
  EXPECT_THAT(list(std::vector<int>()).as<std::vector<int>>(), SizeIs(0));
  EXPECT_THAT(list({list({1}), list({})}).as<std::vector<std::vector<int>>>(),
              ElementsAre(ElementsAre(1), SizeIs(0)));
  EXPECT_FALSE(list({1, "two"}).get_if<std::vector<int>>());
  EXPECT_FALSE(Cell(1, {1, 2}).get_if<std::vector<int>>());  // not ended by Nil
  EXPECT_THAT(program()["list"](numbers).as<std::vector<int64_t>>(), ElementsAre(1, 2, 3));

  using Option = std::optional<int>;
  EXPECT_EQ(some(3).as<Option>(), Option(3));
  EXPECT_EQ(none().as<Option>(), Option());
  EXPECT_EQ(Value(3).as<Option>(), Option(3));
  EXPECT_EQ(some(none()).as<std::optional<Option>>(), std::optional<Option>(Option()));
  EXPECT_EQ(none().as<std::optional<Option>>(), std::optional<Option>());
  EXPECT_EQ(option(Option(4)).as<Option>(), Option(4));
  EXPECT_EQ(option(Option()), none());
  EXPECT_TRUE(none().as<std::optional<Value>>()->is<Cell>());
}

TEST(CppDataType, LongListsNeedNoRecursion) {
  std::vector<int64_t> numbers(1'000'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_EQ(program()["list"](list(numbers)).as<std::vector<int64_t>>(), numbers);
}

TEST(CppDataType, TypesAreTakenApart) {
  const Type t =
      Type::parse("fn(list[(i64, tensor[n, \"a]b\"; f32])], option[bool]) -> (tree[u8],)");
  EXPECT_EQ(t.kind, Type::Kind::function);
  ASSERT_THAT(t.parts, SizeIs(3));
  EXPECT_EQ(t.parts[0].name, "list");
  const Type& pair = t.parts[0].parts[0];
  EXPECT_EQ(pair.kind, Type::Kind::tuple);
  EXPECT_EQ(pair.parts[0].kind, Type::Kind::scalar);
  EXPECT_EQ(pair.parts[1].kind, Type::Kind::tensor);
  EXPECT_EQ(pair.parts[1].name, "f32");
  EXPECT_EQ(t.text, "fn(list[(i64, tensor[n, \"a]b\"; f32])], option[bool]) -> (tree[u8],)");
  EXPECT_EQ(Type::parse("()").parts.size(), 0u);
  using Rank = std::optional<int>;
  EXPECT_EQ(pair.parts[1].rank, Rank(2));
  EXPECT_EQ(Type::parse("tensor[f32]").rank, Rank(0));
  EXPECT_EQ(Type::parse("tensor[max(n, 4); f32]").rank, Rank(1));
  EXPECT_EQ(Type::parse("tensor[rank=3; f32]").rank, Rank(3));
  EXPECT_EQ(Type::parse("tensor[*; f32]").rank, Rank());
  EXPECT_EQ(Type::parse("i64").rank, Rank());
  for (const char* none : {"", "list[", "(i64", "fn(i64)", "i64 i64", "array[]x", "tensor[n"}) {
    EXPECT_THROW(Type::parse(none), DamagedError) << none;
  }
  EXPECT_THROW(Type::parse(std::string(1000, '(')), DamagedError);
}

TEST(CppDataType, DefinitionsTellTheTypesOfFields) {
  const std::vector<TypeDefinition> types = program().types();
  ASSERT_THAT(types, SizeIs(2));
  EXPECT_EQ(types[0].text, "tree[T] { Leaf, Node(tree[T], T, tree[T]) }");
  EXPECT_EQ(types[1].text, detail::kListText);
  EXPECT_THAT(types[0].params, ElementsAre("T"));
  const std::vector<Type> fields = types[0].field_types(1, Type::parse("tree[(f32, bool)]"));
  ASSERT_THAT(fields, SizeIs(3));
  EXPECT_EQ(fields[0].text, "tree[(f32, bool)]");
  EXPECT_EQ(fields[1].text, "(f32, bool)");
  EXPECT_THROW(TypeDefinition::parse("tree { }"), DamagedError);
  EXPECT_THROW(TypeDefinition::parse("tree[T { A }"), DamagedError);
}

TEST(CppDataType, FieldsOfEverLargerTypesAreRefused) {
  const auto definition = TypeDefinition::parse("t[T] { A, B(t[(T, T)]) }");
  Type type = Type::parse("t[i64]");
  EXPECT_THAT(caught<UnsupportedError>([&] {
                for (;;) type = definition.field_types(1, type)[0];
              }),
              HasSubstr("too large to look at"));
}

TEST(CppDataType, ClosuresAreKeptAndTellTheirNames) {
  const Function add = program()["adder"](2).as<Function>();
  EXPECT_EQ(add(40).as<int>(), 42);
  EXPECT_THAT(add.repr(), testing::MatchesRegex("<closure @.*>"));
}

}  // namespace
