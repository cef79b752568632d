// Everything that a worker says to its chief, over a link with a round trip of 240 ms.
#include <catch2/catch.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/net/delaying_proxy.h"
#include "common/net/rpc.h"
#include "common/sync/queue.h"
#include "worker/session/chief_client.h"
#include "worker/session/chief_stream.h"
#include "worker/session/heartbeat.h"

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
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    proxy_ = std::make_unique<DelayingProxy>(port_, kOneWay);
  }
  ~DistantChief() override {
    server_->Shutdown(std::chrono::system_clock::now());
    proxy_.reset();
  }
  ChiefLocation location() const { return {proxy_->address(), "", "token"}; }

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
    while (chunks->Read(&chunk)) {
    }
    reply->set_accepted(true);
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

TEST_CASE("slow link: a session opens, and messages arrive", "[session]") {
  DistantChief chief;
  const ChiefClient client(chief.location());
  BoundedQueue<std::string> events(16);

  ChiefStream stream(&client, {.opened = [&] { events.Push("opened"); },
                               .command = [](const FencedCommand&) {},
                               .closed = [&](const absl::Status& status) { events.Push(status.ToString()); }});

  REQUIRE(events.Pop(kNever) == "opened");
  CHECK(stream.Send({}, LeaveIntent{}));
  CHECK(chief.heard_.Pop(kNever) == "message");
}

TEST_CASE("slow link: beats arrive", "[session]") {
  DistantChief chief;
  const ChiefClient client(chief.location());

  HeartbeatThread beats(&client, absl::Milliseconds(10), [] { return LifeSigns{}; });
  beats.Set({}, Heartbeat::Phase::kIdle, {});

  CHECK(chief.heard_.Pop(kNever) == "beat");
  CHECK(chief.heard_.Pop(kNever) == "beat");
}

TEST_CASE("slow link: fetches and uploads end well", "[session]") {
  DistantChief chief;
  ChiefClient client(chief.location());

  CHECK(client.FetchJob({}).value_or("nothing") == "bytes");

  grpc::ClientContext context;
  proto::UploadReply reply;
  const auto stub = proto::Session::NewStub(MakeChannel(chief.location().address, "upload"));
  const auto upload = stub->UploadShare(&context, &reply);
  upload->Write({});
  upload->WritesDone();
  CHECK(upload->Finish().ok());
  CHECK(reply.accepted());
}

}  // namespace
}  // namespace lockstep::worker
