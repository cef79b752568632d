// What an abort must reach, before there is a replica: everything else of the engine is tested with real processes.
#include "worker/session/engine.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/queue.h"

namespace lockstep::worker {
namespace {

constexpr Generation kGeneration{2, 5};
constexpr absl::Duration kSoon = absl::Seconds(10);  // far below the limit for forming

const std::vector<Member> kMembers = {{{0, 1}, "w", "a"}, {{0, 2}, "v", "b"}, {{0, 3}, "u", "c"}};

// An engine whose events and rendezvous keys the test reads.
struct EngineUnderTest {
  explicit EngineUnderTest(const std::string& host = "127.0.0.1",
                           absl::Duration form_limit = SocketForming::Options().form_limit)
      : engine(
            {.peer_host = host,
             .peer_listener = listener.get(),
             .form_limit = form_limit,
             .client = &client,
             .post = [this](Event event) { events.Push(std::move(event)); },
             .fence = [] { return WorkerFence{}; },
             .send_store = [this](const Generation&, const std::string& key, const std::string&) { keys.Push(key); }}) {
  }

  void Form(uint32_t rank, size_t size) {
    engine.Perform(FormCommunicator{kGeneration, {kMembers.begin(), kMembers.begin() + size}, rank, ""});
  }
  template <typename T>
  std::optional<T> Next() {
    const std::optional<Event> event = events.Pop(kSoon);
    if (!event.has_value() || !std::holds_alternative<T>(*event)) return std::nullopt;
    return std::get<T>(*event);
  }

  BoundedQueue<Event> events{64};
  BoundedQueue<std::string> keys{64};
  std::unique_ptr<PeerListener> listener = PeerListener::Start("127.0.0.1", {0, 1}).value();
  ChiefClient client{ChiefLocation{"127.0.0.1:1", "", CallerKeyOf("token", Role::kJoin).value()}};
  Engine engine;
};

// A rank that listens and has left its address, but hears of nobody else's: its connections never come about.
class DeafPeer final : public RendezvousStore {
 public:
  DeafPeer()
      : forming_({.group = {.generation = kGeneration, .rank = 1, .size = 2}, .form_limit = absl::Hours(1)}, *listener_,
                 *this) {
    thread_ = std::thread([this] { (void)forming_.Run(); });
  }
  ~DeafPeer() override {
    forming_.Abort(absl::CancelledError("the test is over"));
    thread_.join();
  }

  absl::Status Set(absl::string_view key, absl::string_view bytes) override {
    address.Push({std::string(key), std::string(bytes)});
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) override {
    return nothing_.Get(key, limit);
  }
  void Abort(const absl::Status& cause) override { nothing_.Abort(cause); }

  BoundedQueue<std::pair<std::string, std::string>> address{1};

 private:
  InProcessStore nothing_;
  const std::unique_ptr<PeerListener> listener_ = PeerListener::Start("127.0.0.1", {0, 2}).value();
  SocketForming forming_;
  std::thread thread_;
};

TEST_CASE("engine: an abort ends a communicator that is still forming, also while it connects", "[session]") {
  const bool address_known = GENERATE(false, true);
  CAPTURE(address_known);
  EngineUnderTest under_test;
  Engine& engine = under_test.engine;
  DeafPeer peer;
  under_test.Form(0, 2);
  REQUIRE(under_test.keys.Pop(kSoon) == "generation-2.5/0");
  CHECK(engine.waits_for_peer());
  if (address_known) {
    const auto address = peer.address.Pop(kSoon);
    REQUIRE(address.has_value());
    engine.Perform(DeliverStore{kGeneration, address->first, address->second});
    // It goes on to connect, past the store, and nobody answers.
    CHECK_FALSE(under_test.events.Pop(absl::Milliseconds(50)).has_value());
  }

  engine.Perform(AbortCollectives{kGeneration, "the verdict"});
  engine.Perform(StopComputing{kGeneration, "the verdict"});

  const auto failed = under_test.Next<CollectiveFailed>();
  REQUIRE(failed.has_value());
  CHECK(failed->generation == kGeneration);
  CHECK(failed->suspect.IsNone());  // the verdict blames nobody
  CHECK(under_test.Next<ComputingStopped>().has_value());
  CHECK_FALSE(engine.waits_for_peer());
}

// ---- whom a failure names

TEST_CASE("engine: a peer that leaves no address in time is the suspect", "[session]") {
  const uint32_t rank = GENERATE(0u, 2u);
  CAPTURE(rank);
  EngineUnderTest under_test("127.0.0.1", absl::Milliseconds(20));

  // Of the two others one has left its address.
  under_test.engine.Perform(DeliverStore{kGeneration, "generation-2.5/1", "an address"});
  under_test.Form(rank, 3);

  const auto failed = under_test.Next<CollectiveFailed>();
  REQUIRE(failed.has_value());
  CHECK(failed->suspect == kMembers[rank == 0 ? 2 : 0].incarnation);
}

TEST_CASE("engine: a peer that never connects is the suspect", "[session]") {
  EngineUnderTest under_test("127.0.0.1", absl::Milliseconds(100));
  DeafPeer peer;
  const auto address = peer.address.Pop(kSoon);
  REQUIRE(address.has_value());

  under_test.engine.Perform(DeliverStore{kGeneration, address->first, address->second});
  under_test.Form(0, 2);

  const auto failed = under_test.Next<CollectiveFailed>();
  REQUIRE(failed.has_value());
  CHECK(failed->suspect == kMembers[1].incarnation);
}

TEST_CASE("engine: a worker that cannot listen at its own address names itself", "[session]") {
  const uint32_t rank = GENERATE(0u, 1u);
  EngineUnderTest under_test("192.0.2.1");  // nobody's address (RFC 5737)

  under_test.Form(rank, 2);

  const auto failed = under_test.Next<CollectiveFailed>();
  REQUIRE(failed.has_value());
  CHECK(failed->suspect == kMembers[rank].incarnation);
  CHECK_THAT(failed->message, Catch::Contains("cannot listen for peers on '192.0.2.1'"));
}

}  // namespace
}  // namespace lockstep::worker
