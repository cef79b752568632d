// Which checkpoints the rule of retention lets go, against a second reading of the rule.
#include "chief/checkpoint/retention.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

using Names = std::vector<std::string>;

// Saved every 100 steps, a minute each, all verified.
std::vector<RetentionCandidate> Saves(int count) {
  std::vector<RetentionCandidate> saves;
  for (int i = 0; i < count; ++i) {
    saves.push_back({.name = absl::StrCat(i * 100), .step = i * 100, .trained_ms = i * 60000, .verified = true});
  }
  return saves;
}

TEST_CASE("retention: the newest verified ones stay, and the last one in any case", "[retention]") {
  CHECK(ToRetire(Saves(5), {.keep_latest = 2}) == Names{"0", "100", "200"});
  CHECK(ToRetire(Saves(1), {.keep_latest = 1}).empty());
  CHECK(ToRetire(Saves(3), {.keep_latest = 0}) == Names{"0", "100"});
  CHECK(ToRetire({}, {}).empty());

  std::vector<RetentionCandidate> saves = Saves(5);
  saves[4].verified = false;
  CHECK(ToRetire(saves, {.keep_latest = 2}) == Names{"0", "100"});
  saves[3].stands = false;  // removed by hand
  CHECK(ToRetire(saves, {.keep_latest = 2}) == Names{"0"});
  saves[0].needed = true;
  CHECK(ToRetire(saves, {.keep_latest = 2}).empty());
}

TEST_CASE("retention: one of each distance stays for good, step 0 left out", "[retention]") {
  CHECK(ToRetire(Saves(10), {.keep_latest = 1, .keep_every_steps = 300}) ==
        Names{"0", "100", "200", "400", "500", "700", "800"});
  // The first one at or after a multiple: 500 after 450, 900 at 900.
  CHECK(ToRetire(Saves(11), {.keep_latest = 1, .keep_every_steps = 450}) ==
        Names{"0", "100", "200", "300", "400", "600", "700", "800"});
  CHECK(ToRetire(Saves(8), {.keep_latest = 1, .keep_every_ms = 180000}) == Names{"0", "100", "200", "400", "500"});
  // A distance below that of the saves lets none of them go.
  CHECK(ToRetire(Saves(8), {.keep_latest = 1, .keep_every_steps = 1}) == Names{"0"});
}

TEST_CASE("retention: where the one for a multiple is not verified, one that is stays with it", "[retention]") {
  std::vector<RetentionCandidate> saves = Saves(10);
  saves[3].verified = false;
  CHECK(ToRetire(saves, {.keep_latest = 1, .keep_every_steps = 300}) == Names{"0", "100", "200", "500", "700", "800"});
  saves[3].stands = false;  // gone: the next one stands for it
  CHECK(ToRetire(saves, {.keep_latest = 1, .keep_every_steps = 300}) ==
        Names{"0", "100", "200", "300", "500", "700", "800"});
}

TEST_CASE("retention: whatever is saved, verified and removed, enough stays", "[retention]") {
  std::mt19937 random(7);
  const auto below = [&](int bound) { return static_cast<int64_t>(random() % bound); };
  for (int round = 0; round < 3000; ++round) {
    const RetentionRule rule{
        .keep_latest = 1 + below(3), .keep_every_steps = below(3) * below(40), .keep_every_ms = below(2) * below(900)};
    std::vector<RetentionCandidate> saves;
    std::set<int64_t> reached;  // multiples that a verified one was there for, before any was let go
    int64_t step = 0;
    int64_t trained_ms = 0;
    for (int save = 0; save < 30; ++save) {
      saves.push_back({.name = absl::StrCat(step), .step = step, .trained_ms = trained_ms, .verified = true});
      if (rule.keep_every_steps > 0) reached.insert(step / rule.keep_every_steps);
      step += 1 + below(20);
      trained_ms += below(300);
      const Names gone = ToRetire(saves, rule);
      CAPTURE(round, save);
      std::erase_if(saves, [&](const auto& s) { return std::find(gone.begin(), gone.end(), s.name) != gone.end(); });
      REQUIRE(saves.size() >= std::min<size_t>(static_cast<size_t>(rule.keep_latest), static_cast<size_t>(save) + 1));
      REQUIRE(ToRetire(saves, rule).empty());  // what it left, it leaves
      std::set<int64_t> left;
      for (const RetentionCandidate& s : saves) {
        if (rule.keep_every_steps > 0) left.insert(s.step / rule.keep_every_steps);
      }
      left.insert(0);
      reached.insert(0);
      REQUIRE(left == reached);
    }
  }
}

}  // namespace
}  // namespace lockstep::chief
