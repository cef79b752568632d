// JSON as the files of a checkpoint hold it. What is accepted is not nested deeper than a reader follows.
#include <algorithm>

#include "common/checkpoint_format/strict_json.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

// Counts what is open.
class Depth final : public lockstep::JsonVisitor {
 public:
  using Path = std::vector<std::string>;
  absl::Status Text(const Path&, int, absl::string_view) override { return absl::OkStatus(); }
  absl::Status Unsigned(const Path&, int, uint64_t) override { return absl::OkStatus(); }
  absl::Status Other(const Path&, int, absl::string_view) override { return absl::OkStatus(); }
  absl::Status BeginObject(const Path&, int) override { return Begin(); }
  absl::Status EndObject(const Path&) override { return End(); }
  absl::Status BeginArray(const Path&, int) override { return Begin(); }
  absl::Status EndArray(const Path&) override { return End(); }

  int open = 0;
  int most = 0;

 private:
  absl::Status Begin() {
    most = std::max(most, ++open);
    return absl::OkStatus();
  }
  absl::Status End() {
    --open;
    return absl::OkStatus();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view json(reinterpret_cast<const char*>(data), size);
  Depth depth;
  const absl::Status parsed = lockstep::ParseStrictJson(json, depth);
  LS_CHECK(parsed.ok() == lockstep::CheckStrictJson(json).ok(), "a visitor that refuses nothing changes nothing");
  LS_CHECK(parsed.ok() || !parsed.message().empty(), "a refusal says why");
  LS_CHECK(depth.most <= 64, "the depth has a limit");
  LS_CHECK(!parsed.ok() || depth.open == 0, "what begins ends");
  return 0;
}
