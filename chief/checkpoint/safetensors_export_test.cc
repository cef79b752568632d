#include "chief/checkpoint/safetensors_export.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

struct Published {
  explicit Published(int shares) {
    const auto chief = SmallChief::Start(job).value();
    REQUIRE(chief->Save(state, shares).ok());
  }
  CheckpointReader Open() { return OpenCheckpoint(job, std::nullopt).value(); }

  MemoryStorage job;
  MemoryStorage home;
  SmallState state{7};
};

std::string BytesOf(const SafetensorsReader& file, const std::string& name) {
  const SafetensorsEntry* const entry = file.Find(name);
  REQUIRE(entry != nullptr);
  std::string bytes(entry->end - entry->begin, '\0');
  REQUIRE(file.Read(*entry, 0, absl::MakeSpan(bytes)).ok());
  return bytes;
}

TEST_CASE("export: one file holds the tensors of a group, bit for bit, from any number of shards", "[checkpoint]") {
  const int shares = GENERATE(1, 3);
  Published published(shares);
  uint64_t heard = 0;

  const auto exported = ExportSafetensors(published.Open(), kModelGroup, published.home, "model.safetensors",
                                          [&](uint64_t bytes) { heard += bytes; });

  REQUIRE(exported.status() == absl::OkStatus());
  CHECK(exported->tensors == 3);
  const auto file = SafetensorsReader::Open(published.home, "model.safetensors");
  REQUIRE(file.status() == absl::OkStatus());
  CHECK(file->header().entries.size() == 3);
  CHECK(heard == file->header().data_bytes);
  CHECK(exported->bytes == file->header().data_begin + file->header().data_bytes);
  CHECK(published.home.List("")->size() == 1);
  for (size_t i = 0; i < published.state.layout.size(); ++i) {
    if (published.state.layout[i].group != kModelGroup) continue;
    CHECK(BytesOf(*file, published.state.layout[i].spec.name) == published.state.bytes[i]);
  }
}

TEST_CASE("export: the average comes under the names of the weights", "[checkpoint]") {
  Published published(2);
  REQUIRE(ExportSafetensors(published.Open(), kEmaGroup, published.home, "average").ok());
  const auto file = SafetensorsReader::Open(published.home, "average");
  REQUIRE(file.ok());
  CHECK(BytesOf(*file, "conv1.bias") == published.state.bytes[5]);
  CHECK(ExportSafetensors(published.Open(), "none", published.home, "average").status().code() ==
        absl::StatusCode::kNotFound);
}

TEST_CASE("export: a damaged checkpoint leaves what was there", "[checkpoint]") {
  Published published(1);
  REQUIRE(WriteNewFile(published.home, "model.safetensors", "of before", Access::kShared).ok());
  const CheckpointReader reader = published.Open();
  const std::string path = JoinPath(reader.path(), "model.safetensors");
  std::string bytes = *ReadWholeFile(published.job, path, 1 << 20);
  bytes.back() ^= 1;
  REQUIRE(ReplaceFile(published.job, "scratch", path, bytes, Access::kShared).ok());

  const auto exported = ExportSafetensors(published.Open(), kModelGroup, published.home, "model.safetensors");

  CHECK(absl::IsDataLoss(exported.status()));
  CHECK_THAT(std::string(exported.status().message()), Contains("another digest"));
  CHECK(*ReadWholeFile(published.home, "model.safetensors", 100) == "of before");
  CHECK(published.home.List("")->size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
