#include "tests/simulation/seed_list.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep::simulation {

absl::StatusOr<std::vector<uint64_t>> ReadSeeds(const std::string& path) {
  std::ifstream file(path);
  if (!file.good()) return absl::NotFoundError(absl::StrCat("there is no list of seeds at ", path));
  std::vector<uint64_t> seeds;
  std::string line;
  while (std::getline(file, line)) {
    const std::string text(absl::StripAsciiWhitespace(line.substr(0, line.find('#'))));
    if (text.empty()) continue;
    if (!absl::SimpleAtoi(text, &seeds.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' in ", path, " is no seed"));
    }
  }
  return seeds;
}

}  // namespace lockstep::simulation
