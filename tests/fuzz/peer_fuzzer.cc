// What one worker reads of another: cards and preludes, which strangers reach, and the frames of a generation, from
// peers that have its secret. The first byte of the input chooses. Frames come in any pieces, between calls that the
// rank begins.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/byte_script.h"
#include "tests/fuzz/fuzz_file.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/sockets/call_words.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/peer_secret.h"
#include "worker/collectives/sockets/scripted_peer.h"
#include "worker/collectives/sockets/socket_communicator.h"

namespace lockstep::worker {
namespace {

using fuzz::ByteScript;

void TryCard(absl::string_view text) {
  const auto card = PeerCard::Parse(text);
  if (!card.ok()) {
    LS_CHECK(!card.status().message().empty(), "a refusal says why");
    return;
  }
  LS_CHECK(card->Text() == text, "a card is written as it is read");
}

void TryPrelude(absl::string_view input) {
  static ExpectedPeers expected({.term = 1, .counter = 2}, 1, 3, std::string(64, 's'), PeerSecurity::kEncrypted);
  std::string bytes(input.substr(0, kPreludeBytes));
  bytes.resize(kPreludeBytes);
  static_cast<void>(ReadPrelude(bytes));
  LS_CHECK(expected.KeyOf(bytes, /*loopback=*/true).empty(), "a prelude that shows no secret gets no key");
}

constexpr int64_t kPieceElements = 4;

// The buffers of one call.
struct Buffers {
  std::vector<int64_t> integers;
  std::vector<float> floats, values;
  std::vector<char> bytes;
  std::vector<int64_t> blocks;
  std::vector<ExactRun> runs;
};

// A rank and its peers, which the script moves.
class Peers {
 public:
  explicit Peers(int size) : size_(size), peers_(static_cast<size_t>(size - 1)), unsent_(peers_.size()) {
    std::vector<std::unique_ptr<PeerStream>> streams(1);
    for (ScriptedPeer& peer : peers_) streams.push_back(peer.Stream());
    communicator_ = *MakeSocketCommunicator({.rank = 0,
                                             .size = size,
                                             .names = std::vector<std::string>(static_cast<size_t>(size), "a rank"),
                                             .piece_elements = kPieceElements},
                                            std::move(streams));
  }

  void Run(ByteScript& script) {
    while (!script.ended() && communicator_->status().ok()) {
      const uint8_t action = script.Next();
      const size_t peer = action / 8 % peers_.size();
      switch (action % 8) {
        case 0:
          Begin(script.Next(), script.Next());
          break;
        case 1:
          unsent_[peer] += SaysItIsIn(script.Next(), script.Next(), script.Next());
          break;
        case 2:
        case 3:
        case 4:
          unsent_[peer] += Frame(script);
          break;
        case 5:
          Give(peer, script.Next());
          break;
        case 6:
          Give(peer, std::string::npos);
          break;
        default:
          unsent_[peer] += script.Next(script.Next());
          break;
      }
    }
    communicator_->Abort(absl::AbortedError("the script has ended"));
    for (const Handle& call : calls_) static_cast<void>(call->Wait(absl::InfiniteDuration()));
  }

 private:
  Buffers BuffersOf(uint8_t count) const {
    Buffers buffers;
    buffers.integers.resize(count, 1);
    buffers.floats.resize(count, 1);
    buffers.values.resize(count, 1);
    buffers.runs = {{.begin = 0, .size = count, .exponent = -20}};
    buffers.bytes.resize(count, 'x');
    for (int rank = 0; rank < size_; ++rank) buffers.blocks.push_back(count / size_ + (rank < count % size_ ? 1 : 0));
    return buffers;
  }

  void Begin(uint8_t kind, uint8_t count) {
    Buffers& buffers = buffers_.emplace_back(BuffersOf(count));
    std::vector<size_t> written;
    for (ScriptedPeer& peer : peers_) written.push_back(peer.written());
    calls_.push_back(BeginCall(kind, buffers));
    for (size_t i = 0; i < peers_.size(); ++i) peers_[i].AwaitMoreThan(written[i]);
  }

  Handle BeginCall(uint8_t kind, Buffers& buffers) {
    const auto integers = absl::MakeSpan(buffers.integers);
    switch (kind % 6) {
      case 0:
        return communicator_->AllReduceExact({}, {.values = buffers.values}, absl::MakeSpan(buffers.floats),
                                             buffers.runs);
      case 1:
        return communicator_->AllGather({}, absl::MakeSpan(buffers.bytes), buffers.blocks);
      case 2:
        return communicator_->AllReduceExact({}, {.integers = integers}, absl::MakeSpan(buffers.floats), buffers.runs);
      case 3:
        return communicator_->AllReduceSum({}, integers);
      case 4:
        return communicator_->AllReduceSum({}, absl::MakeSpan(buffers.floats));
      default:
        return communicator_->Broadcast({}, kind / 6 % size_, absl::MakeSpan(buffers.bytes));
    }
  }

  // As a peer does that begins the same call.
  std::string SaysItIsIn(uint8_t sequence, uint8_t kind, uint8_t count) const {
    Buffers buffers = BuffersOf(count);
    Call call;
    switch (kind % 6) {
      case 0:
      case 2:
        call = {.kind = CallKind::kAllReduceExact,
                .addends = {.integers = buffers.integers},
                .floats = absl::MakeSpan(buffers.floats),
                .runs = buffers.runs};
        break;
      case 1:
        call = {.kind = CallKind::kAllGather, .bytes = absl::MakeSpan(buffers.bytes), .blocks = buffers.blocks};
        break;
      case 3:
        call = {.kind = CallKind::kAllReduceSumInt64, .integers = absl::MakeSpan(buffers.integers)};
        break;
      case 4:
        call = {.kind = CallKind::kAllReduceSumFloat, .floats = absl::MakeSpan(buffers.floats)};
        break;
      default:
        call = {.kind = CallKind::kBroadcast, .bytes = absl::MakeSpan(buffers.bytes), .root = kind / 6 % size_};
        break;
    }
    const CallWords words = CallWords::Of(call);
    return ScriptedPeer::Frame({.kind = FrameKind::kCall, .bytes = sizeof(words), .sequence = sequence},
                               std::string(reinterpret_cast<const char*>(&words), sizeof(words)));
  }

  static std::string Frame(ByteScript& script) {
    const FrameHead head = {.kind = static_cast<FrameKind>(script.Next()),
                            .bytes = script.Next(),
                            .sequence = script.Next(),
                            .offset = script.Next()};
    const uint8_t counts = script.Next();
    return ScriptedPeer::Frame(head, std::string(head.bytes, 'b'), counts % 4 != 0);
  }

  void Give(size_t peer, size_t count) {
    const std::string bytes = unsent_[peer].substr(0, count);
    unsent_[peer].erase(0, bytes.size());
    peers_[peer].Give(bytes);
  }

  const int size_;
  std::deque<ScriptedPeer> peers_;
  std::vector<std::string> unsent_;  // by peer
  std::deque<Buffers> buffers_;      // by call; they outlive the communicator
  std::vector<Handle> calls_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace
}  // namespace lockstep::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::worker;
  if (size == 0) return 0;
  const absl::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      TryCard(rest);
      break;
    case 1:
      TryPrelude(rest);
      break;
    default: {
      lockstep::fuzz::ByteScript script(rest);
      Peers(data[0] % 4).Run(script);
      break;
    }
  }
  return 0;
}
