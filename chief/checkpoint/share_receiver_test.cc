#include "chief/checkpoint/share_receiver.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

struct OpenSave {
  explicit OpenSave(const SmallState& state, int shares = 1)
      : chief(SmallChief::Start(storage).value()),
        sink(ShardSink::Open(*chief->hold, state.Id(), state.layout, shares).value()) {}

  MemoryStorage storage;
  std::unique_ptr<SmallChief> chief;
  std::shared_ptr<ShardSink> sink;
};

absl::Status Add(ShareReceiver& receiver, absl::string_view bytes) { return receiver.Add(bytes, Crc32c(bytes)); }

TEST_CASE("share receiver: chunks of any size make the same files", "[checkpoint]") {
  const LargeState state;
  std::vector<std::string> manifests;
  for (const size_t chunk : {size_t{1} << 20, size_t{kLeafBytes}, size_t{3'000'001}, size_t{64} << 20}) {
    OpenSave save(state);
    REQUIRE(SendShare(save.sink, state, 0, chunk) == absl::OkStatus());
    const auto published = save.chief->store->Publish(save.sink->Finish().value(), SmallCommit());
    REQUIRE(published.status() == absl::OkStatus());
    const CheckpointReader reader = CheckpointReader::Open(save.storage, published->path).value();
    CHECK(reader.VerifyContent() == absl::OkStatus());
    CHECK(reader.ComputeDigests()->state == state.Digest());
    manifests.push_back(reader.manifest().SerializeAsString());
  }
  for (const std::string& manifest : manifests) CHECK(manifest == manifests[0]);
}

TEST_CASE("share receiver: a wrong byte is blamed on its tensor and range, and another sender goes on from there",
          "[checkpoint]") {
  const LargeState state;
  OpenSave save(state);
  LargeState flipped;
  flipped.bytes[0][kLeafBytes + 7] = 'b';
  const std::string wrong = flipped.Stream(0, 1);
  const size_t large = save.sink->share(0).pieces[0].tensor == 0 ? 0 : save.sink->share(0).pieces[1].begin;

  // The digests are those that were announced; the bytes changed in the sender's memory since.
  ShareReceiver receiver = BeginShare(save.sink, state, 0).value();
  absl::Status status;
  for (size_t at = 0; at < wrong.size() && status.ok(); at += 1 << 20)
    status = Add(receiver, wrong.substr(at, 1 << 20));

  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(status.message()),
             Contains("'large'") && Contains(absl::StrCat("bytes ", kLeafBytes, " to ", 2 * kLeafBytes)));
  CHECK(save.sink->NextOffset(0) == large + kLeafBytes);  // nothing of the wrong leaf was written
  CHECK(SendShare(save.sink, state, 0, 1 << 20) == absl::OkStatus());
  CHECK(save.sink->Finish().status() == absl::OkStatus());
}

TEST_CASE("share receiver: what another sender brought is not asked of this one again", "[checkpoint]") {
  const LargeState state;
  OpenSave save(state);
  const std::string stream = state.Stream(0, 1);
  ShareReceiver first = BeginShare(save.sink, state, 0).value();
  REQUIRE(Add(first, stream.substr(0, kLeafBytes + 100)) == absl::OkStatus());
  const uint64_t there = save.sink->NextOffset(0);
  REQUIRE(there > 0);

  std::string second = stream;
  second[0] = static_cast<char>(second[0] ^ 1);  // of what is there already
  ShareReceiver receiver = BeginShare(save.sink, state, 0).value();
  CHECK(Add(receiver, second) == absl::OkStatus());
  CHECK(receiver.End() == absl::OkStatus());

  // The first one goes on as if nothing had been.
  CHECK(Add(first, stream.substr(kLeafBytes + 100)) == absl::OkStatus());
  CHECK(first.End() == absl::OkStatus());
  CHECK(save.sink->Finish().status() == absl::OkStatus());
}

TEST_CASE("share receiver: digests that do not make the announced one are refused before any byte", "[checkpoint]") {
  const LargeState state;
  OpenSave save(state);
  const ShareProof proof = ProofOf(state.Digests(), save.sink->share(0));
  const std::string tensors = TensorDigestBytes(proof);
  const std::string leaves = LeafDigestBytes(proof);
  const auto begin = [&](uint32_t share, const std::string& of_tensors, const std::string& of_leaves) {
    return ShareReceiver::Begin(save.sink, share, of_tensors, of_leaves).status();
  };
  const auto flip = [](std::string bytes, size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };

  CHECK(begin(0, tensors, leaves) == absl::OkStatus());
  CHECK(begin(1, tensors, leaves).code() == absl::StatusCode::kInvalidArgument);
  CHECK(begin(~uint32_t{0}, tensors, leaves).code() == absl::StatusCode::kInvalidArgument);
  for (size_t at = 0; at < tensors.size(); ++at) {
    CHECK(begin(0, flip(tensors, at), leaves).code() == absl::StatusCode::kDataLoss);
  }
  for (size_t at = 0; at < leaves.size(); ++at) {
    CHECK(begin(0, tensors, flip(leaves, at)).code() == absl::StatusCode::kDataLoss);
  }
  for (const std::string& more : {tensors + tensors, tensors.substr(1), tensors.substr(32), std::string()}) {
    CHECK(begin(0, more, leaves).code() == absl::StatusCode::kInvalidArgument);
  }
  for (const std::string& more : {leaves + leaves, leaves.substr(1), leaves.substr(32), std::string()}) {
    CHECK(begin(0, tensors, more).code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("reader: leaves are verified on several threads, and the first that is wrong is named", "[checkpoint]") {
  const std::string directory = absl::StrCat(std::getenv("TEST_TMPDIR"), "/threads");
  const auto storage = LocalStorage::Create(directory).value();
  const LargeState state;
  {
    const auto chief = SmallChief::Start(*storage).value();
    REQUIRE(chief->Save(state, 1).status() == absl::OkStatus());
  }
  const std::string path = layout::CheckpointPath(9);
  const CheckpointReader reader = CheckpointReader::Open(*storage, path).value();
  for (const int threads : {1, 2, 8}) {
    uint64_t heard = 0;
    CHECK(reader.VerifyContent(
              nullptr, [&heard](uint64_t more) { heard += more; }, threads) == absl::OkStatus());
    CHECK(heard == state.bytes[0].size() + state.bytes[2].size());
  }
  const std::atomic<bool> stop = true;
  CHECK(absl::IsCancelled(reader.VerifyContent(&stop, nullptr, 4)));

  const std::string file = JoinPath(path, "model.safetensors");
  std::string bytes = ReadWholeFile(*storage, file, 64 << 20).value();
  const size_t large = bytes.find(std::string(1000, 'a'));
  for (const size_t leaf : {0, 2}) bytes[large + leaf * kLeafBytes] = 'b';
  REQUIRE(ReplaceFile(*storage, "scratch", file, bytes, Access::kShared).ok());
  const CheckpointReader damaged = CheckpointReader::Open(*storage, path).value();
  for (const int threads : {1, 4}) {
    CHECK_THAT(std::string(damaged.VerifyContent(nullptr, nullptr, threads).message()),
               Contains("'large'") && Contains("was damaged"));
  }
}

TEST_CASE("share receiver: damage on the way, a stream that ends early and one that goes on are errors",
          "[checkpoint]") {
  const SmallState state(3);
  OpenSave save(state, 2);
  const std::string stream = state.Stream(1, 2);

  ShareReceiver damaged = BeginShare(save.sink, state, 1).value();
  CHECK(damaged.Add(stream, Crc32c(stream) ^ 1).code() == absl::StatusCode::kAborted);
  CHECK(save.sink->NextOffset(1) == 0);

  ShareReceiver early = BeginShare(save.sink, state, 1).value();
  REQUIRE(Add(early, stream.substr(0, stream.size() - 1)) == absl::OkStatus());
  CHECK(early.End().code() == absl::StatusCode::kAborted);
  CHECK_FALSE(save.sink->ShareComplete(1));

  ShareReceiver beyond = BeginShare(save.sink, state, 1).value();
  CHECK(Add(beyond, stream + "x").code() == absl::StatusCode::kInvalidArgument);
  CHECK(save.sink->ShareComplete(1));  // its own bytes were right
}

}  // namespace
}  // namespace lockstep::chief
