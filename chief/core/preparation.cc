#include "chief/core/preparation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::optional<Preparation::Refusal> Preparation::Made(const CoreContext& context, Worker& worker,
                                                      const PlanMade& message) {
  if (worker.stage != Worker::Stage::kPlanning) return std::nullopt;  // another one was appointed meanwhile
  worker.stage = Worker::Stage::kWelcomed;
  if (std::string why = PlanTracker::WhatIsWrong(message); !why.empty()) return Refusal{kExitBadJob, std::move(why)};
  context.out.Add(plan_.Accept(worker.id(), worker.name(), message));
  return std::nullopt;
}

void Preparation::StoreRefused(const CoreContext& context, const std::string& what) {
  if (!plan_.Refused(context.now, what)) return;
  context.out.Say(Level::kError,
                  absl::StrCat(plan_.TroubleText(context.now), ". It is tried again until the storage takes it"));
}

bool Preparation::IsOfThisJob(const CoreContext& context, const Ready& ready) const {
  return ready.plan_hash == plan_.hash() && ready.settings == context.policy.training.settings;
}

std::optional<Preparation::Refusal> Preparation::Kept(const CoreContext& context, Worker& worker, const Ready& ready,
                                                      Reachability& pairs) {
  if (!IsOfThisJob(context, ready) || !plan_.known()) return std::nullopt;
  return Accept(worker, ready, pairs);
}

std::optional<Preparation::Refusal> Preparation::Prepared(const CoreContext& context, Worker& worker,
                                                          const Ready& ready, Reachability& pairs) {
  if (IsOfThisJob(context, ready)) return Accept(worker, ready, pairs);
  worker.stage = Worker::Stage::kWelcomed;  // the plan or the job was replaced meanwhile: prepare again
  return std::nullopt;
}

std::optional<Preparation::Refusal> Preparation::Accept(Worker& worker, const Ready& ready, Reachability& pairs) {
  if (!plan_.AcceptData(ready.data_digest)) {
    return Refusal{kExitBadData,
                   absl::StrCat("its data files have digest ", ready.data_digest.substr(0, 12), ", the job's have ",
                                plan_.data_digest().substr(0, 12), ". Give ", worker.host, " the same files.")};
  }
  worker.stage = Worker::Stage::kReady;
  pairs.Came(worker.id());
  worker.ready = ready;
  if (!ready.device.empty()) worker.device = ready.device;
  return std::nullopt;
}

bool Preparation::NobodyUses(const Worker& asking, const Roster& roster) const {
  // A worker that cannot run its own plan would make the same plan again.
  if (plan_.IsMadeBy(asking.id())) return false;
  const std::vector<Worker*> workers = roster.InOrder();
  return std::all_of(workers.begin(), workers.end(), [](const Worker* worker) {
    return worker->stage == Worker::Stage::kWelcomed && !worker->held.has_value() && worker->AtRest();
  });
}

std::optional<Preparation::Refusal> Preparation::Failed(const CoreContext& context, Worker& worker,
                                                        const PrepareFailed& message, bool may_replan) {
  const bool by_plan = worker.stage == Worker::Stage::kPreparing && message.problem == PrepareProblem::kCannotRun;
  worker.stage = Worker::Stage::kWelcomed;
  if (!by_plan || !may_replan || !NobodyUses(worker, context.roster)) {
    return Refusal{ExitCodeOf(message.problem), message.message};
  }
  context.out.Say(Level::kWarning,
                  absl::StrCat("no worker here can run kernel plan ", plan_.hash().substr(0, 12), " (", message.message,
                               "); nothing was trained with it, so a new one is made"));
  plan_.Discard();
  return std::nullopt;
}

void Preparation::HavePlanMade(const CoreContext& context) {
  if (auto again = plan_.RetryDue(context.now)) context.out.Add(*std::move(again));
  const std::vector<Worker*> workers = context.roster.InOrder();
  const bool under_way = plan_.IsBeingStored() || std::any_of(workers.begin(), workers.end(), [](const Worker* worker) {
                           return worker->stage == Worker::Stage::kPlanning;
                         });
  if (under_way) return;
  for (Worker* worker : workers) {
    if (worker->leaving || !worker->AtRest()) continue;
    worker->stage = Worker::Stage::kPlanning;
    context.out.Command(*worker, Generation(), MakePlan{context.policy.metagraph}, "the job has no kernel plan yet");
    return;
  }
}

void Preparation::Advance(const CoreContext& context) {
  if (!plan_.known()) return HavePlanMade(context);
  for (Worker* worker : context.roster.InOrder()) {
    if (worker->stage != Worker::Stage::kWelcomed || worker->leaving || !worker->AtRest()) continue;
    worker->stage = Worker::Stage::kPreparing;
    context.out.Command(
        *worker, Generation(),
        Prepare{context.policy.metagraph, plan_.hash(), plan_.data_digest(), context.policy.training.settings},
        "to be ready before it joins");
  }
}

void Preparation::TestConnections(const CoreContext& context, Reachability& pairs) {
  std::vector<const Worker*> workers;
  std::vector<Reachability::Candidate> ready;
  for (const Worker* worker : context.roster.InOrder()) {
    if (!worker->IsReady() || worker->leaving) continue;
    workers.push_back(worker);
    ready.push_back({worker->id(), worker->AtRest()});
  }
  for (const Reachability::Test& due : pairs.TakeTests(ready, context.now)) {
    TestPeers test;
    test.round = ++test_rounds_;
    for (const size_t peer : due.peers) test.peers.push_back(workers[peer]->member);
    context.out.Command(*workers[due.tester], Generation(), std::move(test),
                        "a pair shares a generation only after it has met");
  }
}

void Preparation::Tested(const CoreContext& context, const Worker& worker, const PeersTested& message,
                         Reachability& pairs) const {
  for (const Incarnation& peer : message.reached) {
    if (context.roster.Find(peer) != nullptr) pairs.Succeeded(worker.id(), peer);
  }
  for (const Incarnation& peer : message.failed) {
    const Worker* other = context.roster.Find(peer);
    if (other == nullptr || !pairs.Failed(worker.id(), peer, context.now)) continue;
    context.out.Say(
        Level::kWarning,
        absl::StrCat(worker.name(), " cannot connect to ", other->name(), " at ", other->member.address, ": ",
                     message.message, "; they are kept apart until a test succeeds", LoopbackHint(worker, *other)));
  }
}

std::string Preparation::BrokenInvariant(const Roster& roster) const {
  const Worker* planner = nullptr;
  for (const Worker* worker : roster.InOrder()) {
    if (worker->stage != Worker::Stage::kPlanning) continue;
    if (planner != nullptr) return absl::StrCat(planner->name(), " and ", worker->name(), " both make a kernel plan");
    planner = worker;
  }
  return "";
}

}  // namespace lockstep::chief
