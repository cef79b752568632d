// Everything that a worker says to its chief, over a link with a round trip of 240 ms.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/net/chief_channel.h"
#include "common/net/delaying_proxy.h"
#include "common/net/rpc.h"
#include "common/sync/queue.h"
#include "worker/session/chief_client.h"
#include "worker/session/chief_stream.h"
#include "worker/session/heartbeat.h"
#include "worker/upload/share_upload.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kOneWay = absl::Milliseconds(120);
// Far longer than anything here takes: reached only when it never happens.
constexpr absl::Duration kNever = absl::Seconds(30);

// A chief that accepts whatever comes, and tells the test of it.
class DistantChief final : public proto::Session::Service {
 public:
  DistantChief() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", MakeChiefCredentials("token", [] {}).value(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    proxy_ = std::make_unique<DelayingProxy>(port_, kOneWay);
  }
  ~DistantChief() override {
    server_->Shutdown(std::chrono::system_clock::now());
    proxy_.reset();
  }
  ChiefLocation location() const { return {proxy_->address(), "", CallerKeyOf("token", Role::kJoin).value()}; }

  grpc::Status Connect(grpc::ServerContext* call,
                       grpc::ServerReaderWriter<proto::ChiefEnvelope, proto::WorkerEnvelope>* stream) override {
    call->AddInitialMetadata("lockstep-open", "1");
    stream->SendInitialMetadata();
    proto::WorkerEnvelope message;
    while (stream->Read(&message)) heard_.Push("message");
    return grpc::Status::OK;
  }
  grpc::Status Beat(grpc::ServerContext*, const proto::HeartbeatRequest*, proto::HeartbeatReply*) override {
    heard_.Push("beat");
    return grpc::Status::OK;
  }
  grpc::Status UploadShare(grpc::ServerContext*, grpc::ServerReader<proto::ShareChunk>* chunks,
                           proto::UploadReply* reply) override {
    proto::ShareChunk chunk;
    const bool begun = chunks->Read(&chunk) && chunk.has_header();
    const uint64_t step = chunk.header().snapshot().step();
    size_t bytes = 0;
    while (chunks->Read(&chunk)) bytes += chunk.data().size();
    reply->set_accepted(begun);
    heard_.Push(absl::StrCat("share of step ", step, ", ", bytes, " bytes"));
    return grpc::Status::OK;
  }
  grpc::Status Fetch(grpc::ServerContext*, const proto::FetchRequest*,
                     grpc::ServerWriter<proto::FetchChunk>* chunks) override {
    proto::FetchChunk chunk;
    chunk.set_data("bytes");
    chunk.set_crc32c(Crc32c(chunk.data()));
    chunks->Write(chunk);
    return grpc::Status::OK;
  }

  BoundedQueue<std::string> heard_{1024};

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<DelayingProxy> proxy_;
};

// Shorter than the link: nothing comes in time until the limits have grown.
constexpr absl::Duration kTooShort = absl::Milliseconds(30);

TEST_CASE("slow link: attempts at a session get longer until one opens, and messages arrive", "[session]") {
  DistantChief chief;
  const ChiefClient client(chief.location(), kTooShort);
  BoundedQueue<std::string> events(16);
  const auto attempt = [&] {
    return std::make_unique<ChiefStream>(
        &client, ChiefStream::Callbacks{.opened = [&] { events.Push("opened"); },
                                        .command = [](const FencedCommand&) {},
                                        .closed = [&](const absl::Status&, bool) { events.Push("closed"); }});
  };

  std::unique_ptr<ChiefStream> stream = attempt();
  REQUIRE(events.Pop(kNever) == "closed");
  std::optional<std::string> event;
  for (int attempts = 1; attempts < 10 && event != "opened"; ++attempts) {
    stream = attempt();
    event = events.Pop(kNever);
  }

  REQUIRE(event == "opened");
  CHECK(client.connect_limit().limit() >= 4 * kOneWay);
  CHECK(stream->Send({}, LeaveIntent{}));
  CHECK(chief.heard_.Pop(kNever) == "message");
}

TEST_CASE("slow link: beats are waited for until they are answered", "[session]") {
  DistantChief chief;
  const ChiefClient client(chief.location());

  std::atomic<int> answered{0};
  HeartbeatThread beats({.client = &client,
                         .interval = absl::Milliseconds(10),
                         .signs = [] { return LifeSigns{}; },
                         .answered = [&](Term) { ++answered; },
                         .least_answer_limit = kTooShort});
  beats.Set({}, Heartbeat::Phase::kIdle, {});

  for (int arrived = 0; arrived < 50 && answered == 0; ++arrived) REQUIRE(chief.heard_.Pop(kNever) == "beat");
  CHECK(answered > 0);
}

TEST_CASE("slow link: fetches and uploads end well", "[session]") {
  DistantChief chief;
  ChiefClient client(chief.location());
  CHECK(client.FetchJob({}).value_or("nothing") == "bytes");

  StateLayout layout;
  layout.tensors.push_back({{"w", DType::kF32, {2, 3}}, StateGroup::kModel, StateKind::kParameter, "w"});
  layout.tensors.push_back({{kStepCounterName, DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
  BoundedQueue<absl::Status> ended(1);
  ShareUploader uploader(CallerKeyOf("token", Role::kJoin).value(),
                         [&](const ShareJob&, const absl::Status& status) { ended.Push(status); });
  const auto state = std::make_shared<const HostState>(HostState::Create(layout).value());
  const auto digests = std::make_shared<const StateDigests>(state->Digests());
  REQUIRE(uploader.Start({chief.location().address, {}, {"line", 7, digests->state}, 0, 1, state, digests}).ok());

  const std::optional<absl::Status> status = ended.Pop(kNever);
  REQUIRE(status.has_value());
  CHECK(status->ok());
  CHECK(chief.heard_.Pop(kNever) == "share of step 7, 32 bytes");
}

}  // namespace
}  // namespace lockstep::worker
