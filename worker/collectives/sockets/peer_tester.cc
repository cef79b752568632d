#include "worker/collectives/sockets/peer_tester.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/collectives/sockets/peer_probe.h"

namespace lockstep::worker {
namespace {

constexpr size_t kTestsAtOnce = 32;

}  // namespace

PeerTester::PeerTester(Options options) : options_(std::move(options)) {
  // Where no descriptor is left the destructor waits for the tests' own limits.
  if (int ends[2]; pipe2(ends, O_CLOEXEC) == 0) {
    cancel_read_ = ends[0];
    cancel_write_ = ends[1];
  }
  thread_ = std::thread([this] { Run(); });
}

PeerTester::~PeerTester() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.SignalAll();
  }
  if (cancel_write_ >= 0) close(cancel_write_);  // every probe sees the end of the pipe
  thread_.join();
  if (cancel_read_ >= 0) close(cancel_read_);
}

void PeerTester::Test(uint64_t round, const std::vector<Member>& peers) {
  MutexLock lock(&mutex_);
  round_ = round;
  for (const Member& peer : peers) wanted_[peer.incarnation] = peer;
  changed_.SignalAll();
}

void PeerTester::Run() {
  for (;;) {
    std::vector<Member> peers;
    uint64_t round = 0;
    {
      MutexLock lock(&mutex_);
      while (wanted_.empty() && !ending_) changed_.Wait(&mutex_);
      if (ending_) return;
      for (auto& [incarnation, peer] : std::exchange(wanted_, {})) peers.push_back(std::move(peer));
      round = round_;
    }
    TestAll(round, peers);
  }
}

void PeerTester::TestAll(uint64_t round, const std::vector<Member>& peers) {
  if (const absl::Status here = CanListen(options_.own_host); !here.ok()) {
    std::vector<Found> found;
    for (const Member& peer : peers) found.push_back({peer.incarnation, here});
    return Tell(round, found);
  }
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(peers.size(), kTestsAtOnce); ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < peers.size(); i = next++) {
        const absl::Status status = TestOne(peers[i]);
        MutexLock lock(&mutex_);
        found_.push_back({peers[i].incarnation, status});
        changed_.SignalAll();
      }
    });
  }
  for (size_t told = 0; told < peers.size();) {
    std::vector<Found> found;
    {
      MutexLock lock(&mutex_);
      while (found_.empty()) changed_.Wait(&mutex_);
      found.swap(found_);
    }
    told += found.size();
    Tell(round, found);
  }
  for (std::thread& thread : threads) thread.join();
}

absl::Status PeerTester::TestOne(const Member& peer) {
  const std::shared_ptr<AnswerLimit> limit = LimitOf(peer.incarnation);
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = ProbePeer(peer.address, peer.incarnation, limit->limit(), cancel_read_);
  if (status.ok()) limit->Answered(absl::FromChrono(std::chrono::steady_clock::now() - begin));
  if (absl::IsDeadlineExceeded(status)) limit->Missed();
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(peer.name, ": ", status.message()));
}

std::shared_ptr<AnswerLimit> PeerTester::LimitOf(const Incarnation& peer) {
  MutexLock lock(&mutex_);
  if (limits_.size() >= kMaxRepeated && limits_.count(peer) == 0) limits_.clear();  // most of them are long dead
  std::shared_ptr<AnswerLimit>& limit = limits_[peer];
  if (limit == nullptr) limit = std::make_shared<AnswerLimit>(options_.least, options_.most);
  return limit;
}

void PeerTester::Tell(uint64_t round, const std::vector<Found>& found) {
  {
    MutexLock lock(&mutex_);
    if (ending_) return;
  }
  PeersTested tested;
  tested.round = round;
  for (const Found& one : found) {
    (one.status.ok() ? tested.reached : tested.failed).push_back(one.peer);
    if (!one.status.ok() && tested.message.empty()) tested.message = std::string(one.status.message());
  }
  options_.done(tested);
}

}  // namespace lockstep::worker
