#include "tests/simulation/model_disk.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::simulation {
namespace {

// Of a job that keeps two checkpoints. Step 30 is audited, and its best state is that of step 10.
class Kept {
 public:
  Kept() : oracle_(TinyJob{}, TrainingPolicy{}), disk_(nullptr, &oracle_) {
    disk_.CreateStaging(disk_.ClaimTerm());
    for (const uint64_t step : {0, 10, 20, 30}) Publish(step, true, 10);
  }

  void Publish(uint64_t step, bool audited, uint64_t best) {
    Manifest manifest;
    manifest.state = oracle_.reference().at(static_cast<int64_t>(step));
    manifest.snapshot = {"lineage", step, DigestText(manifest.state)};
    manifest.audited = audited;
    manifest.ledger.best_step = best;
    REQUIRE(disk_.Publish(1, manifest) == ModelDisk::PublishResult::kOk);
    disk_.Retain(2, keeps_best ? &manifest.ledger : nullptr);
  }

  std::vector<uint64_t> Steps() const {
    std::vector<uint64_t> steps;
    for (uint64_t step = 0; step <= 40; ++step) {
      if (disk_.At(step) != nullptr) steps.push_back(step);
    }
    return steps;
  }

  bool keeps_best = true;

 private:
  Oracle oracle_;
  ModelDisk disk_;
};

TEST_CASE("model disk: retention leaves the newest ones and the best", "[simulation]") {
  Kept kept;

  CHECK(kept.Steps() == std::vector<uint64_t>{10, 20, 30});
}

TEST_CASE("model disk: retention leaves the best as the newest audited checkpoint knows it, and the first one after it",
          "[simulation]") {
  Kept kept;

  for (const uint64_t step : {32, 34, 36, 38}) kept.Publish(step, false, 38);

  CHECK(kept.Steps() == std::vector<uint64_t>{10, 30, 32, 36, 38});
}

TEST_CASE("model disk: where the best is not kept only the newest and the audited one are", "[simulation]") {
  Kept kept;
  kept.keeps_best = false;

  for (const uint64_t step : {32, 34, 36}) kept.Publish(step, false, 34);

  CHECK(kept.Steps() == std::vector<uint64_t>{30, 34, 36});
}

}  // namespace
}  // namespace lockstep::simulation
