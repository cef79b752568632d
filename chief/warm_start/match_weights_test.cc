#include "chief/warm_start/match_weights.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Names = std::vector<std::string>;

TensorSpec Spec(const std::string& name, Shape shape = {2}, DType dtype = DType::kF32) {
  return {name, dtype, std::move(shape)};
}

const std::vector<WantedTensor> kModel = {
    {Spec("body.0.weight", {4, 2}), ""}, {Spec("body.0.bias", {4}), ""}, {Spec("head.weight", {3, 4}), ""}};

absl::StatusOr<WeightMatch> Match(const std::vector<TensorSpec>& offered, const WeightRules& rules = {},
                                  const std::vector<WantedTensor>& wanted = kModel) {
  return MatchWeights(wanted, offered, rules, "THERE");
}

std::string MessageOf(const absl::StatusOr<WeightMatch>& match) {
  REQUIRE(match.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(match.status().message());
}

TEST_CASE("match weights: equal names, whatever their order", "[warm_start]") {
  const auto match = Match({Spec("head.weight", {3, 4}), Spec("body.0.bias", {4}), Spec("body.0.weight", {4, 2})});
  REQUIRE(match.ok());
  CHECK(match->taken == std::map<std::string, size_t>{{"body.0.weight", 2}, {"body.0.bias", 1}, {"head.weight", 0}});
  CHECK(match->missing.empty());
  CHECK(match->unused.empty());
}

TEST_CASE("match weights: everything that does not fit is said at once, with what to do", "[warm_start]") {
  const std::string message =
      MessageOf(Match({Spec("body.0.weight", {4, 3}), Spec("head.weight", {3, 4}), Spec("tail", {1})}));
  CHECK_THAT(message, Contains("body.0.weight is F32[4, 2] here and F32[4, 3] there"));
  CHECK_THAT(message,
             Contains("THERE lacks tensors of the model: body.0.bias") && Contains("model.from.allow_missing"));
  CHECK_THAT(message, Contains("tail; ") && Contains("model.from.allow_unused"));
}

TEST_CASE("match weights: long lists are cut", "[warm_start]") {
  std::vector<WantedTensor> wanted;
  for (int i = 0; i < 20; ++i) wanted.push_back({Spec(std::string(1, static_cast<char>('a' + i))), ""});
  CHECK_THAT(MessageOf(Match({}, {}, wanted)), Contains("g, h and 12 more"));
}

TEST_CASE("match weights: what may be missing or unused is by pattern, and listed", "[warm_start]") {
  const auto match = Match({Spec("body.0.weight", {4, 2}), Spec("body.0.bias", {4}), Spec("old.head", {9})},
                           {.allow_missing = {"head.*"}, .allow_unused = {"old.*"}});
  REQUIRE(match.ok());
  CHECK(match->missing == Names{"head.weight"});
  CHECK(match->unused == Names{"old.head"});
  CHECK(match->taken.size() == 2);
}

TEST_CASE("match weights: `only` leaves the rest as it begins, whatever the source calls so", "[warm_start]") {
  const auto match = Match({Spec("body.0.weight", {4, 2}), Spec("body.0.bias", {4}), Spec("head.weight", {1000, 4})},
                           {.only = {"body.*"}});
  REQUIRE(match.ok());
  CHECK(match->left_out == Names{"head.weight"});
  CHECK(match->taken.size() == 2);
  CHECK_THAT(MessageOf(Match({}, {.only = {"boody.*"}})), Contains("model.from.only") && Contains("boody.*"));
}

TEST_CASE("match weights: names are changed before they are compared", "[warm_start]") {
  const std::vector<TensorSpec> offered = {Spec("net.0.weight", {4, 2}), Spec("net.0.bias", {4}), Spec("out", {3, 4})};
  const auto match = Match(offered, {.rename = {{"net.*", "body.*"}, {"out", "head.weight"}}});
  REQUIRE(match.status() == absl::OkStatus());
  CHECK(match->taken == std::map<std::string, size_t>{{"body.0.weight", 0}, {"body.0.bias", 1}, {"head.weight", 2}});

  CHECK_THAT(MessageOf(Match(offered, {.rename = {{"nett.*", "body.*"}}})), Contains("matches 'nett.*'"));
  CHECK_THAT(MessageOf(Match(offered, {.rename = {{"net.*", "body.*"}, {"*.bias", "b.*"}}})),
             Contains("both '*.bias' and 'net.*' match net.0.bias"));
  CHECK_THAT(MessageOf(Match(offered, {.rename = {{"net.*", "x"}}})), Contains("both become x"));
  CHECK_THAT(MessageOf(Match(offered, {.rename = {{"out", "*"}}})), Contains("more than one *"));
  CHECK_THAT(MessageOf(Match(offered, {.rename = {{"*.*", "*"}}})), Contains("more than one *"));
}

TEST_CASE("match weights: one of a tensor's names is enough", "[warm_start]") {
  const std::vector<WantedTensor> tied = {{Spec("wte"), ""}, {Spec("lm_head"), "wte"}};
  CHECK(Match({Spec("wte")}, {}, tied).ok());
  const auto by_second = Match({Spec("lm_head")}, {}, tied);
  REQUIRE(by_second.ok());
  CHECK(by_second->taken == std::map<std::string, size_t>{{"lm_head", 0}});
  CHECK(Match({Spec("wte"), Spec("lm_head")}, {}, tied)->taken.size() == 2);
  CHECK_THAT(MessageOf(Match({}, {}, tied)), Contains("wte, lm_head"));
  CHECK(Match({}, {.allow_missing = {"wte"}}, tied)->missing == Names{"wte", "lm_head"});
  CHECK(Match({Spec("lm_head")}, {.only = {"wte"}}, tied)->taken.size() == 1);
}

TEST_CASE("match weights: a second name of the source serves, and none of them is left over", "[warm_start]") {
  const std::vector<WantedTensor> tied = {{Spec("wte"), ""}, {Spec("lm_head"), "wte"}};
  const std::vector<TensorSpec> offered = {Spec("head"), Spec("other")};
  const auto match = MatchWeights(tied, offered, {.allow_unused = {"other"}}, "THERE", {{"lm_head", 0}, {"wte", 0}});
  REQUIRE(match.status() == absl::OkStatus());
  CHECK(match->taken == std::map<std::string, size_t>{{"lm_head", 0}, {"wte", 0}});
  CHECK(match->unused == Names{"other"});

  // A first name goes before it.
  const auto first = MatchWeights(tied, {Spec("wte"), Spec("x")}, {.allow_unused = {"x"}}, "THERE", {{"wte", 1}});
  REQUIRE(first.status() == absl::OkStatus());
  CHECK(first->taken == std::map<std::string, size_t>{{"wte", 0}});
}

TEST_CASE("match weights: what the job counts itself may be there, and is not taken", "[warm_start]") {
  const std::vector<WantedTensor> wanted = {{Spec("w"), ""},
                                            {.spec = Spec("seen", {}, DType::kI64), .same_as = "step", .of_job = true}};
  for (const std::vector<TensorSpec>& offered :
       {std::vector{Spec("w")}, std::vector{Spec("w"), Spec("seen", {1}, DType::kI64)}}) {
    const auto match = Match(offered, {}, wanted);
    REQUIRE(match.ok());
    CHECK(match->taken == std::map<std::string, size_t>{{"w", 0}});
    CHECK(match->unused.empty());
  }
}

TEST_CASE("match weights: a type that holds all values of the other serves", "[warm_start]") {
  const std::vector<WantedTensor> wanted = {{Spec("w"), ""}};
  for (const DType type : {DType::kF16, DType::kBF16}) CHECK(Match({Spec("w", {2}, type)}, {}, wanted).ok());
  for (const DType type : {DType::kF64, DType::kI32}) {
    CHECK_THAT(MessageOf(Match({Spec("w", {2}, type)}, {}, wanted)), Contains("w is F32[2] here"));
  }
}

}  // namespace
}  // namespace lockstep::chief
