// Somebody on the way between two ranks who changes a byte.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/net/delaying_proxy.h"
#include "tests/contracts/local_sockets.h"
#include "worker/collectives/rendezvous_store.h"
#include "worker/collectives/sockets/peer_secret.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kChangeLimit = absl::Seconds(30);
constexpr Generation kChangedGeneration{.term = 2, .counter = 5};
constexpr size_t kValues = 100'000;  // 1.6 MB each way

// Gives out addresses of proxies in place of those of listeners.
class StoreOnTheWay final : public RendezvousStore {
 public:
  explicit StoreOnTheWay(DelayingProxy::Change change) : change_(std::move(change)) {}

  absl::Status Set(absl::string_view key, absl::string_view bytes) override { return store_.Set(key, bytes); }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) override {
    absl::StatusOr<std::string> text = store_.Get(key, limit);
    if (!text.ok()) return text;
    absl::StatusOr<PeerCard> card = PeerCard::Parse(*text);
    if (!card.ok()) return text;
    int port = 0;
    REQUIRE(absl::SimpleAtoi(card->address.substr(card->address.rfind(':') + 1), &port));
    MutexLock lock(&mutex_);
    std::unique_ptr<DelayingProxy>& proxy = proxies_[port];
    if (proxy == nullptr) proxy = std::make_unique<DelayingProxy>(port, absl::ZeroDuration(), change_);
    card->address = proxy->address();
    return card->Text();
  }
  void Abort(const absl::Status& cause) override { store_.Abort(cause); }

 private:
  const DelayingProxy::Change change_;
  InProcessStore store_;
  Mutex mutex_;
  std::map<int, std::unique_ptr<DelayingProxy>> proxies_ GUARDED_BY(mutex_);
};

// What both ranks made of one sum when the byte at `at` was changed on its way to the rank that was connected to
// (`to_listener`), or from it. No status where a rank was not connected.
std::vector<absl::StatusOr<std::vector<int64_t>>> SumWithChange(PeerSecurity security, bool to_listener, uint64_t at) {
  StoreOnTheWay store([=](bool to_target, uint64_t offset, std::string& bytes) {
    if (to_target == to_listener && offset <= at && at < offset + bytes.size()) bytes[at - offset] ^= 0x10;
  });
  std::vector<SocketForming::Options> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back({.group = {.generation = kChangedGeneration, .rank = rank, .size = 2},
                     .security = security,
                     .form_limit = absl::Seconds(1)});
  }
  const Group group = Form(store, ranks);
  std::vector<std::vector<int64_t>> values(2, std::vector<int64_t>(kValues, 1));
  std::vector<Handle> handles(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    if (group[rank].ok()) handles[rank] = (*group[rank])->AllReduceSum({}, absl::MakeSpan(values[rank]));
  }
  std::vector<absl::StatusOr<std::vector<int64_t>>> results;
  for (size_t rank = 0; rank < 2; ++rank) {
    const absl::Status ended = group[rank].ok() ? handles[rank]->Wait(kChangeLimit) : group[rank].status();
    results.emplace_back(ended.ok() ? absl::StatusOr<std::vector<int64_t>>(values[rank]) : ended);
  }
  return results;
}

TEST_CASE("changed bytes: a byte that is changed on the way breaks an encrypted call, and is in no sum", "[sockets]") {
  const bool to_listener = GENERATE(true, false);
  // In the handshake, in the first frames, in values, and near the end.
  const uint64_t at = GENERATE(60u, 300u, 700u, 5'000u, 100'000u, 800'000u);
  CAPTURE(to_listener, at);

  int broken = 0;
  for (const auto& result : SumWithChange(PeerSecurity::kEncrypted, to_listener, at)) {
    if (!result.ok()) {
      ++broken;
    } else {
      CHECK(*result == std::vector<int64_t>(kValues, 2));
    }
  }

  CHECK(broken >= 1);
}

TEST_CASE("changed bytes: without encryption a changed value is a wrong sum, as docs/security.md says", "[sockets]") {
  for (const auto& result : SumWithChange(PeerSecurity::kAuthenticated, true, 100'000)) {
    REQUIRE(result.ok());
    CHECK(*result != std::vector<int64_t>(kValues, 2));
  }
}

}  // namespace
}  // namespace lockstep::worker
