#include "chief/server/session_registry.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

namespace lockstep::chief {
namespace {

class FakeStream final : public SessionStream {
 public:
  void Send(std::shared_ptr<const proto::ChiefEnvelope> command) override { sent.push_back(std::move(command)); }
  void Close(bool handed_over) override { closed = true, left = handed_over; }

  std::vector<std::shared_ptr<const proto::ChiefEnvelope>> sent;
  bool closed = false;
  bool left = false;
};

TEST_CASE("sessions: a process has one as long as any of its streams is open", "[chief]") {
  SessionRegistry sessions;
  const Incarnation worker{1, 2};
  const SessionId first = sessions.Add(std::make_shared<FakeStream>());
  const SessionId second = sessions.Add(std::make_shared<FakeStream>());
  CHECK_FALSE(sessions.Has(worker));

  sessions.SaidHello(first, worker);
  sessions.SaidHello(first, worker);  // a chief that fences it is greeted again
  sessions.SaidHello(second, worker);
  CHECK(sessions.Has(worker));
  sessions.Remove(first);
  CHECK(sessions.Has(worker));
  sessions.Remove(second);
  CHECK_FALSE(sessions.Has(worker));

  sessions.SaidHello(second, worker);  // its stream is gone
  CHECK_FALSE(sessions.Has(worker));
}

TEST_CASE("sessions: a stream that another process takes over is that one's", "[chief]") {
  SessionRegistry sessions;
  const SessionId session = sessions.Add(std::make_shared<FakeStream>());

  sessions.SaidHello(session, {1, 2});
  sessions.SaidHello(session, {1, 3});

  CHECK_FALSE(sessions.Has({1, 2}));
  CHECK(sessions.Has({1, 3}));
}

TEST_CASE("sessions: a command to many is encoded once", "[chief]") {
  SessionRegistry sessions;
  std::vector<std::shared_ptr<FakeStream>> streams;
  std::vector<SessionId> ids;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(std::make_shared<FakeStream>());
    ids.push_back(sessions.Add(streams.back()));
  }
  sessions.Remove(ids[1]);

  sessions.Send(ids, ChiefFence{1, {1, 1}}, Verdict{"over"});

  CHECK(streams[1]->sent.empty());
  REQUIRE(streams[0]->sent.size() == 1);
  REQUIRE(streams[2]->sent.size() == 1);
  CHECK(streams[0]->sent[0] == streams[2]->sent[0]);
}

}  // namespace
}  // namespace lockstep::chief
