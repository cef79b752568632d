#include "tests/load/load_worker.h"

#include <algorithm>
#include <iostream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/net/chief_channel.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "common/status/status_macros.h"
#include "tests/load/crowd.h"

namespace lockstep::load {
namespace {

constexpr char kPlan[] = "a kernel plan of no kernels";
constexpr absl::Duration kTickEvery = absl::Milliseconds(500);
constexpr absl::Duration kBeatLimit = absl::Seconds(3);

worker::SessionConfig Config(size_t index, const Incarnation& incarnation) {
  worker::SessionConfig config;
  config.incarnation = incarnation;
  config.preferred_name = absl::StrCat("worker-", index);
  config.host = absl::StrCat("host-", index / 8);
  config.peer_address = absl::StrCat("10.", index >> 16, ".", index >> 8 & 255, ".", index & 255, ":7000");
  config.device = "generated";
  return config;
}

// The data's digest as the job that the chief serves names it.
Digest DataDigestOf(const std::string& job_yaml) {
  const std::string key = "sha256: ";
  const size_t at = job_yaml.find(key);
  if (at == std::string::npos) return Sha256Hex("no data");
  std::string digest = job_yaml.substr(at + key.size(), 66);
  digest.erase(std::remove_if(digest.begin(), digest.end(), [](char c) { return c == '"' || c == '\''; }),
               digest.end());
  return digest.substr(0, 64);
}

}  // namespace

LoadWorker::LoadWorker(Crowd* crowd, size_t index, const Incarnation& incarnation)
    : crowd_(*crowd), index_(index), incarnation_(incarnation), core_(Config(index, incarnation)) {}

void LoadWorker::Step(const worker::Event& event, uint64_t stream) {
  if (!alive_ || (stream != 0 && stream != stream_)) return;
  if (const auto* command = std::get_if<worker::CommandReceived>(&event)) {
    if (std::holds_alternative<Welcome>(command->command)) welcomed_by_ = command->fence.term;
  }
  if (const auto* step = std::get_if<worker::StepFinished>(&event)) {
    if (step->generation == core_.generation()) ++steps_;
  }
  ++progress_;
  const std::vector<worker::Action> actions = core_.Step(crowd_.now(), event);
  for (const worker::Action& action : actions) {
    if (alive_) std::visit([this](const auto& alternative) { Perform(alternative); }, action);
  }
}

absl::Time LoadWorker::NextTick() const { return std::min(crowd_.now() + kTickEvery, core_.NextDeadline()); }

void LoadWorker::Kill() {
  alive_ = false;
  if (link_ != nullptr) link_->Cancel();
  link_ = nullptr;
  beats_ = nullptr;
  if (!generation_.IsNone()) crowd_.BreakMeeting(generation_, incarnation_);
}

// ---- the session

void LoadWorker::Perform(const worker::Connect&) {
  link_ = nullptr;
  const uint64_t stream = ++stream_;
  crowd_.Elsewhere([&crowd = crowd_, this, index = index_, stream] {
    const absl::StatusOr<std::string> address = crowd.client().Address();
    if (!address.ok()) {
      return crowd.Post(index, worker::ChiefDisconnected{std::string(address.status().message()), false}, stream);
    }
    SessionLink::Callbacks callbacks;
    callbacks.opened = [&crowd, index, stream] { crowd.Post(index, worker::ChiefConnected{}, stream); };
    callbacks.command = [&crowd, index, stream](FencedCommand command) {
      crowd.Post(index, worker::CommandReceived{command.fence, std::move(command.command)}, stream);
    };
    callbacks.closed = [&crowd, index, stream](const absl::Status& status, std::shared_ptr<SessionLink> link) {
      crowd.Post(index, worker::ChiefDisconnected{std::string(status.message()), absl::IsUnauthenticated(status)},
                 stream);
      crowd.Drop(std::move(link));
    };
    crowd.LinkBegins();
    const auto take = [&](std::shared_ptr<SessionLink> link) {
      crowd.Run([this, stream, link] {
        if (alive_ && stream == stream_) {
          link_ = link;
        } else {
          link->Cancel();
        }
      });
    };
    SessionLink::Open(*address, crowd.client().key(), &crowd.traffics(), callbacks, take);
  });
}

void LoadWorker::Perform(const worker::Disconnect&) {
  ++stream_;
  if (link_ != nullptr) link_->Cancel();
  link_ = nullptr;
}

void LoadWorker::Perform(const worker::Send& action) {
  if (!std::holds_alternative<Hello>(action.message)) fence_ = action.fence;
  if (link_ != nullptr) link_->Send(ToWire(action.fence, action.message));
}

void LoadWorker::Perform(const worker::SetPhase& action) {
  fence_ = action.fence;
  phase_ = action;
}

void LoadWorker::Beat() {
  if (!alive_ || beat_under_way_ || !phase_.has_value()) return;
  const absl::StatusOr<std::string> address = crowd_.client().Address();
  if (!address.ok()) return;
  if (beats_ == nullptr || *address != beats_to_) {
    beats_to_ = *address;
    beats_ = proto::Session::NewStub(MakeChiefChannel(beats_to_, "heartbeat", crowd_.client().key()).channel);
  }
  struct Call {
    std::shared_ptr<proto::Session::Stub> stub;
    grpc::ClientContext context;
    proto::HeartbeatRequest request;
    proto::HeartbeatReply reply;
  };
  auto call = std::make_shared<Call>();
  call->stub = beats_;
  call->context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kBeatLimit));
  call->request = ToWire(phase_->fence, Heartbeat{phase_->phase, progress_, phase_->position});
  beat_under_way_ = true;
  crowd_.LinkBegins();
  call->stub->async()->Beat(&call->context, &call->request, &call->reply,
                            [&crowd = crowd_, index = index_, call](const grpc::Status& status) mutable {
                              crowd.PostBeatEnd(index, status.ok(), call->reply.term());
                              crowd.Drop(std::move(call));
                            });
}

void LoadWorker::BeatEnded(bool answered, Term term) {
  beat_under_way_ = false;
  if (!alive_) return;
  if (!answered) beats_ = nullptr;
  if (answered) Step(worker::BeatAnswered{term});
}

// ---- preparing

void LoadWorker::Perform(const worker::MakeKernelPlan& action) { Prepare(action.metagraph, "", ""); }
void LoadWorker::Perform(const worker::PrepareReplica& action) {
  Prepare(action.metagraph, action.plan_hash, action.settings);
}

void LoadWorker::Prepare(const std::string& metagraph, const std::string& plan_hash, const Digest& settings) {
  crowd_.Elsewhere([&crowd = crowd_, index = index_, fence = fence_, metagraph, plan_hash, settings] {
    worker::ChiefClient& client = crowd.client();
    const auto prepare = [&]() -> absl::StatusOr<Digest> {
      LS_ASSIGN_OR_RETURN(const std::string job, client.FetchJob(fence));
      LS_ASSIGN_OR_RETURN(const std::string graph, client.FetchMetagraph(fence, metagraph));
      if (!plan_hash.empty()) LS_RETURN_IF_ERROR(client.FetchPlan(fence, plan_hash).status());
      LS_RETURN_IF_ERROR(crowd.state().Prepare(graph));
      return DataDigestOf(job);
    };
    const absl::StatusOr<Digest> data = prepare();
    if (!data.ok()) {
      const std::string why(data.status().message());
      return crowd.Post(index, worker::PreparationFailed{PrepareFailed{PrepareProblem::kOther, why}});
    }
    if (plan_hash.empty()) {
      return crowd.Post(index, worker::PlanFinished{PlanMade{Sha256Hex(kPlan), kPlan, *data}});
    }
    crowd.Post(index, worker::Prepared{Ready{plan_hash, *data, absl::Milliseconds(10), crowd.state().bytes(), settings,
                                             "generated"}});
  });
}

void LoadWorker::Perform(const worker::TestConnections& action) {
  PeersTested tested{action.round, {}, {}, ""};
  for (const Member& peer : action.peers) tested.reached.push_back(peer.incarnation);
  crowd_.Post(index_, worker::PeersTestedHere{std::move(tested)});
}

// ---- a generation

template <typename MakeEvent>
void LoadWorker::Meet(const Generation& generation, const ControlContribution& slot, absl::Duration takes,
                      MakeEvent then) {
  if (crowd_.meetings().IsBroken(generation)) {
    return crowd_.Post(index_, worker::CollectiveFailed{generation, {}, false, "the group is broken"});
  }
  const auto complete = crowd_.meetings().Come(generation, members_.size(), rank_, index_, slot);
  if (!complete.has_value()) return;
  for (const size_t member : complete->workers) crowd_.PostAfter(takes, member, then(complete->word));
}

void LoadWorker::Perform(const worker::FormCommunicator& action) {
  generation_ = action.generation;
  members_ = action.members;
  rank_ = action.rank;
  steps_ = 0;
  addresses_.clear();
  forming_ = true;
  if (crowd_.options().address_bytes != 0 && members_.size() > 1 && link_ != nullptr) {
    const std::string own(crowd_.options().address_bytes, static_cast<char>('a' + rank_ % 26));
    link_->Send(ToWire(fence_, StoreSet{generation_, absl::StrCat("peers/", rank_), own}));
  }
  MaybeConnected();
}

void LoadWorker::Perform(const worker::DeliverStore& action) {
  if (!forming_ || action.generation != generation_) return;
  addresses_.insert(action.key);
  MaybeConnected();
}

void LoadWorker::MaybeConnected() {
  const size_t needed = crowd_.options().address_bytes == 0 ? 0 : members_.size() - 1;
  if (!forming_ || addresses_.size() < needed) return;
  forming_ = false;
  Meet(generation_, {}, absl::ZeroDuration(),
       [generation = generation_](const ControlWord&) { return worker::CommunicatorFormed{generation}; });
}

void LoadWorker::Perform(const worker::SyncState& action) {
  const auto meet = [this, action] {
    Meet(action.generation, {}, absl::ZeroDuration(), [this, action](const ControlWord&) {
      return worker::StateSynced{action.generation, action.position, crowd_.state().At(action.position.step).digest(),
                                 action.progress};
    });
  };
  if (!action.restore.has_value()) return meet();
  const auto shares = static_cast<uint32_t>(members_.size());
  crowd_.Elsewhere([&crowd = crowd_, index = index_, action, meet, fence = fence_, rank = rank_, shares] {
    const absl::Status restored = crowd.state().Restore(crowd.client(), fence, *action.restore, rank, shares);
    if (restored.ok()) return crowd.Run(meet);
    crowd.Post(index, worker::CollectiveFailed{action.generation, {}, true, std::string(restored.message())});
  });
}

void LoadWorker::Perform(const worker::RunStep& action) {
  Meet(action.generation, action.slot, crowd_.options().step_time, [&action](const ControlWord& word) {
    return worker::StepFinished{action.generation,
                                action.step,
                                worker::StepOutcome::kApplied,
                                word,
                                StepRecord{.step = action.step, .loss = 1.0 / static_cast<double>(action.step)},
                                ""};
  });
}

void LoadWorker::Perform(const worker::RunSlice& action) {
  Meet(action.generation, action.slot, crowd_.options().step_time, [&action](const ControlWord& word) {
    return worker::SliceFinished{action.generation, action.step, word, SliceResult{action.slice, {.loss = 1}}};
  });
}

void LoadWorker::Perform(const worker::AbortCollectives& action) {
  forming_ = false;
  crowd_.BreakMeeting(action.generation, Incarnation());
}

void LoadWorker::Perform(const worker::StopComputing& action) {
  crowd_.Post(index_, worker::ComputingStopped{action.generation, false});
}

void LoadWorker::Perform(const worker::ComputeDigest& action) {
  crowd_.Post(index_, worker::DigestComputed{action.position, crowd_.state().At(action.position.step).digest()});
}

// ---- saves

void LoadWorker::Perform(const worker::TakeSnapshot& action) {
  const StateAt at = crowd_.state().At(action.step);
  crowd_.Post(index_, worker::SnapshotDone{SnapshotId{action.lineage, action.step, at.digest()}});
}

void LoadWorker::Perform(const worker::UploadShare& action) {
  const absl::StatusOr<std::string> address = crowd_.client().Address();
  const StateAt at = crowd_.state().At(action.snapshot.step);
  crowd_.Upload(
      index_, {address.value_or(""), action.fence, action.snapshot, action.share, action.shares, at.state, at.digests});
}

void LoadWorker::Perform(const worker::Announce& action) {
  if (crowd_.options().verbose) std::cerr << "worker-" << index_ << ": " << action.text << "\n";
}

void LoadWorker::Perform(const worker::Exit& action) {
  exit_code_ = action.code;
  if (action.code != 0)
    std::cerr << "worker-" << index_ << " ends with " << action.code << ": " << action.reason << "\n";
  alive_ = false;
  if (link_ != nullptr) link_->Cancel();
  link_ = nullptr;
  beats_ = nullptr;
}

}  // namespace lockstep::load
