#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

std::string MakeTemporaryDirectory() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string directory = std::string(base != nullptr ? base : "/tmp") + "/checkpoint-XXXXXX";
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  return directory;
}

TEST_CASE("checkpoint: what was streamed in is published, verifies and reads back", "[checkpoint]") {
  for (const int shares : {1, 2, 4, 9}) {
    CAPTURE(shares);
    MemoryStorage storage;
    auto chief = SmallChief::Start(storage).value();
    const SmallState state(12);

    const auto published = chief->Save(state, shares);

    REQUIRE(published.status() == absl::OkStatus());
    CHECK(published->path == "checkpoints/step-000000012");
    CHECK(published->messages.empty());
    const auto reader = CheckpointReader::Open(storage, published->path);
    REQUIRE(reader.status() == absl::OkStatus());
    CHECK(reader->VerifyContent() == absl::OkStatus());
    CHECK(reader->ComputeDigests()->state == state.Digest());
    CHECK(reader->CheckLayout(state.layout) == absl::OkStatus());
    CHECK(reader->ReadJob().value() == "model: lenet\n");
    for (size_t i = 0; i < state.layout.size(); ++i) {
      std::string read(state.bytes[i].size(), '\0');
      REQUIRE(reader->ReadTensor(state.layout[i].spec.name, 0, absl::MakeSpan(read.data(), read.size())).ok());
      CHECK(read == state.bytes[i]);
    }
    for (const int restore : {1, 3}) {
      const SharePlan plan = PlanShares(state.layout, restore).value();
      for (int k = 0; k < restore; ++k) {
        std::string stream(plan.shares[k].bytes, '\0');
        for (size_t at = 0; at < stream.size(); at += 77) {
          const auto out = absl::MakeSpan(stream.data() + at, std::min<size_t>(77, stream.size() - at));
          REQUIRE(reader->ReadShare(state.layout, plan.shares[k], at, out).ok());
        }
        CHECK(stream == state.Stream(k, restore));
      }
    }
  }
}

TEST_CASE("checkpoint: files carry the names that PyTorch's tools look for", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();

  REQUIRE(chief->Save(SmallState(0), 1).ok());
  REQUIRE(chief->Save(SmallState(7), 2).ok());

  CHECK(Names(storage, "checkpoints/step-000000000") == std::vector<std::string>{"ema", "job.yaml", "manifest.json",
                                                                                 "model.safetensors", "optimizer",
                                                                                 "worker_stats.json"});
  CHECK(Names(storage, "checkpoints/step-000000000/optimizer") == std::vector<std::string>{"optimizer.safetensors"});
  CHECK(Names(storage, "checkpoints/step-000000007") ==
        std::vector<std::string>{"ema", "job.yaml", "manifest.json", "model-00001-of-00002.safetensors",
                                 "model-00002-of-00002.safetensors", "model.safetensors.index.json", "optimizer",
                                 "worker_stats.json"});
  CHECK(Names(storage, "checkpoints/step-000000007/optimizer") ==
        std::vector<std::string>{"optimizer-00001-of-00002.safetensors", "optimizer-00002-of-00002.safetensors",
                                 "optimizer.safetensors.index.json"});
  const std::string ema = "checkpoints/step-000000007/ema";
  CHECK(Names(storage, ema) == std::vector<std::string>{"model-00001-of-00002.safetensors",
                                                        "model-00002-of-00002.safetensors",
                                                        "model.safetensors.index.json"});
  // Under the model's names: whoever loads the model loads the average alike.
  const std::string index = ReadWholeFile(storage, JoinPath(ema, "model.safetensors.index.json"), 10000).value();
  CHECK_THAT(index, Catch::Contains("\"conv1.weight\"") && !Catch::Contains("lockstep.ema"));
  CHECK(ReadWholeFile(storage, "latest", 100).value() == "step-000000007\n");
  CHECK(Names(storage, "staging/term-000001").empty());
}

TEST_CASE("checkpoint: a share is taken leaf by leaf, from any sender", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  const SmallState state(3);
  std::shared_ptr<ShardSink> sink = ShardSink::Open(*chief->hold, state.Id(), state.layout, 2).value();
  const SharePiece& first = sink->share(0).pieces[0];
  const std::string leaf = state.bytes[static_cast<size_t>(first.tensor)];
  const auto accept = [&](int share, uint64_t offset, const std::string& bytes) {
    return sink->AcceptLeaf(share, offset, bytes, Sha256Of(bytes)).code();
  };

  CHECK(accept(2, 0, leaf) == absl::StatusCode::kInvalidArgument);
  CHECK(accept(-1, 0, leaf) == absl::StatusCode::kInvalidArgument);
  CHECK(accept(0, 0, leaf + "x") == absl::StatusCode::kInvalidArgument);
  CHECK(accept(0, 0, leaf.substr(1)) == absl::StatusCode::kInvalidArgument);
  CHECK(accept(0, 10, leaf) == absl::StatusCode::kOutOfRange);
  CHECK(accept(0, ~uint64_t{0}, "x") == absl::StatusCode::kOutOfRange);
  CHECK(sink->NextOffset(0) == 0);
  CHECK(sink->Finish().status().code() == absl::StatusCode::kFailedPrecondition);

  CHECK(accept(0, 0, leaf) == absl::StatusCode::kOk);
  CHECK(accept(0, 0, leaf) == absl::StatusCode::kOk);  // repeated
  CHECK(accept(0, 10, leaf) == absl::StatusCode::kInvalidArgument);
  CHECK(sink->NextOffset(0) == leaf.size());
  CHECK(SendShare(sink, state, 0) == absl::OkStatus());  // from another one, which begins at the beginning
  CHECK(sink->ShareComplete(0));
  CHECK_FALSE(sink->Complete());
  CHECK(SendShare(sink, state, 1) == absl::OkStatus());
  CHECK(sink->Complete());
  CHECK(accept(0, sink->share(0).bytes, "x") == absl::StatusCode::kInvalidArgument);
  CHECK(sink->Finish().status() == absl::OkStatus());
}

// Sends every share on a thread of its own, one byte per chunk, and returns what each was answered.
std::vector<absl::Status> SendSideBySide(const std::shared_ptr<ShardSink>& sink, const SmallState& state) {
  std::vector<absl::Status> answers(static_cast<size_t>(sink->shares()));
  std::vector<std::thread> senders;
  for (int share = 0; share < sink->shares(); ++share) {
    senders.emplace_back([&, share] { answers[static_cast<size_t>(share)] = SendShare(sink, state, share, 1); });
  }
  for (std::thread& sender : senders) sender.join();
  return answers;
}

TEST_CASE("checkpoint: shares are taken in side by side", "[checkpoint]") {
  const std::string directory = MakeTemporaryDirectory();
  auto storage = LocalStorage::Create(directory).value();
  auto chief = SmallChief::Start(*storage).value();
  const SmallState state(3);
  const std::shared_ptr<ShardSink> sink = ShardSink::Open(*chief->hold, state.Id(), state.layout, 4).value();

  SECTION("to the end") {
    for (const absl::Status& answer : SendSideBySide(sink, state)) CHECK(answer == absl::OkStatus());
    const auto published = chief->store->Publish(sink->Finish().value(), SmallCommit());
    REQUIRE(published.status() == absl::OkStatus());
    const auto reader = CheckpointReader::Open(*storage, published->path).value();
    CHECK(reader.VerifyContent() == absl::OkStatus());
  }
  SECTION("until the save is abandoned: nothing is left behind") {
    absl::Status abandoned;
    std::thread abandon([&] { abandoned = sink->Abandon(); });
    SendSideBySide(sink, state);
    abandon.join();
    CHECK(abandoned == absl::OkStatus());
    CHECK(sink->AcceptLeaf(0, 0, "x", Sha256Of("x")).code() == absl::StatusCode::kCancelled);
    CHECK(Names(*storage, "staging/term-000001").empty());
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("checkpoint: shards that do not make the announced digest are never published", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  SmallState state(3);
  const SnapshotId id = state.Id();
  const auto sink = ShardSink::Open(*chief->hold, id, state.layout, 1).value();
  state.bytes[0][5] = static_cast<char>(state.bytes[0][5] ^ 1);  // one bit, which nobody compared before
  for (const SharePiece& piece : sink->share(0).pieces) {
    const std::string& bytes = state.bytes[static_cast<size_t>(piece.tensor)];
    if (!bytes.empty()) REQUIRE(sink->AcceptLeaf(0, piece.begin, bytes, Sha256Of(bytes)).ok());
  }

  const auto finished = sink->Finish();

  CHECK(finished.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(finished.status().message()), Contains("step 3") && Contains(id.digest));
  CHECK(sink->Abandon().ok());
  CHECK(Names(storage, "staging/term-000001").empty());
  CHECK(sink->AcceptLeaf(0, 0, "x", Sha256Of("x")).code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("checkpoint: the same step with equal bits is success, with other bits an alarm", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  const SmallState state(5);
  REQUIRE(chief->Save(state, 2).ok());
  const std::string before = ReadWholeFile(storage, "checkpoints/step-000000005/manifest.json", 1 << 20).value();

  const auto again = chief->Save(state, 1);
  SmallState other(5);
  other.bytes[1][0] = static_cast<char>(other.bytes[1][0] ^ 1);
  const auto alarm = chief->Save(other, 2);

  REQUIRE(again.status() == absl::OkStatus());
  CHECK(again->existed);
  CHECK(alarm.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(alarm.status().message()),
             Contains("other bits") && Contains(state.Digest()) && Contains(other.Digest()));
  CHECK(ReadWholeFile(storage, "checkpoints/step-000000005/manifest.json", 1 << 20).value() == before);
  CHECK(Names(storage, "staging/term-000001").empty());
}

TEST_CASE("checkpoint: another lineage replaces an abandoned step, which is kept aside", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  REQUIRE(chief->Save(SmallState(5)).ok());

  SmallState other(5);
  other.bytes[1][0] = 'x';
  const auto replaced = chief->Save(other, 2, "line-2");

  REQUIRE(replaced.status() == absl::OkStatus());
  REQUIRE(replaced->messages.size() == 1);
  CHECK_THAT(replaced->messages[0], Contains("line-1") && Contains("line-2"));
  CHECK(CheckpointReader::Open(storage, "checkpoints/step-000000005")->manifest().state_digest() == other.Digest());
  CHECK(Names(storage, "set_aside") == std::vector<std::string>{"step-000000005-abandoned-term-000001"});
}

TEST_CASE("checkpoint: a save that cannot fit is refused before its first byte", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  StorageFaults faults;
  faults.capacity_bytes = 4096;
  storage.SetFaults(faults);

  const auto save = chief->Save(SmallState(1));

  CHECK(save.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(save.status().message()),
             Contains("needed") && Contains("available") && Contains("keep_latest"));
}

TEST_CASE("checkpoint: listings go newest first and say which ones are damaged", "[checkpoint]") {
  MemoryStorage storage;
  CHECK(ListCheckpoints(storage).value().empty());
  CHECK(OpenCheckpoint(storage, std::nullopt).status().code() == absl::StatusCode::kNotFound);
  auto chief = SmallChief::Start(storage, 5).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
  REQUIRE(storage.Truncate("checkpoints/step-000000020/manifest.json", 100).ok());

  const auto list = ListCheckpoints(storage).value();

  REQUIRE(list.size() == 3);
  CHECK(list[0].name == "step-000000020");
  CHECK(list[0].status.code() == absl::StatusCode::kDataLoss);
  CHECK(list[1].status.ok());
  CHECK(list[1].manifest.step() == 10);
  CHECK(OpenCheckpoint(storage, std::nullopt)->manifest().step() == 10);
  CHECK(OpenCheckpoint(storage, 0)->manifest().step() == 0);
  CHECK(OpenCheckpoint(storage, 20).status().code() == absl::StatusCode::kDataLoss);
  CHECK(OpenCheckpoint(storage, 15).status().code() == absl::StatusCode::kNotFound);
}

// Removes a checkpoint, as retention does, before the n-th file is opened.
class RacedByRetention final : public MemoryStorage {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override {
    if (before_removal-- == 0) {
      REQUIRE(const_cast<RacedByRetention*>(this)->Rename("checkpoints/step-000000010", "staging/removed").ok());
    }
    return MemoryStorage::OpenFile(path);
  }
  mutable int before_removal = -1;
};

TEST_CASE("checkpoint: who reads while retention removes never reports damage", "[checkpoint]") {
  bool finished = false;
  for (int at = 0; !finished; ++at) {
    CAPTURE(at);
    RacedByRetention storage;
    auto chief = SmallChief::Start(storage, 5).value();
    for (const int64_t step : {10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
    storage.before_removal = at;

    const auto list = ListCheckpoints(storage).value();
    const bool removed_in_list = storage.before_removal < 0;
    const auto opened = OpenCheckpoint(storage, 10);
    const absl::Status content = opened.ok() ? opened->VerifyContent() : opened.status();

    for (const CheckpointSummary& summary : list) CHECK(summary.status == absl::OkStatus());
    CHECK((content.ok() || absl::IsNotFound(content)));
    if (removed_in_list) CHECK(absl::IsNotFound(content));
    finished = storage.before_removal >= 0;
    CHECK(finished == content.ok());
  }
}

TEST_CASE("checkpoint: another state's layout is refused by its first difference", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  const SmallState state(1);
  REQUIRE(chief->Save(state).ok());
  const auto reader = OpenCheckpoint(storage, std::nullopt).value();
  const auto refusal = [&](const std::function<void(std::vector<CheckpointTensor>&)>& change) {
    std::vector<CheckpointTensor> layout = state.layout;
    change(layout);
    const absl::Status status = reader.CheckLayout(layout);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };

  CHECK(reader.CheckLayout(std::vector<CheckpointTensor>(state.layout.rbegin(), state.layout.rend())).ok());
  CHECK_THAT(refusal([](auto& layout) { layout.pop_back(); }),
             Contains("'lockstep.step', which the metagraph does not have"));
  CHECK_THAT(refusal([](auto& layout) {
               layout.push_back({"model", {"new", DType::kF32, {1}}});
             }),
             Contains("lacks tensor 'new'"));
  CHECK_THAT(refusal([](auto& layout) {
               layout[0].spec.shape = {6, 25};
             }),
             Contains("F32[6, 1, 5, 5]") && Contains("F32[6, 25]"));
}

TEST_CASE("checkpoint: on a real file system too, a chief's saves are found by the next one", "[checkpoint]") {
  const std::string directory = MakeTemporaryDirectory();
  const auto storage = LocalStorage::Create(directory).value();
  auto chief = SmallChief::Start(*storage, 2).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(chief->Save(SmallState(step)).status() == absl::OkStatus());
  const auto second = SmallChief::Start(*storage, 2);
  CHECK_THAT(std::string(second.status().message()), Contains("pid 17 on host alpha") && Contains(directory));
  chief.reset();

  const auto next = SmallChief::Start(*storage, 2);

  REQUIRE(next.status() == absl::OkStatus());
  CHECK((*next)->hold->term() == 2);
  CHECK((*next)->messages.empty());
  CHECK((*next)->newest->ComputeDigests()->state == SmallState(20).Digest());
  CHECK(Names(*storage, "checkpoints") == std::vector<std::string>{"step-000000010", "step-000000020"});
  CHECK(Names(*storage, "staging") == std::vector<std::string>{"term-000002"});
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace lockstep::chief
