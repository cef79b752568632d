// What a chief decides when a worker that has the job's token says anything, among workers that are honest. Nothing
// that it says makes the chief find itself wrong.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <string>
#include <variant>

#include "chief/core/chief_harness.h"
#include "common/protocol/wire.h"
#include "common/status/exit_code.h"
#include "tests/fuzz/chief_script.pb.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/script_policy.h"

namespace {

using lockstep::chief::ChiefHarness;
using lockstep::chief::FakeWorker;

constexpr uint32_t kMostWorkers = 4;
constexpr int kMostEvents = 200;
constexpr uint32_t kMostAdvanceMs = 20000;

std::optional<ChiefHarness::Options> OptionsOf(const lockstep::fuzz::ChiefScript& script) {
  ChiefHarness::Options options;
  options.workers = 1 + script.workers() % kMostWorkers;
  options.min = 1 + script.min_workers() % options.workers;
  options.policy.lineage_per_generation = script.lineage_per_generation();
  const auto policy = lockstep::fuzz::ReadPolicy(script.training());
  if (!policy.has_value()) return std::nullopt;
  lockstep::TrainingPolicy& own = options.policy.training;
  own.snapshot_every_steps = policy->snapshot_every_steps % 20;
  own.audit_every_steps = policy->audit_every_steps % 20;
  own.eval_every_steps = policy->eval_every_steps % 20;
  own.eval_slices = policy->eval_slices % 5;
  own.digest_in_acks = policy->digest_in_acks;
  own.wait_for_saves = policy->wait_for_saves;
  options.end_step = 20 + policy->end_step % 100;
  return options;
}

// What names no generation or lineage is of the worker's own.
template <typename Message>
void Complete(const FakeWorker& worker, Message& message) {
  if constexpr (requires { message.generation.IsNone(); }) {
    if (message.generation.IsNone()) message.generation = worker.generation;
  }
  if constexpr (requires { message.lineage.empty(); }) {
    if (message.lineage.empty()) message.lineage = worker.lineage;
  }
}

void Say(ChiefHarness& chief, int index, const lockstep::proto::WorkerMessage& message) {
  lockstep::proto::WorkerEnvelope envelope;
  *envelope.mutable_message() = message;
  auto understood = lockstep::FromWire(envelope);
  if (!understood.ok()) return;
  std::visit([&](auto& said) { Complete(chief.worker(index), said); }, understood->message);
  chief.Say(index, std::move(understood->message));
}

void Happens(ChiefHarness& chief, const lockstep::fuzz::Event& event) {
  using lockstep::fuzz::Event;
  const int index = static_cast<int>(event.worker() % kMostWorkers);
  switch (event.kind_case()) {
    case Event::kSays:
      return Say(chief, index, event.says());
    case Event::kBeats: {
      lockstep::proto::HeartbeatRequest request;
      *request.mutable_heartbeat() = event.beats();
      const auto understood = lockstep::FromWire(request);
      const FakeWorker& worker = chief.worker(index);
      if (understood.ok()) {
        chief.Do(lockstep::chief::HeartbeatReceived{
            {chief.config().policy.job, worker.term, worker.id}, understood->heartbeat, ""});
      }
      return;
    }
    case Event::kAdvanceMs:
      return chief.Advance(absl::Milliseconds(event.advance_ms() % kMostAdvanceMs));
    case Event::kApplies: {
      uint64_t step = 0;
      for (const int member : chief.Members()) step = std::max(step, chief.worker(member).position.step);
      return chief.StepTo(std::min(step + event.applies() % 30, chief.config().policy.training.end_step));
    }
    case Event::kConnects:
      if (!event.connects()) chief.Kill(index);
      return chief.Connect(index);
    case Event::kResets:
      return chief.Reset(index, event.resets());
    case Event::kSnapshots:
      return chief.TakeSnapshots(static_cast<lockstep::SnapshotCause>(static_cast<uint32_t>(event.snapshots()) % 6));
    case Event::kMute:
      chief.worker(index).mute = event.mute();
      return;
    case Event::kStoring:
      chief.storing = event.storing();
      return;
    case Event::kStop:
      return chief.Do(lockstep::chief::StopRequested{event.stop()});
    case Event::kDrain:
      return chief.Do(lockstep::chief::DrainRequested{1, {event.drain()}});
    case Event::kBoundary:
      return chief.MeetAtBoundary();
    case Event::kFence: {
      const auto fence = lockstep::FromWire(event.fence());
      if (fence.ok()) {
        chief.Do(lockstep::chief::FromWorker{chief.worker(index).session, *fence, lockstep::LeaveIntent()});
      }
      return;
    }
    case Event::kStorageError:
      chief.storage_error = event.storage_error();
      return;
    case Event::KIND_NOT_SET:
      return;
  }
}

}  // namespace

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const BinaryMutator<ChiefScript> mutator({"worker-0", "worker-1", "host-1", "lineage-1", "lineage-2", "job-1",
                                                   "plan-1", "data-1", "digest-of-0", "digest-of-20"});
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  lockstep::fuzz::ChiefScript script;
  if (!script.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto options = OptionsOf(script);
  if (!options.has_value()) return 0;
  ChiefHarness chief(*options);
  for (int i = 0; i < std::min(script.events_size(), kMostEvents) && !chief.ended(); ++i) {
    Happens(chief, script.events(i));
    const auto exit = chief.Last<lockstep::chief::Exit>();
    const bool wrong = exit.reason.find("a defect of the chief") != std::string::npos;
    if (wrong) std::fprintf(stderr, "%s\n", exit.reason.c_str());
    LS_CHECK(!wrong, "nothing that is said makes the chief wrong");
  }
  return 0;
}
