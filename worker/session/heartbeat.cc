#include "worker/session/heartbeat.h"

#include <chrono>
#include <memory>
#include <utility>

#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::worker {

HeartbeatThread::HeartbeatThread(const ChiefClient* client, absl::Duration interval, std::function<uint64_t()> progress)
    : client_(client), interval_(interval), progress_(std::move(progress)), thread_([this] { Run(); }) {}

HeartbeatThread::~HeartbeatThread() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void HeartbeatThread::Set(const WorkerFence& fence, Heartbeat::Phase phase, const Position& position) {
  MutexLock lock(&mutex_);
  set_ = true;
  fence_ = fence;
  heartbeat_.phase = phase;
  heartbeat_.position = position;
}

void HeartbeatThread::Run() {
  std::string address;
  std::unique_ptr<proto::Session::Stub> stub;
  for (;;) {
    proto::HeartbeatRequest request;
    bool send = false;
    {
      MutexLock lock(&mutex_);
      if (!stop_) changed_.WaitWithTimeout(&mutex_, interval_);
      if (stop_) return;
      heartbeat_.progress = progress_();
      send = set_;
      request = ToWire(fence_, heartbeat_);
    }
    const absl::StatusOr<std::string> now = client_->Address();
    if (!send || !now.ok()) continue;
    if (stub == nullptr || *now != address) {
      address = *now;
      stub = proto::Session::NewStub(MakeChannel(address, "heartbeat"));
    }
    grpc::ClientContext context;
    SetToken(context, client_->token());
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    proto::HeartbeatReply reply;
    stub->Beat(&context, request, &reply);  // a lost beat is followed by the next one
  }
}

}  // namespace lockstep::worker
