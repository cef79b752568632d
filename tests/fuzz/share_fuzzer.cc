// What a chief takes from the senders of a save's shares when they are wrong in any way: in what they announce, in
// their bytes, on the way or in their order. No wrong byte is stored: an honest sender completes each share afterwards,
// and the save has the digest that was announced.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/storage/memory/memory_storage.h"
#include "tests/fuzz/byte_script.h"
#include "tests/fuzz/fuzz_file.h"

namespace lockstep::chief {
namespace {

using fuzz::ByteScript;

constexpr size_t kSenders = 4;
constexpr std::array<size_t, 8> kChunks = {1, 7, 100, 599, 4096, size_t{1} << 20, kLeafBytes, size_t{16} << 20};

// A state, and what takes long to find of it.
struct DigestedState {
  explicit DigestedState(SmallState the_state) : state(std::move(the_state)), digests(state.Digests()) {
    for (int shares = 1; shares <= 3; ++shares) {
      for (int share = 0; share < shares; ++share) streams[{share, shares}] = state.Stream(share, shares);
    }
  }
  SnapshotId Id() const { return {"line-1", static_cast<uint64_t>(state.step), digests.state}; }

  SmallState state;
  StateDigests digests;
  std::map<std::pair<int, int>, std::string> streams;
};

// A save, and senders that the script moves.
class Save {
 public:
  Save(const DigestedState& of, int shares)
      : of_(of),
        chief_(SmallChief::Start(storage_).value()),
        sink_(ShardSink::Open(*chief_->hold, of.Id(), of.state.layout, shares).value()),
        senders_(kSenders) {}

  void Run(ByteScript& script) {
    std::vector<uint64_t> stored(static_cast<size_t>(sink_->shares()));
    while (!script.ended()) {
      const uint8_t action = script.Next();
      Sender& sender = senders_[action / 8 % kSenders];
      if (!sender.receiver.has_value()) {
        Begin(sender, script);
      } else if (action % 8 == 0) {
        End(sender);
      } else {
        Send(sender, script);
      }
      for (int share = 0; share < sink_->shares(); ++share) {
        const uint64_t next = sink_->NextOffset(share);
        LS_CHECK(next >= std::exchange(stored[static_cast<size_t>(share)], next), "what is stored stays stored");
      }
    }
  }

  void CompleteHonestly() {
    for (int share = 0; share < sink_->shares(); ++share) {
      Sender sender;
      sender.share = share;
      const ShareProof proof = ProofOf(of_.digests, sink_->share(share));
      Announce(sender, TensorDigestBytes(proof), LeafDigestBytes(proof));
      LS_CHECK(sender.receiver.has_value(), "an honest sender may begin");
      LS_CHECK(sender.receiver->Add(StreamOf(sender), Crc32c(StreamOf(sender))).ok(), "honest bytes are taken");
      LS_CHECK(sender.receiver->End().ok() && sink_->ShareComplete(share), "an honest sender completes its share");
    }
    LS_CHECK(sink_->Finish().ok(), "what is stored has the digest that was announced");
  }

 private:
  struct Sender {
    std::optional<ShareReceiver> receiver;
    int share = 0;
    size_t at = 0;       // in the share's stream
    bool wrong = false;  // has sent something wrong
  };

  const std::string& StreamOf(const Sender& sender) const { return of_.streams.at({sender.share, sink_->shares()}); }

  void Announce(Sender& sender, const std::string& tensors, const std::string& leaves) {
    auto receiver = ShareReceiver::Begin(sink_, static_cast<uint32_t>(sender.share), tensors, leaves);
    if (receiver.ok()) sender.receiver = *std::move(receiver);
  }

  void Begin(Sender& sender, ByteScript& script) {
    sender = Sender();
    sender.share = script.Next() % (sink_->shares() + 1);
    if (sender.share == sink_->shares()) {
      Announce(sender, "", "");
      LS_CHECK(!sender.receiver.has_value(), "there is no such share");
      return;
    }
    const ShareProof proof = ProofOf(of_.digests, sink_->share(sender.share));
    std::string tensors = TensorDigestBytes(proof);
    std::string leaves = LeafDigestBytes(proof);
    const uint8_t flaw = script.Next() % 16;
    std::string& changed = flaw % 2 == 0 ? tensors : leaves;
    const std::string right = changed;
    if (flaw >= 8 && flaw < 12 && !changed.empty()) {
      const size_t at = (size_t{script.Next()} << 8 | script.Next()) % changed.size();
      changed[at] = static_cast<char>(changed[at] ^ (1 << script.Next() % 8));
    } else if (flaw >= 12 && flaw < 14) {
      changed.resize(changed.size() - std::min<size_t>(changed.size(), script.Next()));
    } else if (flaw >= 14) {
      changed += script.Next(script.Next());
    }
    Announce(sender, tensors, leaves);
    LS_CHECK(sender.receiver.has_value() == (changed == right), "what is announced is taken if it is right");
  }

  void Send(Sender& sender, ByteScript& script) {
    std::string part = StreamOf(sender).substr(sender.at, kChunks[script.Next() % kChunks.size()]);
    size_t next = sender.at + part.size();
    bool damaged = false;
    switch (script.Next() % 16) {
      case 0:  // of its memory
        if (part.empty()) break;
        part[script.Next() * part.size() / 256] ^= 1;
        sender.wrong = true;
        break;
      case 1:  // on the way
        damaged = true;
        next = sender.at;
        break;
      case 2:  // left out
        sender.wrong = sender.wrong || !part.empty();
        part.clear();
        break;
      case 3:  // sent again
        sender.wrong = sender.wrong || !part.empty();
        next = sender.at;
        break;
      case 4: {
        const std::string more = script.Next(script.Next());
        sender.wrong = sender.wrong || !more.empty();
        part += more;
        break;
      }
      default:
        break;
    }
    const absl::Status status = sender.receiver->Add(part, Crc32c(part) ^ (damaged ? 1 : 0));
    LS_CHECK(!damaged || absl::IsAborted(status), "damage on the way is noticed");
    LS_CHECK(damaged || sender.wrong || status.ok(), "right bytes are taken");
    LS_CHECK(status.ok() || !status.message().empty(), "a refusal says why");
    sender.at = next;
    if (!status.ok() && !damaged) sender.receiver.reset();
  }

  void End(Sender& sender) {
    const absl::Status status = sender.receiver->End();
    LS_CHECK(!status.ok() || sink_->ShareComplete(sender.share), "a share that has ended is complete");
    LS_CHECK(sender.wrong || status.ok() == (sender.at == StreamOf(sender).size()), "it ends where it ends");
    sender.receiver.reset();
  }

  const DigestedState& of_;
  MemoryStorage storage_;
  std::unique_ptr<SmallChief> chief_;
  std::shared_ptr<ShardSink> sink_;
  std::vector<Sender> senders_;
};

}  // namespace
}  // namespace lockstep::chief

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::chief;
  static const DigestedState small{SmallState(9)};
  static const DigestedState large{LargeState()};
  lockstep::fuzz::ByteScript script({reinterpret_cast<const char*>(data), size});
  const uint8_t kind = script.Next();
  Save save(kind >= 224 ? large : small, 1 + kind % 3);
  save.Run(script);
  save.CompleteHonestly();
  return 0;
}
