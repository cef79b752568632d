// The simulated worker's replica at work: transfers of state, steps, evaluation, snapshots and uploads.
#include <bit>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {
namespace {

// Scalars as words of a contribution, in the order of the fields.
template <typename T>
void Put(const T& value, Contribution& out) {
  if constexpr (std::is_same_v<T, double>) {
    out.push_back(std::bit_cast<uint64_t>(value));
  } else {
    out.push_back(value);
  }
}

template <typename T>
void Take(T& value, const Contribution& in, size_t& at) {
  if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(in[at++]);
  } else {
    value = in[at++];
  }
}

void PutProgress(const EvaluationProgress& progress, Contribution& out) {
  const auto put = [&](const auto&... field) { (Put(field, out), ...); };
  std::apply(put, progress.ledger.Fields());
  std::apply(put, progress.sums.Fields());
}

EvaluationProgress TakeProgress(const Contribution& in, size_t at) {
  EvaluationProgress progress;
  const auto take = [&](auto&... field) { (Take(field, in, at), ...); };
  std::apply(take, progress.ledger.Fields());
  std::apply(take, progress.sums.Fields());
  return progress;
}

}  // namespace

void SimWorker::Perform(const worker::SyncState& action) {
  if (!Begin(action.generation, "state sync")) return;
  if (action.restore.has_value()) return FetchShare(action);
  const bool receives = std::count(action.receivers.begin(), action.receivers.end(), rank_) > 0;
  if (!receives && (!has_state_ || state_.step != static_cast<int64_t>(action.position.step))) {
    cluster_->oracle->Violation(absl::StrCat(name_, ": is to keep a state that it does not hold"));
    return;
  }
  Contribution mine;
  if (rank_ == action.source_rank) {
    mine = {static_cast<uint64_t>(state_.step), state_.weights[0], state_.weights[1], state_.weights[2]};
    PutProgress(action.progress, mine);
    mine.push_back(odd_ ? 1 : 0);
  }
  Exchange(action.generation, absl::StrCat("state at ", action.position.ToString()), std::move(mine), receives,
           [this, action, receives](const Gathered& gathered) {
             const Contribution& sent = (*gathered)[action.source_rank];
             ReplicaState received{static_cast<int64_t>(sent[0]), {sent[1], sent[2], sent[3]}};
             if (receives) SetOdd(sent.back() != 0);
             TakeState(action, receives ? received : state_, TakeProgress(sent, 4));
           });
}

void SimWorker::FetchShare(const worker::SyncState& action) {
  // One share each from the chief, which must be there for it.
  After(world().random().Between(absl::Milliseconds(1), absl::Milliseconds(50)), [this, action] {
    const auto answer = std::make_shared<FetchAnswer>();
    if (connected_ && world().alive(chief_->process())) {
      chief_->Read(*action.restore, size_, [answer](const std::optional<ReplicaState>& state) { *answer = state; });
    }
    AwaitShare(action, answer);
  });
}

void SimWorker::AwaitShare(const worker::SyncState& action, const std::shared_ptr<FetchAnswer>& answer) {
  const bool comes = connected_ && world().alive(chief_->process()) && !stop_.has_value();
  if (!answer->has_value() && comes) {
    return After(absl::Milliseconds(3), [this, action, answer] { AwaitShare(action, answer); });
  }
  if (!answer->has_value() || !(*answer)->has_value()) {
    return Failed(action.generation, absl::UnavailableError("a share of the checkpoint did not come"), false);
  }
  const ReplicaState& stored = ***answer;
  Contribution mine = {static_cast<uint64_t>(stored.step)};
  for (int i = 0; i < kWeights; ++i) {
    mine.push_back(i % static_cast<int>(size_) == static_cast<int>(rank_) ? stored.weights[i] : 0);
  }
  Exchange(action.generation, absl::StrCat("restore of step ", action.restore->step), std::move(mine), true,
           [this, action](const Gathered& gathered) {
             ReplicaState received;
             received.step = static_cast<int64_t>((*gathered)[0][0]);
             SetOdd(false);
             for (int i = 0; i < kWeights; ++i) received.weights[i] = (*gathered)[i % gathered->size()][i + 1];
             TakeState(action, received, action.progress);
           });
}

void SimWorker::TakeState(const worker::SyncState& action, const ReplicaState& state,
                          const EvaluationProgress& progress) {
  cluster_->Cover(action.restore.has_value() ? "state restored" : "state sent by a peer");
  cluster_->oracle->Replaced(name_, action.lineage, has_state_ && lineage_ == action.lineage, state_, state);
  has_state_ = true;
  state_ = state;
  lineage_ = action.lineage;
  End();
  Step(worker::StateSynced{action.generation, action.position, cluster_->disk->DigestOf(state_), progress});
  MaybeStopped();
}

void SimWorker::SetOdd(bool odd) {
  if (odd_ && !odd) cluster_->oracle->FlipGone(lineage_);
  if (odd && !odd_) ++times_odd_;
  if (odd) cluster_->odd_hosts.insert(cluster_->HostNameOf(slot_));
  odd_ = odd;
}

void SimWorker::FlipBit(Random& random) {
  if (!has_state_ || size_ < 2 || core_.phase() != worker::SessionCore::Phase::kRunning) return;
  const uint64_t bit = random.Below(64);
  const uint64_t weight = random.Below(kWeights);
  state_.weights[weight] ^= uint64_t{1} << bit;
  if (world().tracing()) Trace(absl::StrCat("bit ", bit, " of weight ", weight, " flips at step ", state_.step));
  cluster_->oracle->Flipped(Seat(), lineage_, state_.step);
  cluster_->Cover("a bit flips");
  SetOdd(true);
  hit_at_ = state_.step;
}

// Where nothing else fails a flip is found by the first comparison that follows it, or by the next one.
void SimWorker::ExpectFound() {
  const TrainingPolicy& policy = cluster_->settings.policy.training;
  const uint64_t every = policy.audit_every_steps > 0 ? policy.audit_every_steps : policy.snapshot_every_steps;
  if (!odd_ || !cluster_->settings.flips_alone || state_.step != hit_at_ + 2 * static_cast<int64_t>(every)) return;
  After(absl::Seconds(20), [this, time = times_odd_] {
    if (!odd_ || times_odd_ != time) return;  // found; what hit it since has its own time
    // One of a lineage that was given up is a spare worker that keeps what is of no use.
    if (cluster_->oracle->GivenUp(lineage_) || cluster_->oracle->AllHitAlike(lineage_)) return;
    cluster_->oracle->Violation(absl::StrCat(name_, ": a bit that flipped at step ", hit_at_, " is not found"));
  });
}

// ---- Computing ------------------------------------------------------------------------------------------------------

namespace {

void PutSlot(const ControlContribution& slot, Contribution& out) {
  out.insert(out.end(), slot.requests.begin(), slot.requests.end());
  out.push_back(slot.free_to_save ? 1 : 0);
  out.push_back(slot.hears_chief ? 1 : 0);
}

constexpr size_t kSlotWords = kRequestKinds + 2;

ControlWord TakeWord(const Gathered& gathered, size_t begin) {
  ControlWord word;
  for (const Contribution& one : *gathered) {
    ControlContribution slot;
    std::copy_n(one.begin() + static_cast<std::ptrdiff_t>(begin), kRequestKinds, slot.requests.begin());
    slot.free_to_save = one[begin + kRequestKinds] != 0;
    slot.hears_chief = one[begin + kRequestKinds + 1] != 0;
    word.slots.push_back(slot);
  }
  return word;
}

}  // namespace

void SimWorker::Perform(const worker::RunStep& action) {
  if (!Begin(action.generation, "step")) return;
  if (!has_state_ || state_.step + 1 != static_cast<int64_t>(action.step)) {
    cluster_->oracle->Violation(
        absl::StrCat(name_, ": computes step ", action.step, " from a state at step ", has_state_ ? state_.step : -1));
    return;
  }
  const TinyJob& job = cluster_->settings.job;
  Contribution mine(kWeights, 0);
  PutSlot(action.slot, mine);
  Weights sum{};
  for (uint32_t shard = rank_; shard < static_cast<uint32_t>(job.logical_shards); shard += size_) {
    AddTo(sum, cluster_->oracle->reference().GradientAt(state_, static_cast<int>(shard)));
    mine.push_back(shard);
  }
  std::copy(sum.begin(), sum.end(), mine.begin());
  const int64_t shards = static_cast<int64_t>(mine.size() - kWeights - kSlotWords);
  const absl::Duration compute = shards * cluster_->settings.compute_scale *
                                 world().random().Between(absl::Milliseconds(2), absl::Milliseconds(6));
  Compute(compute, [this, action, mine] {
    ++progress_;
    Exchange(action.generation, absl::StrCat("step ", action.step), mine, false,
             [this, action](const Gathered& gathered) { Reduced(action, gathered); });
  });
}

void SimWorker::Reduced(const worker::RunStep& action, const Gathered& gathered) {
  // From here on the update runs to its end, whatever comes.
  const absl::Duration update = world().random().Between(absl::Microseconds(300), absl::Milliseconds(2));
  Compute(update, [this, action, gathered] {
    Weights sum{};
    std::vector<uint64_t> shards;
    for (const Contribution& one : *gathered) {
      AddTo(sum, Weights{one[0], one[1], one[2]});
      shards.insert(shards.end(), one.begin() + kWeights + kSlotWords, one.end());
    }
    Apply(state_, sum, action.rate_cuts);
    if (stop_.has_value()) cluster_->Cover("update finished while stopping");
    ExpectFound();
    cluster_->oracle->Applied(name_, lineage_, state_, std::move(shards));
    End();
    worker::StepFinished finished;
    finished.generation = action.generation;
    finished.step = action.step;
    finished.word = TakeWord(gathered, kWeights);
    finished.record.step = action.step;
    finished.record.loss = static_cast<double>(state_.weights[0] >> 40);
    Step(finished);
    MaybeStopped();
  });
}

void SimWorker::Perform(const worker::RunSlice& action) {
  if (!Begin(action.generation, "slice")) return;
  Compute(world().random().Between(absl::Milliseconds(1), absl::Milliseconds(8)), [this, action] {
    Contribution mine;
    PutSlot(action.slot, mine);
    mine.push_back(std::bit_cast<uint64_t>(SliceSums(state_, action.slice).loss));
    Exchange(action.generation, absl::StrCat("slice ", action.slice, " of step ", action.step), mine, false,
             [this, action](const Gathered& gathered) {
               End();
               worker::SliceFinished finished{action.generation, action.step, TakeWord(gathered, 0), {}};
               cluster_->Evaluated();
               // All hear the same, whoever computed it, also when that one's state is spoiled.
               const Contribution& computed = (*gathered)[action.slice % gathered->size()];
               const auto loss = std::bit_cast<double>(computed[kSlotWords]);
               finished.result = {action.slice, {.loss = loss, .denominator = 1}};
               Step(finished);
               MaybeStopped();
             });
  });
}

void SimWorker::Perform(const worker::WriteSample& action) {
  After(world().random().Between(absl::Milliseconds(1), absl::Milliseconds(20)), [this, action] {
    Step(worker::TextWritten{action.generation, action.step, "text"});
  });
}

void SimWorker::Perform(const worker::ComputeDigest& action) {
  After(world().random().Between(absl::Microseconds(100), absl::Milliseconds(3)), [this, action] {
    cluster_->oracle->Digested(Seat(), lineage_, state_);
    worker::DigestComputed computed{action.position, cluster_->disk->DigestOf(state_)};
    if (!action.keep_as.empty()) {
      kept_[SnapshotId{action.keep_as, action.position.step, computed.digest}] = Copy{state_, odd_};
      computed.kept = true;
      computed.took = absl::Milliseconds(1);
    }
    Step(computed);
  });
}

void SimWorker::Perform(const worker::TakeUpKept& action) {
  if (busy_.has_value()) {
    cluster_->oracle->Violation(absl::StrCat(name_, ": takes up a copy while a ", busy_with_, " is under way"));
  }
  After(world().random().Between(absl::Milliseconds(1), absl::Milliseconds(60)), [this, action] {
    const auto found = kept_.find(action.copy);
    // Now and then the copy is what was damaged.
    if (found == kept_.end() || Mix(incarnation_.low ^ action.copy.step) % 8 == 0) {
      return Step(worker::KeptTakenUp{action.copy, "its bits are not those that it was named for"});
    }
    const Lineage left = lineage_;
    SetOdd(found->second.odd);
    has_state_ = true;
    state_ = found->second.state;
    Step(worker::KeptTakenUp{action.copy, ""});
    lineage_ = core_.lineage();
    cluster_->Cover("a copy was taken up");
    cluster_->oracle->TookUp(name_, left, lineage_, state_);
  });
}

// ---- Snapshots ------------------------------------------------------------------------------------------------------

void SimWorker::Perform(const worker::TakeSnapshot& action) {
  if (!has_state_ || state_.step != static_cast<int64_t>(action.step) || busy_.has_value()) {
    cluster_->oracle->Violation(
        absl::StrCat(name_, ": takes a snapshot of step ", action.step, " but stands at ", state_.step));
    return;
  }
  cluster_->oracle->Digested(Seat(), lineage_, state_);
  const SnapshotId id{action.lineage, action.step, cluster_->disk->DigestOf(state_)};
  After(world().random().Between(absl::Milliseconds(1), absl::Milliseconds(40)), [this, id, copy = state_] {
    snapshots_[id] = copy;
    Step(worker::SnapshotDone{id});
  });
}

void SimWorker::Perform(const worker::DropSnapshot& action) { snapshots_.erase(action.snapshot); }

void SimWorker::Perform(const worker::UploadShare& action) {
  SimChief* chief = chief_;
  const uint64_t upload = ++uploads_;
  pending_uploads_.insert(upload);
  auto finish = [this, action, upload](bool ok) {
    if (pending_uploads_.erase(upload) == 0) return;
    if (ok) {
      Step(worker::ShareUploaded{action.snapshot, action.share, action.shares});
    } else {
      Step(worker::ShareUploadFailed{action.snapshot, action.share, action.shares, "the upload broke"});
    }
  };
  After(absl::Seconds(4), [finish] { finish(false); });
  After(world().random().Between(absl::Milliseconds(1), absl::Milliseconds(60)), [this, action, chief, finish] {
    const auto held = snapshots_.find(action.snapshot);
    if (held == snapshots_.end() || !world().alive(chief->process())) return finish(false);
    Network* network = cluster_->network.get();
    const HostId here = world().host(process_);
    const bool torn = world().random().Chance(20);
    network->Carry(here, chief->process(), network->Delay(), Channel::kUploads, [=, this, state = held->second] {
      auto answer = [=, this](bool ok) {
        network->Carry(world().host(chief->process()), process_, network->Delay(), Channel::kUploads,
                       [finish, ok] { finish(ok); });
      };
      chief->ShareCame({action.snapshot, action.share, action.shares, state, torn}, incarnation_, answer);
    });
  });
}

}  // namespace lockstep::simulation
