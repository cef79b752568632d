// Tests in the background whether peers can be reached (peer_probe.h).
//
// Invariants
//   * A peer's result is reported as soon as its own test ends.
//   * Any number of requests for a peer during its test lead to one further test: requests for peers that do not answer
//     do not pile up.
//   * Each peer's time limit adapts to its earlier answers (common/net/answer_limit.h).
//
// Threading: thread-safe; owns one thread, and others while tests are under way. The destructor ends those.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_TESTER_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_TESTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/answer_limit.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/sync/mutex.h"

namespace lockstep::worker {

class PeerTester {
 public:
  struct Options {
    // The worker's own address. If it cannot listen there, no peer can reach it, and all tests fail.
    std::string own_host;
    // The first and smallest time limit of a peer, and the largest. The chief repeats a request after 10 s.
    absl::Duration least = absl::Seconds(3);
    absl::Duration most = absl::Seconds(8);
    // Called on the tester's thread with the results of one or several peers; not after the destructor.
    std::function<void(const PeersTested&)> done;
  };

  explicit PeerTester(Options options);
  ~PeerTester();
  PeerTester(const PeerTester&) = delete;
  PeerTester& operator=(const PeerTester&) = delete;

  // Never blocks.
  void Test(uint64_t round, const std::vector<Member>& peers);

 private:
  struct Found {
    Incarnation peer;
    absl::Status status;
  };

  void Run();
  void TestAll(uint64_t round, const std::vector<Member>& peers);
  absl::Status TestOne(const Member& peer);
  std::shared_ptr<AnswerLimit> LimitOf(const Incarnation& peer);
  void Tell(uint64_t round, const std::vector<Found>& found);

  const Options options_;
  int cancel_read_ = -1;
  int cancel_write_ = -1;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  uint64_t round_ GUARDED_BY(mutex_) = 0;  // the newest
  std::map<Incarnation, Member> wanted_ GUARDED_BY(mutex_);
  std::vector<Found> found_ GUARDED_BY(mutex_);                                    // not told yet
  std::map<Incarnation, std::shared_ptr<AnswerLimit>> limits_ GUARDED_BY(mutex_);  // at most kMaxRepeated
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_TESTER_H_
