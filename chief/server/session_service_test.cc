// Who may fetch and upload, on a real server.
#include "chief/server/session_service.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/chief_channel.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "common/sync/queue.h"

namespace lockstep::chief {
namespace {

// Far longer than anything here takes: reached only when it never happens.
constexpr absl::Duration kNever = absl::Seconds(30);
constexpr Incarnation kWorker{1, 2};

class Server {
 public:
  Server() {
    context_.job = "job-1";
    context_.term = 3;
    context_.sessions = &sessions_;
    context_.post = [this](Event event, bool) {
      const bool taken = events.Push(std::move(event));
      if (!taken) refused_.Push(true);
      return taken;
    };
    context_.since_turn = [this] { return absl::Seconds(since_turn_seconds.load()); };
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", MakeChiefCredentials("token", [] {}).value(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    stub = proto::Session::NewStub(
        MakeChiefChannel(absl::StrCat("127.0.0.1:", port), "test", CallerKeyOf("token", Role::kJoin).value()).channel);
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Beat(const std::string& doing = "") {
    grpc::ClientContext call;
    if (!doing.empty()) SetDoing(call, doing);
    proto::HeartbeatReply reply;
    return stub->Beat(&call, ToWire(WorkerFence{}, Heartbeat{}), &reply);
  }
  // What comes of a fetch that asks for nothing: InvalidArgument when its fence is right.
  grpc::StatusCode Fetch(const WorkerFence& fence) {
    grpc::ClientContext call;
    proto::FetchRequest request;
    *request.mutable_fence() = ToWire(fence);
    const auto stream = stub->Fetch(&call, request);
    proto::FetchChunk chunk;
    while (stream->Read(&chunk)) {
    }
    return stream->Finish().error_code();
  }
  grpc::StatusCode Upload(const WorkerFence& fence) {
    grpc::ClientContext call;
    proto::UploadReply reply;
    const auto stream = stub->UploadShare(&call, &reply);
    proto::ShareChunk chunk;
    *chunk.mutable_header()->mutable_fence() = ToWire(fence);
    *chunk.mutable_header()->mutable_snapshot() = ToWire(SnapshotId{"line", 7, "digest"});
    stream->Write(chunk);
    stream->WritesDone();
    return stream->Finish().error_code();
  }

  // The status of a session whose message came when the loop had ended, and whether it was told of the next chief.
  std::pair<grpc::Status, bool> SayToAnEndingChief(bool closing) {
    grpc::ClientContext call;
    const auto session = stub->Connect(&call);
    if (closing) sessions_.BeginClosing();
    events.Close();
    REQUIRE(session->Write(ToWire(WorkerFence{"job-1", 0, kWorker}, Hello{})));
    REQUIRE(refused_.Pop(kNever).has_value());
    if (closing) sessions_.CloseAll(kNever, /*handed_over=*/true);
    proto::ChiefEnvelope command;
    while (session->Read(&command)) {
    }
    const grpc::Status status = session->Finish();
    return {status, call.GetServerTrailingMetadata().count("lockstep-handed-over") != 0};
  }

  BoundedQueue<Event> events{64};
  std::atomic<int> since_turn_seconds{0};
  std::unique_ptr<proto::Session::Stub> stub;

 private:
  BoundedQueue<bool> refused_{64};  // a message found no room
  SessionRegistry sessions_;
  ServiceContext context_;
  SessionService service_{&context_};
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("session service: only a process with an open session fetches and uploads", "[chief]") {
  Server server;
  const WorkerFence fence{"job-1", 3, kWorker};
  CHECK(server.Fetch(fence) == grpc::StatusCode::UNAVAILABLE);  // it has said nothing yet
  CHECK(server.Upload(fence) == grpc::StatusCode::UNAVAILABLE);

  grpc::ClientContext call;
  const auto session = server.stub->Connect(&call);
  REQUIRE(session->Write(ToWire(WorkerFence{"job-1", 0, kWorker}, Hello{})));
  const auto hello = server.events.Pop(kNever);
  REQUIRE((hello.has_value() && std::holds_alternative<FromWorker>(*hello)));

  CHECK(server.Fetch(fence) == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(server.Fetch({"job-1", 3, {1, 3}}) == grpc::StatusCode::UNAVAILABLE);
  CHECK(server.Upload({"job-1", 3, {1, 3}}) == grpc::StatusCode::UNAVAILABLE);
  CHECK(server.Fetch({"job-1", 2, kWorker}) == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(server.Fetch({"job-2", 3, kWorker}) == grpc::StatusCode::FAILED_PRECONDITION);

  session->WritesDone();
  const auto closed = server.events.Pop(kNever);
  REQUIRE((closed.has_value() && std::holds_alternative<SessionClosed>(*closed)));
  CHECK(server.Fetch(fence) == grpc::StatusCode::UNAVAILABLE);
  session->Finish();
}

TEST_CASE("session service: a message that comes while the chief hands over does not hide that it does", "[chief]") {
  const auto [status, told] = Server().SayToAnEndingChief(/*closing=*/true);
  INFO(status.error_message());
  CHECK(status.ok());
  CHECK(told);
}

TEST_CASE("session service: a session whose messages find no room ends", "[chief]") {
  const auto [status, told] = Server().SayToAnEndingChief(/*closing=*/false);
  CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_FALSE(told);
}

TEST_CASE("session service: a heartbeat is answered only while the loop turns", "[chief]") {
  Server server;
  CHECK(server.Beat().ok());

  server.since_turn_seconds = 3;
  const grpc::Status status = server.Beat();

  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() == "the chief's loop has not turned for 3s");
  server.since_turn_seconds = -1;  // it has ended, and what it stored last takes its time
  CHECK(server.Beat().error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("session service: what a worker is at comes with its heartbeat, whatever bytes it has", "[chief]") {
  Server server;
  const auto doing = [&](const std::string& told) {
    CHECK(server.Beat(told).ok());
    const auto event = server.events.Pop(kNever);
    REQUIRE((event.has_value() && std::holds_alternative<HeartbeatReceived>(*event)));
    return std::get<HeartbeatReceived>(*event).doing;
  };

  CHECK(doing("node 'a\x01\xff' for 9s") == "node 'a\x01\xff' for 9s");
  CHECK(doing("").empty());
  CHECK(doing(std::string(5000, 'x')) == std::string(512, 'x'));
}

}  // namespace
}  // namespace lockstep::chief
