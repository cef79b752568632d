#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint_format/index.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/state_digest.h"
#include "common/graph/state_tensors.h"
#include "protos/stats.pb.h"

namespace lockstep {
namespace {

using Catch::Contains;

TEST_CASE("naming: steps and terms have one spelling each", "[naming]") {
  CHECK(layout::StepName(1200) == "step-000001200");
  CHECK(layout::StepName(12345678901) == "step-12345678901");
  CHECK(layout::ParseStepName("step-000001200") == 1200);
  CHECK(layout::ParseStepName("step-12345678901") == 12345678901);
  for (const char* other : {"step-1200", "step-0000001200", "step-00000120x", "step-", "step--00000001",
                            "step-+00000001", "Step-000001200", "step-000001200 ", "step-99999999999999999999"}) {
    CAPTURE(other);
    CHECK_FALSE(layout::ParseStepName(other).has_value());
  }
  CHECK(layout::TermPath(7) == "chief/term-000007");
  CHECK(layout::ParseTermName("term-000007") == 7);
  CHECK(layout::ShardPath("model", 0, 1) == "model.safetensors");
  CHECK(layout::ShardPath("model", 1, 3) == "model-00002-of-00003.safetensors");
  CHECK(layout::ShardPath("optimizer", 0, 2) == "optimizer/optimizer-00001-of-00002.safetensors");
  CHECK(layout::IndexPath("optimizer") == "optimizer/optimizer.safetensors.index.json");
  CHECK(layout::ShardPath("ema", 1, 3) == "ema/model-00002-of-00003.safetensors");
  CHECK(layout::IndexPath("ema") == "ema/model.safetensors.index.json");
}

std::vector<CheckpointTensor> SomeLayout(int tensors) {
  std::vector<CheckpointTensor> layout;
  for (int i = 0; i < tensors; ++i) {
    const std::string group(i % 3 == 0 ? kOptimizerGroup : kModelGroup);
    layout.push_back(
        {group, {absl::StrCat("t", i), i % 5 == 0 ? DType::kI64 : DType::kF32, {(i * 37) % 101, 1 + i % 3}}});
  }
  return layout;
}

TEST_CASE("shares: every tensor lies in one share, and shares are even up to the largest tensor", "[shares]") {
  for (const int tensors : {0, 1, 2, 10, 57}) {
    for (const int n : {1, 2, 3, 8, 64}) {
      CAPTURE(tensors, n);
      const auto layout = SomeLayout(tensors);

      const SharePlan plan = PlanShares(layout, n).value();

      REQUIRE(plan.shares.size() == static_cast<size_t>(n));
      std::set<int> seen;
      std::set<std::string> paths;
      uint64_t largest = 0, least = ~uint64_t{0}, most = 0;
      for (const Share& share : plan.shares) {
        uint64_t offset = 0;
        for (const SharePiece& piece : share.pieces) {
          CHECK(seen.insert(piece.tensor).second);
          CHECK(piece.begin == offset);
          CHECK(share.files[piece.file].group == layout[piece.tensor].group);
          offset += piece.bytes;
          largest = std::max(largest, piece.bytes);
        }
        CHECK(offset == share.bytes);
        least = std::min(least, share.bytes);
        most = std::max(most, share.bytes);
        for (const ShareFile& file : share.files) CHECK(paths.insert(file.path).second);
      }
      CHECK(seen.size() == static_cast<size_t>(tensors));
      CHECK(most - least <= largest);
    }
  }
}

TEST_CASE("shares: the plan is a function of names, sizes and n alone", "[shares]") {
  const std::vector<uint64_t> sizes = {5, 100, 40, 40, 15, 0};
  std::vector<uint64_t> loads(2, 0);
  CHECK(SpreadBySize(sizes, absl::MakeSpan(loads)) == std::vector<int>{1, 0, 1, 1, 1, 0});
  CHECK(loads == std::vector<uint64_t>{100, 100});
  const SharePlan plan = PlanShares(SomeLayout(10), 2).value();
  CHECK(plan.shares[0].files[0].path == "model-00001-of-00002.safetensors");
  CHECK(plan.shares[1].files[1].path == "optimizer/optimizer-00002-of-00002.safetensors");
}

TEST_CASE("shares: a layout that cannot be cut is refused", "[shares]") {
  CHECK(PlanShares(SomeLayout(3), 0).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_FALSE(PlanShares({{{"other", {"a", DType::kF32, {1}}}}}, 1).ok());
  CHECK_FALSE(PlanShares({{{"model", {"a", DType::kF32, {1}}}, {"optimizer", {"a", DType::kF32, {1}}}}}, 1).ok());
  CHECK_FALSE(PlanShares({{{"model", {"a", DType::kF32, {-1}}}}}, 1).ok());
  CHECK_FALSE(PlanShares({{{"ema", {"a", DType::kF32, {1}}}}}, 1).ok());
  CHECK(PlanShares({{{"ema", {"lockstep.ema.a", DType::kF32, {1}}}}}, 1).ok());
}

TEST_CASE("index: written as transformers writes it, and read back", "[index]") {
  ShardIndex index;
  index.total_size = 12;
  index.weight_map = {{"b", "model-00001-of-00002.safetensors"}, {"a", "model-00002-of-00002.safetensors"}};

  const std::string json = EncodeShardIndex(index);

  CHECK(json ==
        "{\n  \"metadata\": {\n    \"total_size\": 12\n  },\n  \"weight_map\": {\n"
        "    \"a\": \"model-00002-of-00002.safetensors\",\n    \"b\": \"model-00001-of-00002.safetensors\"\n  }\n}\n");
  CHECK(ParseShardIndex(json, "i")->weight_map == index.weight_map);
  CHECK(ParseShardIndex(json, "i")->total_size == 12);
}

TEST_CASE("index: malformed ones are refused by name", "[index]") {
  for (const char* json : {"", "{}", "[]", "{\"metadata\":{\"total_size\":1}}", "{\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":\"1\"},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":-1},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"../x\"}}",
                           "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"..\"}}",
                           "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":7}}",
                           "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}",
                           "{\"metadata\":{\"total_size\":1},\"weight_map\":{},\"other\":1}"}) {
    CAPTURE(json);
    const absl::Status status = ParseShardIndex(json, "the-index").status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(status.message()), Contains("the-index"));
  }
}

TEST_CASE("index: it and the files must agree both ways", "[index]") {
  const ShardIndex index{12, {{"a", "f1"}, {"b", "f2"}}};
  const auto check = [&](const std::map<std::string, std::set<std::string>>& found, uint64_t total) {
    return std::string(CheckShardIndex(index, found, total, "i").message());
  };
  CHECK(CheckShardIndex(index, {{"f1", {"a"}}, {"f2", {"b"}}}, 12, "i").ok());
  CHECK_THAT(check({{"f1", {"a"}}}, 12), Contains("'b' to f2, which is not there"));
  CHECK_THAT(check({{"f1", {"a"}}, {"f2", {}}}, 12), Contains("'b' to f2, which lacks it"));
  CHECK_THAT(check({{"f1", {"a", "c"}}, {"f2", {"b"}}}, 12), Contains("does not map 'c' to f1"));
  CHECK_THAT(check({{"f1", {"a"}}, {"f2", {"a", "b"}}}, 12), Contains("does not map 'a' to f2"));
  CHECK_THAT(check({{"f1", {"a"}}, {"f2", {"b"}}}, 13), Contains("total_size is 12"));
}

Manifest SomeManifest() {
  Manifest manifest;
  manifest.set_job_id("job");
  manifest.set_lineage("line");
  manifest.set_step(1200);
  manifest.set_term(7);
  manifest.set_position(int64_t{1} << 40);
  manifest.set_audited(true);
  const TensorSpec spec{"w", DType::kF32, {2}};
  const TensorDigests digests = DigestTensor(spec, "12345678");
  StateDigestBuilder state;
  state.Add("w", digests.digest).IgnoreError();
  ManifestTensor* tensor = manifest.add_tensors();
  tensor->set_name("w");
  tensor->set_group("model");
  tensor->set_dtype("F32");
  tensor->add_shape(2);
  tensor->set_file("model.safetensors");
  tensor->set_end(8);
  tensor->set_sha256(ToHex(digests.digest));
  tensor->add_leaves(ToHex(digests.leaves[0]));
  ManifestFile* file = manifest.add_files();
  file->set_path("model.safetensors");
  file->set_size(100);
  file->set_sha256(std::string(64, 'a'));
  manifest.set_state_digest(state.Hex());
  manifest.mutable_evaluations()->set_value(-std::numeric_limits<double>::infinity());
  return manifest;
}

TEST_CASE("manifest: written, read back, with numbers that scripts can read", "[manifest]") {
  Manifest manifest = SomeManifest();

  const std::string json = EncodeManifest(manifest).value();
  const auto parsed = ParseManifest(json, "m");

  REQUIRE(parsed.status() == absl::OkStatus());
  CHECK(parsed->SerializeAsString() == manifest.SerializeAsString());
  CHECK_THAT(json, Contains("\"step\": 1200,") && Contains("\"position\": 1099511627776,"));
  CHECK(ManifestLayout(*parsed) == std::vector<CheckpointTensor>{{"model", {"w", DType::kF32, {2}}}});
}

TEST_CASE("manifest: no single byte can change unseen", "[manifest]") {
  Manifest manifest = SomeManifest();
  const std::string json = EncodeManifest(manifest).value();
  for (size_t i = 0; i < json.size(); ++i) {
    std::string bad = json;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    CAPTURE(i, bad.substr(i > 20 ? i - 20 : 0, 40));
    CHECK_FALSE(ParseManifest(bad, "m").ok());
  }
  for (size_t cut = 0; cut + 1 < json.size(); cut += 7) CHECK_FALSE(ParseManifest(json.substr(0, cut), "m").ok());
}

TEST_CASE("manifest: one that contradicts itself is not written", "[manifest]") {
  const auto refused = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = SomeManifest();
    change(manifest);
    const auto json = EncodeManifest(manifest);
    return std::string(json.status().message());
  };
  CHECK_THAT(refused([](Manifest& m) { m.mutable_tensors(0)->set_end(9); }), Contains("another size"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_tensors(0)->set_file("other"); }), Contains("not listed"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_tensors(0)->set_dtype("F31"); }), Contains("dtype"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_tensors(0)->set_group("x"); }), Contains("group"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_files(0)->set_path("../x"); }), Contains("no path"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_files(0)->set_header_size(101); }), Contains("ends in its header"));
  CHECK_THAT(refused([](Manifest& m) { *m.add_tensors() = m.tensors(0); }), Contains("out of order"));
  CHECK_THAT(refused([](Manifest& m) { m.set_state_digest(std::string(64, '0')); }), Contains("state digest"));
  CHECK_THAT(refused([](Manifest& m) { m.set_term(0); }), Contains("term"));
  const std::string other(64, '0');
  CHECK_THAT(refused([&](Manifest& m) { m.mutable_tensors(0)->set_leaves(0, other); }), Contains("'w' has leaves"));
  CHECK_THAT(refused([&](Manifest& m) { m.mutable_tensors(0)->add_leaves(other); }), Contains("'w' has leaves"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_tensors(0)->clear_leaves(); }), Contains("'w' has leaves"));
  CHECK_THAT(refused([](Manifest& m) { m.mutable_tensors(0)->set_leaves(0, std::string(1, 'x')); }),
             Contains("'w' has leaves"));
}

TEST_CASE("manifest: a newer format is told apart from damage", "[manifest]") {
  Manifest manifest = SomeManifest();
  const std::string json = EncodeManifest(manifest).value();
  const std::string newer = absl::StrReplaceAll(json, {{"\"format_version\": 2", "\"format_version\": 3"}});
  CHECK(ParseManifest(newer, "m").status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("json: protos keep every field, and unknown or repeated keys are refused", "[json]") {
  WorkerStatsFile stats;
  stats.set_term(3);
  stats.mutable_job()->set_trained_seconds(0.25);
  stats.mutable_job()->mutable_goodput()->set_stepping(61);  // sections are printed too, and are there when read
  stats.mutable_job()->mutable_hooks();
  stats.add_workers()->set_samples(int64_t{1} << 53);
  stats.mutable_workers(0)->set_worker("worker-\"0\"");
  stats.mutable_workers(0)->set_step_ms_p50(1.5);

  const std::string json = ToJson(stats);
  WorkerStatsFile parsed;

  REQUIRE(FromJson(json, "s", &parsed).ok());
  CHECK(parsed.SerializeAsString() == stats.SerializeAsString());
  CHECK_THAT(json, Contains("\"samples\": 9007199254740992") && Contains("\"crashes\": 0"));
  CHECK(FromJson("{\"nonsense\":1}", "s", &parsed).code() == absl::StatusCode::kDataLoss);
  CHECK(FromJson("{\"term\":1,\"term\":2}", "s", &parsed).code() == absl::StatusCode::kDataLoss);
  CHECK(FromJson("", "s", &parsed).code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("json: where only what is set is printed, numbers are numbers too", "[json]") {
  WorkerStatsFile stats;
  stats.set_term(3);
  stats.set_lineage("5");
  stats.add_workers()->set_samples(-(int64_t{1} << 53));

  CHECK(
      ToSparseJson(stats) ==
      "{\n \"lineage\": \"5\",\n \"term\": 3,\n \"workers\": [\n  {\n   \"samples\": -9007199254740992\n  }\n ]\n}\n");
}

TEST_CASE("state: the layout of a metagraph becomes the layout of a checkpoint, in order", "[checkpoint]") {
  StateLayout layout;
  layout.tensors.push_back({{"w", DType::kF32, {2}}, StateGroup::kModel, StateKind::kParameter, "w"});
  layout.tensors.push_back({{"lockstep.ema.w", DType::kF32, {2}}, StateGroup::kEma, StateKind::kAverage, "w"});
  layout.tensors.push_back({{"lockstep.step", DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
  CHECK(ToCheckpointTensors(layout) ==
        std::vector<CheckpointTensor>{{"model", {"w", DType::kF32, {2}}},
                                      {"ema", {"lockstep.ema.w", DType::kF32, {2}}},
                                      {"optimizer", {"lockstep.step", DType::kI64, {}}}});
}

}  // namespace
}  // namespace lockstep
