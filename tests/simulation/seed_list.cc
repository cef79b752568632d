#include "tests/simulation/seed_list.h"

#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep::simulation {

absl::StatusOr<std::vector<ScenarioOptions>> ReadSeeds(const std::string& path) {
  std::ifstream file(path);
  if (!file.good()) return absl::NotFoundError(absl::StrCat("there is no list of seeds at ", path));
  std::vector<ScenarioOptions> schedules;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string profile, seed, store, more;
    if (!(words >> profile)) continue;
    ScenarioOptions& options = schedules.emplace_back();
    options.store = StoreKind::kModel;
    bool known = false;
    for (const Profile one : {Profile::kClassic, Profile::kSwarm, Profile::kWide}) {
      if (profile != NameOf(one)) continue;
      options.profile = one;
      known = true;
    }
    known = known && words >> seed && absl::SimpleAtoi(seed, &options.seed);
    if (words >> store) {
      known = known && store == NameOf(StoreKind::kReal);
      options.store = StoreKind::kReal;
    }
    if (!known || words >> more) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", line, "' in ", path, " is not a profile and a seed, and 'real' where it needs JobStore"));
    }
  }
  return schedules;
}

}  // namespace lockstep::simulation
