// Indexes of sharded weights. What is accepted can be written, and is the same then.
#include "common/checkpoint_format/index.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const auto index = ParseShardIndex({reinterpret_cast<const char*>(data), size}, "index.json");
  if (!index.ok()) {
    LS_CHECK(!index.status().message().empty(), "a refusal says why");
    return 0;
  }
  const auto again = ParseShardIndex(EncodeShardIndex(*index), "index.json");
  LS_CHECK(again.ok() && again->weight_map == index->weight_map && again->total_size == index->total_size,
           "an index that is read and written is the same");
  return 0;
}
