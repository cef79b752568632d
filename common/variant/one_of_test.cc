#include "common/variant/one_of.h"

#include <catch2/catch.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/variant/one_of_definition.h"

namespace lockstep {
namespace {

struct Nothing {};
struct Count {
  int count = 0;
};
struct Words {
  std::vector<std::string> words;
};
struct Other {};

LS_ONE_OF(Value, std::variant<Nothing, Count, Words>);
LS_DEFINE_ONE_OF(Value)

// True of what a Value can be made from.
template <typename T>
constexpr bool kConverts = std::is_convertible_v<T, Value>;

TEST_CASE("A class of alternatives holds the first by default and each that is given to it") {
  Value value;
  CHECK(value.index() == 0);
  value = Count{3};
  CHECK(std::get<Count>(value).count == 3);
  const Words words{{"a", "b"}};
  value = words;
  CHECK(std::get_if<Words>(&value)->words == words.words);
  CHECK_FALSE(std::holds_alternative<Count>(value));
  CHECK(Value(Nothing{}).index() == 0);
}

TEST_CASE("A copy of a class of alternatives is a value of its own, and a move empties the source") {
  Value first = Words{{"a", "b"}};
  Value copy = first;
  std::get<Words>(copy).words.emplace_back("c");
  CHECK(std::get<Words>(first).words.size() == 2);
  const std::string* const kept = std::get<Words>(first).words.data();
  Value moved = std::move(first);
  CHECK(std::get<Words>(moved).words.data() == kept);
  copy = moved;
  CHECK(std::get<Words>(copy).words.size() == 2);
  copy = std::move(moved);
  CHECK(std::get<Words>(copy).words.data() == kept);
}

TEST_CASE("A visitor sees the alternative that a class of alternatives holds") {
  const std::vector<Value> values = {Nothing{}, Count{7}, Words{{"x"}}};
  std::vector<size_t> seen;
  for (const Value& value : values) {
    std::visit([&]<typename T>(const T&) { seen.push_back(AlternativeIndex<T, Value::Variant>::value); }, value);
  }
  CHECK(seen == std::vector<size_t>{0, 1, 2});
}

TEST_CASE("Only alternatives convert to a class of alternatives, and moving one cannot throw") {
  CHECK(kConverts<Count>);
  CHECK_FALSE(kConverts<Other>);
  CHECK_FALSE(kConverts<int>);
  CHECK(std::is_nothrow_move_constructible_v<Value>);
  CHECK(AlternativeIndex<Other, Value::Variant>::value == 3);
}

}  // namespace
}  // namespace lockstep
