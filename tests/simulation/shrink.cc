#include "tests/simulation/shrink.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::simulation {
namespace {

constexpr uint64_t kSalts = 4;

class Shrinker {
 public:
  Shrinker(const ScenarioOptions& failing, uint64_t most_runs, const Runner& run)
      : run_(run), most_runs_(most_runs), best_{failing, run(failing), 1} {}

  Shrunk Run() {
    if (best_.result.violations.empty() || best_.result.planned.empty()) return best_;
    kind_ = KindOfViolation(best_.result.violations[0]);
    if (!best_.options.only.has_value()) {
      best_.options.only.emplace();
      for (size_t i = 0; i < best_.result.planned.size(); ++i) best_.options.only->insert(i);
    }
    for (size_t chunk = std::max<size_t>(best_.options.only->size() / 2, 1); chunk > 0; chunk /= 2) {
      while (Pass(chunk) && best_.runs < most_runs_) {
      }
    }
    return best_;
  }

 private:
  // Tries to leave out each `chunk` of faults; whether any could be.
  bool Pass(size_t chunk) {
    bool smaller = false;
    for (size_t begin = 0; begin < best_.options.only->size() && best_.runs < most_runs_;) {
      std::set<size_t> rest = *best_.options.only;
      const auto first = std::next(rest.begin(), static_cast<std::ptrdiff_t>(begin));
      const auto count = std::min(chunk, rest.size() - begin);
      rest.erase(first, std::next(first, static_cast<std::ptrdiff_t>(count)));
      if (StillFails(rest)) {
        smaller = true;
      } else {
        begin += chunk;
      }
    }
    return smaller;
  }

  bool StillFails(const std::set<size_t>& rest) {
    for (uint64_t salt = 0; salt < kSalts; ++salt) {
      ScenarioOptions options = best_.options;
      options.only = rest;
      options.salt = salt;
      ScenarioResult result = run_(options);
      ++best_.runs;
      if (result.violations.empty() || KindOfViolation(result.violations[0]) != kind_) continue;
      best_.options = options;
      best_.result = std::move(result);
      return true;
    }
    return false;
  }

  const Runner& run_;
  const uint64_t most_runs_;
  Shrunk best_;
  std::string kind_;
};

}  // namespace

std::string KindOfViolation(const std::string& violation) {
  std::string kind;
  for (const char c : violation) {
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!number) kind += c;
  }
  return kind;
}

Shrunk Shrink(const ScenarioOptions& failing, uint64_t most_runs, const Runner& run) {
  return Shrinker(failing, most_runs, run).Run();
}

}  // namespace lockstep::simulation
