#include "worker/session/heartbeat.h"

#include <chrono>
#include <memory>
#include <utility>

#include "common/liveness/activity.h"
#include "common/net/chief_channel.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::worker {

Heartbeat::Phase PhaseOfBeat(Heartbeat::Phase phase, const LifeSigns& signs) {
  const bool works = phase == Heartbeat::Phase::kComputing || phase == Heartbeat::Phase::kForming;
  return works && signs.waits_for_peer ? Heartbeat::Phase::kWaitingForPeer : phase;
}

void Learn(AnswerLimit& limit, grpc::StatusCode code, absl::Duration took) {
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    limit.Missed();
  } else if (code != grpc::StatusCode::UNAVAILABLE) {
    limit.Answered(took);
  }
}

HeartbeatThread::HeartbeatThread(Options options)
    : options_(std::move(options)), limit_(options_.least_answer_limit, kMostAnswerLimit), thread_([this] { Run(); }) {}

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
  NameThread("heartbeat");
  std::string address;
  std::unique_ptr<proto::Session::Stub> stub;
  for (;;) {
    WorkerFence fence;
    Heartbeat heartbeat;
    bool send = false;
    {
      MutexLock lock(&mutex_);
      if (!stop_) changed_.WaitWithTimeout(&mutex_, options_.interval);
      if (stop_) return;
      send = set_;
      fence = fence_;
      heartbeat = heartbeat_;
    }
    const LifeSigns signs = options_.signs();
    heartbeat.progress = signs.progress;
    heartbeat.phase = PhaseOfBeat(heartbeat.phase, signs);
    const absl::StatusOr<std::string> now = options_.client->Address();
    if (!send || !now.ok()) continue;
    if (stub == nullptr || *now != address) {
      address = *now;
      stub = proto::Session::NewStub(MakeChiefChannel(address, "heartbeat", options_.client->key()).channel);
    }
    grpc::ClientContext context;
    if (!signs.doing.empty()) SetDoing(context, signs.doing);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(limit_.limit()));
    proto::HeartbeatReply reply;
    const auto begin = std::chrono::steady_clock::now();
    // A lost beat is followed by the next one.
    const grpc::Status answer = stub->Beat(&context, ToWire(fence, heartbeat), &reply);
    Learn(limit_, answer.error_code(), absl::FromChrono(std::chrono::steady_clock::now() - begin));
    if (answer.ok()) options_.answered(reply.term());
    // The name may stand for another machine by now: it is looked up again for the next beat.
    if (answer.error_code() == grpc::StatusCode::UNAVAILABLE) stub = nullptr;
  }
}

}  // namespace lockstep::worker
