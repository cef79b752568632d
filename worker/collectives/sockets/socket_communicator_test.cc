// What a peer may do to a communicator that two honest ranks rarely do to each other.
#include "worker/collectives/sockets/socket_communicator.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "worker/collectives/shared/linked_memory.h"
#include "worker/collectives/sockets/call_words.h"
#include "worker/collectives/sockets/scripted_peer.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

std::unique_ptr<Communicator> RankZeroOfTwo(ScriptedPeer& peer, std::unique_ptr<HostMemory> memory = nullptr) {
  std::vector<std::unique_ptr<PeerStream>> streams(2);
  streams[1] = peer.Stream();
  auto communicator =
      MakeSocketCommunicator({.rank = 0, .size = 2, .names = {"own", "peer"}}, std::move(streams), std::move(memory));
  REQUIRE(communicator.ok());
  return *std::move(communicator);
}

// The peer's values of the first call, which are few: a frame.
std::string Values(const std::vector<int64_t>& values, bool counts = true) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return ScriptedPeer::Frame(
      {.kind = FrameKind::kGather, .bytes = static_cast<uint32_t>(bytes.size()), .sequence = 1, .offset = 0}, bytes,
      counts);
}

// It is in the first call: a sum of two integers.
std::string SaysItSums() {
  Call call{.kind = CallKind::kAllReduceSumInt64};
  std::vector<int64_t> values(2);
  call.integers = absl::MakeSpan(values);
  const CallWords words = CallWords::Of(call);
  return ScriptedPeer::Frame({.kind = FrameKind::kCall, .bytes = sizeof(words), .sequence = 1},
                             std::string(reinterpret_cast<const char*>(&words), sizeof(words)));
}

// The rank begins to sum; it has told the peer when this returns.
Handle BeginSum(Communicator& communicator, ScriptedPeer& peer, std::vector<int64_t>& values) {
  const size_t before = peer.written();
  Handle sum = communicator.AllReduceSum({}, absl::MakeSpan(values));
  peer.AwaitMoreThan(before);
  return sum;
}

TEST_CASE("sockets: a frame that came in part before its call was begun counts when the rest is there", "[sockets]") {
  const std::string frame = Values({30, 40});
  const size_t cut = GENERATE(sizeof(FrameHead), sizeof(FrameHead) + 5, sizeof(FrameHead) + 16);
  CAPTURE(cut);
  ScriptedPeer peer;
  const auto communicator = RankZeroOfTwo(peer);
  std::vector<int64_t> values = {1, 2};

  peer.Give(SaysItSums() + frame.substr(0, cut));
  const Handle sum = BeginSum(*communicator, peer, values);
  peer.Give(frame.substr(cut));

  CHECK(sum->Wait(kLong).ok());
  CHECK(values == std::vector<int64_t>{31, 42});
}

TEST_CASE("sockets: a frame that came whole before its call was begun counts", "[sockets]") {
  ScriptedPeer peer;
  const auto communicator = RankZeroOfTwo(peer);
  std::vector<int64_t> values = {1, 2};

  peer.Give(SaysItSums() + Values({30, 40}));

  CHECK(BeginSum(*communicator, peer, values)->Wait(kLong).ok());
  CHECK(values == std::vector<int64_t>{31, 42});
}

TEST_CASE("sockets: a frame that was given up does not count in a call that was begun later", "[sockets]") {
  ScriptedPeer peer;
  const auto communicator = RankZeroOfTwo(peer);
  std::vector<int64_t> values = {1, 2};

  peer.Give(SaysItSums() + Values({0, 0}, /*counts=*/false));
  const Handle sum = BeginSum(*communicator, peer, values);
  peer.Give(ScriptedPeer::Frame({.kind = FrameKind::kNote, .bytes = 3}, "why"));

  const absl::Status ended = sum->Wait(kLong);
  CHECK(ended.code() == absl::StatusCode::kAborted);
  CHECK_THAT(std::string(ended.message()), Catch::Contains("why"));
}

// A piece of the rank's block, as an exact all-reduce sends it.
std::string Addends(uint64_t sequence, const std::vector<int64_t>& addends) {
  const std::string bytes(reinterpret_cast<const char*>(addends.data()), addends.size() * sizeof(int64_t));
  return ScriptedPeer::Frame(
      {.kind = FrameKind::kReduce, .bytes = static_cast<uint32_t>(bytes.size()), .sequence = sequence}, bytes);
}

TEST_CASE("sockets: a piece that is under way is not harmed when a later call begins whose pieces are there",
          "[sockets]") {
  ScriptedPeer peer;
  const auto communicator = RankZeroOfTwo(peer);
  // So few that all are this rank's.
  const std::vector<ExactRun> runs = {{.begin = 0, .size = 4, .exponent = 0}};
  const std::vector<int64_t> ones = {1, 2, 3, 4}, fives = {5, 6, 7, 8};
  std::vector<float> first(4), second(4);
  const auto begin = [&](const std::vector<int64_t>& addends, std::vector<float>& out) {
    const size_t before = peer.written();
    Handle sum = communicator->AllReduceExact({}, {.integers = addends}, absl::MakeSpan(out), runs);
    peer.AwaitMoreThan(before);
    return sum;
  };
  const std::string piece = Addends(1, {10, 20, 30, 40});

  peer.Give(Addends(2, {100, 200, 300, 400}));
  const Handle one = begin(ones, first);
  peer.Give(piece.substr(0, piece.size() - 8));
  const Handle two = begin(fives, second);
  peer.Give(piece.substr(piece.size() - 8));

  const auto words = [&](uint64_t sequence, std::vector<float>& out) {
    const CallWords said = CallWords::Of({.kind = CallKind::kAllReduceExact,
                                          .sequence = sequence,
                                          .addends = {.integers = ones},
                                          .floats = absl::MakeSpan(out),
                                          .runs = runs});
    return ScriptedPeer::Frame({.kind = FrameKind::kCall, .bytes = sizeof(said), .sequence = sequence},
                               std::string(reinterpret_cast<const char*>(&said), sizeof(said)));
  };
  peer.Give(words(1, first) + words(2, second));
  CHECK(one->Wait(kLong).ok());
  CHECK(two->Wait(kLong).ok());
  CHECK(first == std::vector<float>{11, 22, 33, 44});
  CHECK(second == std::vector<float>{105, 206, 307, 408});
}

TEST_CASE("sockets: when a call cannot begin, those that were asked for after it end too", "[sockets]") {
  std::vector<int64_t> first = {1, 2, 3}, second = {4};
  for (int i = 0; i < 200; ++i) {
    ScriptedPeer peer;
    const auto communicator = RankZeroOfTwo(peer);
    peer.Give(SaysItSums());  // two integers, not three

    const Handle one = communicator->AllReduceSum({}, absl::MakeSpan(first));
    const Handle two = communicator->AllReduceSum({}, absl::MakeSpan(second));

    REQUIRE(one->Wait(kLong).code() == absl::StatusCode::kAborted);
    REQUIRE(two->Wait(kLong).code() == absl::StatusCode::kAborted);
  }
}

// Returns when the communicator has ended what it could end of all that was given so far: it ends calls after it has
// answered, and before it answers again.
void Settle(ScriptedPeer& peer) {
  for (int i = 0; i < 2; ++i) {
    const size_t before = peer.written();
    peer.Give(ScriptedPeer::Frame({.kind = FrameKind::kAsk}, ""));
    peer.AwaitMoreThan(before);
  }
}

// A sum of so many values that they are read rather than sent: a piece for each of two ranks.
class SharedSum {
 public:
  static constexpr size_t kValues = 20'000, kHalf = kValues / 2;

  SharedSum() {
    for (size_t i = 0; i < kValues; ++i) {
      own_values()[i] = 1;
      peer_values()[i] = static_cast<float>(i);
    }
    communicator_ = RankZeroOfTwo(peer, std::move(linked_.zero));
  }

  // The rank begins, and the peer says that it is in the call.
  Handle Begin() {
    const std::vector<ExactRun> runs = {{.begin = 0, .size = kValues, .exponent = -10}};
    const size_t before = peer.written();
    const ExactAddends addends = {.values = {own_values(), kValues}};
    Handle sum = communicator_->AllReduceExact({}, addends, {sums(), kValues}, runs);
    peer.AwaitMoreThan(before);
    const CallWords words = CallWords::Of(
        {.kind = CallKind::kAllReduceExact, .addends = addends, .floats = {sums(), kValues}, .runs = runs});
    peer.Give(ScriptedPeer::Frame({.kind = FrameKind::kCall, .bytes = sizeof(words), .sequence = 1},
                                  std::string(reinterpret_cast<const char*>(&words), sizeof(words))));
    return sum;
  }

  // What the peer tells of its contribution to this rank's half, and of its own half's sums.
  SharedRange contribution() const { return linked_.one->RangeFor(0, peer_values(), kHalf * sizeof(float)).value(); }
  SharedRange sums_of_peer() const {
    return linked_.one->RangeFor(0, peer_values() + kHalf, kHalf * sizeof(float)).value();
  }
  static std::string Tells(FrameKind kind, const SharedRange& range) {
    return ScriptedPeer::Frame({.kind = kind, .bytes = sizeof(range), .sequence = 1},
                               std::string(reinterpret_cast<const char*>(&range), sizeof(range)));
  }
  static std::string SaysItHasRead() { return ScriptedPeer::Frame({.kind = FrameKind::kRead, .sequence = 1}, ""); }
  uint64_t bytes_moved() const { return communicator_->bytes_moved(); }
  void PeerRevokes() { linked_.one->Revoke(); }

  float* sums() const { return reinterpret_cast<float*>(sums_->address()); }

  ScriptedPeer peer;

 private:
  float* own_values() const { return reinterpret_cast<float*>(own_->address()); }
  float* peer_values() const { return reinterpret_cast<float*>(of_peer_->address()); }

  const std::shared_ptr<SharedMemory> memory_ = SharedMemory::Make(), peer_memory_ = SharedMemory::Make();
  const std::unique_ptr<device::Buffer> own_ = memory_->Allocate(kValues * sizeof(float)).value();
  const std::unique_ptr<device::Buffer> sums_ = memory_->Allocate(kValues * sizeof(float)).value();
  const std::unique_ptr<device::Buffer> of_peer_ = peer_memory_->Allocate(kValues * sizeof(float)).value();
  LinkedMemory linked_{memory_, peer_memory_};
  std::unique_ptr<Communicator> communicator_;
};

TEST_CASE("sockets: pieces in shared memory are read there, and kept until the peer has read", "[sockets]") {
  SharedSum shared;
  const Handle sum = shared.Begin();
  shared.peer.Give(SharedSum::Tells(FrameKind::kReduceAt, shared.contribution()));
  shared.peer.Give(SharedSum::Tells(FrameKind::kGatherAt, shared.sums_of_peer()));
  Settle(shared.peer);
  CHECK_FALSE(sum->Done());
  shared.peer.Give(SharedSum::SaysItHasRead());

  REQUIRE(sum->Wait(kLong).ok());
  // Two halves told, two read.
  CHECK(shared.bytes_moved() >= 4 * SharedSum::kHalf * sizeof(float));
  for (size_t i = 0; i < SharedSum::kValues; ++i) {
    REQUIRE(shared.sums()[i] == static_cast<float>(i + (i < SharedSum::kHalf ? 1 : 0)));
  }
}

TEST_CASE("sockets: what a peer revoked before it was read never counts", "[sockets]") {
  SharedSum shared;
  const Handle sum = shared.Begin();
  const bool gathers = GENERATE(false, true);
  if (gathers) shared.peer.Give(SharedSum::Tells(FrameKind::kReduceAt, shared.contribution()));
  shared.PeerRevokes();
  if (!gathers) shared.peer.Give(SharedSum::Tells(FrameKind::kReduceAt, shared.contribution()));
  shared.peer.Give(SharedSum::Tells(FrameKind::kGatherAt, shared.sums_of_peer()));
  shared.peer.Give(SharedSum::SaysItHasRead());
  Settle(shared.peer);
  CHECK_FALSE(sum->Done());
  shared.peer.Give(ScriptedPeer::Frame({.kind = FrameKind::kNote, .bytes = 3}, "why"));

  const absl::Status ended = sum->Wait(kLong);
  CHECK(ended.code() == absl::StatusCode::kAborted);
  CHECK_THAT(std::string(ended.message()), Catch::Contains("why"));
}

TEST_CASE("sockets: a peer that names memory which is not its to name is cut off", "[sockets]") {
  SharedSum shared;
  const Handle sum = shared.Begin();
  SharedRange range = shared.contribution();
  const int fault = GENERATE(0, 1, 2, 3);
  if (fault == 0) range.segment += 7;
  if (fault == 1) range.offset += SharedSum::kValues * sizeof(float);
  if (fault == 2) range.offset += sizeof(float) / 2;
  if (fault == 3) range.bytes -= sizeof(float);
  CAPTURE(fault);
  shared.peer.Give(SharedSum::Tells(FrameKind::kReduceAt, range));

  const absl::Status ended = sum->Wait(kLong);
  CHECK(ended.code() == absl::StatusCode::kAborted);
  CHECK_THAT(std::string(ended.message()), Catch::Contains("it named memory that it does not share"));
}

TEST_CASE("sockets: a peer that has read what nobody told it of is cut off", "[sockets]") {
  ScriptedPeer peer;
  const auto communicator = RankZeroOfTwo(peer);
  std::vector<int64_t> values = {1, 2};
  peer.Give(SaysItSums());
  const Handle sum = BeginSum(*communicator, peer, values);
  peer.Give(SharedSum::SaysItHasRead());
  CHECK(sum->Wait(kLong).code() == absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace lockstep::worker
