#include "common/checkpoint_format/bucket_naming.h"

#include <catch2/catch.hpp>

namespace lockstep::layout {
namespace {

TEST_CASE("naming: the folder of a checkpoint tells its step, and in a bucket its term", "[checkpoint_format]") {
  CHECK(BucketCheckpointPath(1200, 7, "5f0c") == "checkpoints/step-000001200.t7-5f0c");
  CHECK(ParseCheckpointFolder("step-000001200") == CheckpointFolder{1200, std::nullopt});
  CHECK(ParseCheckpointFolder("step-000001200.t7-5f0c") == CheckpointFolder{1200, 7});

  for (const char* other :
       {"", "step-1200.t7-5f0c", "step-000001200.t0-5f0c", "step-000001200.t07-5f0c", "step-000001200.t7-",
        "step-000001200.t7", "step-000001200.7-a", "step-000001200.t7-a/b", "step-000001200.t7-a-b", "latest"}) {
    INFO(other);
    CHECK_FALSE(ParseCheckpointFolder(other).has_value());
  }
}

}  // namespace
}  // namespace lockstep::layout
