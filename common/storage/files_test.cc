#include "common/storage/files.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/storage/may_pass.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep {
namespace {

using Catch::Contains;

TEST_CASE("files: one that is longer than its kind can be is damage, which nobody waits for", "[storage]") {
  MemoryStorage storage;
  REQUIRE(WriteNewFile(storage, "mark", "0123456789", Access::kShared).ok());

  const absl::Status read = ReadWholeFile(storage, "mark", 9).status();

  CHECK(ReadWholeFile(storage, "mark", 10).value() == "0123456789");
  CHECK(read.code() == absl::StatusCode::kDataLoss);
  CHECK_FALSE(MayPass(read));
  CHECK_THAT(std::string(read.message()), Contains("mark has 10 bytes") && Contains("at most 9"));
}

}  // namespace
}  // namespace lockstep
