// How a worker comes in: Hello, the kernel plan, preparation and probe, test connections (rules 10, 11, 14, 30 to 32).
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

// Why a worker of another host cannot reach `peer`, where its address tells.
std::string LoopbackHint(const Worker& worker, const Worker& peer) {
  const std::string& address = peer.member.address;
  const bool loopback = address.rfind("127.", 0) == 0 || address.rfind("localhost:", 0) == 0;
  if (!loopback || worker.host == peer.host) return "";
  return absl::StrCat(". ", peer.name(), " listens where only its own host, ", peer.host,
                      ", reaches it: start it with --peer-host ADDRESS, one of that host's addresses");
}

int32_t ExitCodeOf(PrepareProblem problem) { return problem == PrepareProblem::kData ? kExitBadData : kExitBadJob; }

}  // namespace

void Coordinator::Refuse(SessionId session, int32_t code, const std::string& message) {
  out_.Say(Level::kWarning, absl::StrCat("a worker was refused: ", message));
  out_.Command(session, Generation(), Refused{code, message}, message);
  out_.Add(CloseSession{session, "refused"});
}

void Coordinator::RefuseWorker(Worker& worker, int32_t code, const std::string& message) {
  out_.Say(Level::kError, absl::StrCat("refused ", worker.name(), " on ", worker.host, ": ", message));
  out_.Command(worker, Generation(), Refused{code, message}, message);
  Lose(worker.id(), WorkerChange::kRefused, message, /*close=*/true);
}

void Coordinator::OnHello(SessionId session, const WorkerFence& fence, const Hello& hello) {
  if (hello.highest_term > term_) {
    phase_ = Phase::kEnded;
    out_.Add(Exit{kExitFenced, absl::StrCat("a worker on ", hello.host, " follows the chief of term ",
                                            hello.highest_term, "; this one has term ", term_)});
    return;
  }
  if (!hello.job.empty() && hello.job != policy_.job) {
    return Refuse(session, kExitBadJob,
                  absl::StrCat("it belongs to job ", hello.job, "; this chief runs job ", policy_.job,
                               ". Give the worker this chief's address, or none of the other job."));
  }
  if (fence.incarnation.IsNone()) return Refuse(session, kExitBadJob, "its Hello names no incarnation");
  if (roster_.Find(fence.incarnation) != nullptr) {
    const bool other_stream = roster_.Find(fence.incarnation)->session != session;
    Lose(fence.incarnation, WorkerChange::kLost, "it connected anew", /*close=*/other_stream);
    if (phase_ == Phase::kEnded) return;
  }
  if (Worker* other = roster_.BySession(session)) {
    Lose(other->id(), WorkerChange::kLost, "another process took over its session", /*close=*/false);
  }
  if (roster_.size() >= kMaxWorkers) {
    return Refuse(session, kExitBadJob, absl::StrCat("this chief serves at most ", kMaxWorkers, " workers"));
  }
  if (RefuseDrained(session, hello)) return;
  // A process that was started again under its name, faster than the end of the old one's stream came in? Or a second
  // one beside it?
  if (Worker* old = roster_.ByName(hello.preferred_name); old != nullptr && old->host == hello.host) {
    return AwaitName(session, fence, hello);
  }
  Worker worker;
  worker.member = Member{fence.incarnation,
                         roster_.FreeName(hello.preferred_name, [this](const auto& name) { return drains_.Has(name); }),
                         hello.peer_address};
  worker.session = session;
  worker.host = hello.host;
  worker.device = hello.device;
  worker.step = hello.position.step;
  worker.heard = worker.progressed = last_came_ = now_;
  worker.leaving = hello.leaving;
  Admit(roster_.Add(std::move(worker)), hello);
}

void Coordinator::Admit(Worker& worker, const Hello& hello) {
  if (hello.has_state) TakeUpLineage(hello.lineage);
  drains_.Saw(worker.name(), worker.host);
  MarkDrained();
  gone_.Came(worker.id(), worker.name());
  hosts_.Came(worker.name(), worker.host);
  const Generation fence_generation = hello.activity == Activity::kIdle ? Generation() : hello.generation;
  out_.Command(worker, fence_generation,
               Welcome{policy_.job, worker.name(), history_.lineage(), policy_.metagraph, policy_.training},
               absl::StrCat("Hello of ", worker.name(), " on ", hello.host));
  if (result_.has_value()) return SendDone(worker);
  std::optional<HeldState> state;
  if (hello.has_state) state = HeldState{hello.lineage, hello.position, Digest()};
  worker.Keeps(hello.kept);
  if (hello.activity == Activity::kIdle) {
    worker.held = state;
  } else {
    const bool goes_on = MayGoOn(hello) || (phase_ == Phase::kFinishing && hello.activity == Activity::kFinished);
    if (goes_on && phase_ == Phase::kWaiting) ListenAgain(absl::StrCat(worker.name(), " came back"));
    worker.busy = hello.generation;
    worker.claimed = state;
    worker.claims = Claims(hello.members);
    worker.finished = hello.activity == Activity::kFinished;
    if (!goes_on) SendVerdict(worker, "its generation ended when its session did");
  }
  if (worker.finished) WelcomeFinished(worker, hello);
  if (hello.ready.has_value() && IsOfThisJob(*hello.ready) && plan_.known()) AcceptReady(worker, *hello.ready);
}

std::shared_ptr<const std::vector<Member>> Coordinator::Claims(const std::vector<Member>& members) {
  if (members.empty()) return nullptr;
  auto known = last_claims_.lock();
  if (known == nullptr || *known != members) {
    known = std::make_shared<const std::vector<Member>>(members);
    last_claims_ = known;
  }
  return known;
}

void Coordinator::TakeUpLineage(const Lineage& lineage) {
  // Once a generation was adopted or formed, the history is the one that it goes on with, whatever others name.
  if (!policy_.lineage_per_generation || !newest_.IsNone() || JobLineage(lineage) != job_lineage_) return;
  if (BegunBy(lineage) <= BegunBy(history_.lineage())) return;
  history_.Rename(lineage);
  progress_.GoOnAs(lineage, progress_.agreed());
}

void Coordinator::WelcomeFinished(Worker& worker, const Hello& hello) {
  // The last snapshot is what the job waits for. Others are told again by SnapshotTaken once the worker is welcome.
  const bool evaluated = hello.position >= RestoredPosition(policy_.training, hello.position.step);
  std::vector<Incarnation> members;
  for (const Member& member : hello.members) members.push_back(member.incarnation);
  for (const SnapshotId& snapshot : hello.snapshots) {
    if (snapshot.lineage != history_.lineage() || snapshot.step != hello.position.step) continue;
    CompareDigest(worker, snapshot.step, snapshot.digest);
    if (repair_.pending()) return;
    const std::string finding =
        saves_.Taken(worker.id(), SnapshotTaken{hello.generation, snapshot, SnapshotCause::kEnd, hello.ledger},
                     evaluated, members, /*audits=*/!members.empty(), out_, roster_);
    if (!finding.empty()) OnDifference(snapshot.step, absl::StrCat(worker.name(), ": ", finding));
  }
}

void Coordinator::OnMessage(Worker& worker, const PlanMade& message) {
  if (worker.stage != Worker::Stage::kPlanning) return;  // another one was appointed meanwhile
  worker.stage = Worker::Stage::kWelcomed;
  if (const std::string why = PlanTracker::WhatIsWrong(message); !why.empty()) {
    return RefuseWorker(worker, kExitBadJob, why);
  }
  out_.Add(plan_.Accept(worker.id(), worker.name(), message));
}

void Coordinator::On(const PlanStored& event) { plan_.Stored(event, now_); }

void Coordinator::OnMessage(Worker& worker, const Ready& message) {
  if (!IsOfThisJob(message)) {
    worker.stage = Worker::Stage::kWelcomed;  // the plan or the job was replaced meanwhile: prepare again
    return;
  }
  AcceptReady(worker, message);
}

bool Coordinator::IsOfThisJob(const Ready& ready) const {
  return ready.plan_hash == plan_.hash() && ready.settings == policy_.training.settings;
}

void Coordinator::AcceptReady(Worker& worker, const Ready& ready) {
  if (!plan_.AcceptData(ready.data_digest)) {
    const std::string why =
        absl::StrCat("its data files have digest ", ready.data_digest.substr(0, 12), ", the job's have ",
                     plan_.data_digest().substr(0, 12), ". Give ", worker.host, " the same files.");
    return RefuseWorker(worker, kExitBadData, why);
  }
  worker.stage = Worker::Stage::kReady;
  pairs_.Came(worker.id());
  worker.ready = ready;
  if (!ready.device.empty()) worker.device = ready.device;
}

bool Coordinator::PlanMayBeReplaced(const Worker& asking) {
  // A worker that cannot run its own plan would make the same plan again.
  if (saves_.published().step != 0 || plan_.IsMadeBy(asking.id())) return false;
  for (Worker* worker : roster_.InOrder()) {
    // Somebody can run it, is about to find out, or lives by it.
    if (worker->stage != Worker::Stage::kWelcomed || worker->held.has_value() || !worker->AtRest()) return false;
  }
  return true;
}

void Coordinator::OnMessage(Worker& worker, const PrepareFailed& message) {
  const bool by_plan = worker.stage == Worker::Stage::kPreparing && message.problem == PrepareProblem::kCannotRun;
  worker.stage = Worker::Stage::kWelcomed;
  if (by_plan && PlanMayBeReplaced(worker)) {
    out_.Say(Level::kWarning, absl::StrCat("no worker here can run kernel plan ", plan_.hash().substr(0, 12), " (",
                                           message.message, "); nothing was trained with it, so a new one is made"));
    return plan_.Discard();
  }
  RefuseWorker(worker, ExitCodeOf(message.problem), message.message);
}

void Coordinator::PrepareOrPlan() {
  const std::vector<Worker*> workers = roster_.InOrder();
  if (!plan_.known()) {
    if (auto again = plan_.RetryDue(now_)) out_.Add(*std::move(again));
    const bool under_way = plan_.IsBeingStored() ||
                           std::any_of(workers.begin(), workers.end(),
                                       [](const Worker* worker) { return worker->stage == Worker::Stage::kPlanning; });
    if (under_way) return;
    for (Worker* worker : workers) {
      if (worker->leaving || !worker->AtRest()) continue;
      worker->stage = Worker::Stage::kPlanning;
      out_.Command(*worker, Generation(), MakePlan{policy_.metagraph}, "the job has no kernel plan yet");
      return;
    }
    return;
  }
  for (Worker* worker : workers) {
    if (worker->stage != Worker::Stage::kWelcomed || worker->leaving || !worker->AtRest()) continue;
    worker->stage = Worker::Stage::kPreparing;
    out_.Command(*worker, Generation(),
                 Prepare{policy_.metagraph, plan_.hash(), plan_.data_digest(), policy_.training.settings},
                 "to be ready before it joins");
  }
}

void Coordinator::TestConnectionsDue() {
  std::vector<const Worker*> workers;
  std::vector<Reachability::Candidate> ready;
  for (const Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() || worker->leaving) continue;
    workers.push_back(worker);
    ready.push_back({worker->id(), worker->AtRest()});
  }
  for (const Reachability::Test& due : pairs_.TakeTests(ready, now_)) {
    TestPeers test;
    test.round = ++test_rounds_;
    for (const size_t peer : due.peers) test.peers.push_back(workers[peer]->member);
    out_.Command(*workers[due.tester], Generation(), std::move(test),
                 "a pair shares a generation only after it has met");
  }
}

void Coordinator::OnMessage(Worker& worker, const PeersTested& message) {
  for (const Incarnation& peer : message.reached) {
    if (roster_.Find(peer) != nullptr) pairs_.Succeeded(worker.id(), peer);
  }
  for (const Incarnation& peer : message.failed) {
    const Worker* other = roster_.Find(peer);
    if (other == nullptr) continue;
    if (!pairs_.Failed(worker.id(), peer, now_)) continue;
    out_.Say(
        Level::kWarning,
        absl::StrCat(worker.name(), " cannot connect to ", other->name(), " at ", other->member.address, ": ",
                     message.message, "; they are kept apart until a test succeeds", LoopbackHint(worker, *other)));
  }
}

}  // namespace lockstep::chief
