// One generated worker: the shipped session core with stubs behind it. Preparing fetches what a real worker fetches and
// discards it; forming exchanges as many addresses as real ranks do; steps are meetings of the members; snapshots are
// real bytes and are uploaded.
//
// Threading: owned by Crowd, on its driving thread. Work on other threads posts events.
#ifndef LOCKSTEP_TESTS_LOAD_LOAD_WORKER_H_
#define LOCKSTEP_TESTS_LOAD_LOAD_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "protos/session.grpc.pb.h"
#include "tests/load/session_link.h"
#include "worker/session/session_core.h"

namespace lockstep::load {

class Crowd;

class LoadWorker {
 public:
  LoadWorker(Crowd* crowd, size_t index, const Incarnation& incarnation);

  const worker::SessionCore& core() const { return core_; }
  const Incarnation& incarnation() const { return incarnation_; }
  bool alive() const { return alive_; }
  std::optional<int32_t> exit_code() const { return exit_code_; }
  // The number of steps that it applied in its generation.
  uint64_t steps_in_generation() const { return steps_; }
  // The term of the chief that last welcomed it.
  Term welcomed_by() const { return welcomed_by_; }

  // Passes an event to the core. `stream`: the stream from which it came; 0: none.
  void Step(const worker::Event& event, uint64_t stream = 0);
  // When the core needs its next Tick.
  absl::Time NextTick() const;
  void Beat();
  // A heartbeat was answered, or failed.
  void BeatEnded(bool answered, Term term);
  // Kills the process: its connections are cut, and it does nothing any more.
  void Kill();

 private:
  void Perform(const worker::Connect& action);
  void Perform(const worker::Disconnect& action);
  void Perform(const worker::Send& action);
  void Perform(const worker::SetPhase& action);
  void Perform(const worker::MakeKernelPlan& action);
  void Perform(const worker::PrepareReplica& action);
  void Perform(const worker::TestConnections& action);
  void Perform(const worker::FormCommunicator& action);
  void Perform(const worker::DeliverStore& action);
  void Perform(const worker::SyncState& action);
  void Perform(const worker::RunStep& action);
  void Perform(const worker::RunSlice& action);
  void Perform(const worker::AbortCollectives& action);
  void Perform(const worker::StopComputing& action);
  void Perform(const worker::ComputeDigest& action);
  void Perform(const worker::TakeSnapshot& action);
  void Perform(const worker::UploadShare& action);
  void Perform(const worker::Exit& action);
  void Perform(const worker::WriteSample&) {}
  void Perform(const worker::CancelSample&) {}
  void Perform(const worker::ReleaseMemory&) {}
  void Perform(const worker::DropSnapshot&) {}
  void Perform(const worker::TakeUpKept&) {}  // this worker keeps no copies
  void Perform(const worker::DropKept&) {}
  void Perform(const worker::Announce& action);

  void Prepare(const std::string& metagraph, const std::string& plan_hash, const Digest& settings);
  // Joins the next meeting of its generation; `then` makes an event for each member once all are there.
  template <typename MakeEvent>
  void Meet(const Generation& generation, const ControlContribution& slot, absl::Duration takes, MakeEvent then);
  void MaybeConnected();

  Crowd& crowd_;
  const size_t index_;
  const Incarnation incarnation_;
  worker::SessionCore core_;
  bool alive_ = true;
  std::optional<int32_t> exit_code_;

  std::shared_ptr<SessionLink> link_;
  uint64_t stream_ = 0;
  WorkerFence fence_;
  Term welcomed_by_ = 0;

  std::optional<worker::SetPhase> phase_;
  std::shared_ptr<proto::Session::Stub> beats_;
  std::string beats_to_;
  bool beat_under_way_ = false;
  uint64_t progress_ = 0;

  Generation generation_;
  std::vector<Member> members_;
  uint32_t rank_ = 0;
  bool forming_ = false;
  std::set<std::string> addresses_;  // keys that peers have set
  uint64_t steps_ = 0;
};

}  // namespace lockstep::load

#endif  // LOCKSTEP_TESTS_LOAD_LOAD_WORKER_H_
