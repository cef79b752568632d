// Tells a peer that takes its time from one that cannot be reached, where its connection stands and nothing comes. Each
// rank asks every other now and then. Who answers is alive, and may compute for as long as it takes: that is no lack of
// progress, and whom to give up is the chief's decision. Who does not answer in time is named in an abort, and so is
// one that is in another call at the same place in the sequence: these two would wait for each other for ever.
//
// Threading: thread-safe. Owns two threads, one that asks and one that hears; it never calls back under its lock.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_GLOO_LIFELINE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_GLOO_LIFELINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "worker/collectives/call.h"
#include "worker/collectives/gloo/mesh.h"

namespace lockstep::worker {

class Lifeline {
 public:
  // `abort` breaks the mesh; `slot` is used by nothing else.
  Lifeline(Mesh& mesh, uint64_t slot, absl::Duration ask_every, absl::Duration answer_limit,
           std::function<void(const absl::Status&)> abort);
  // REQUIRES: the mesh is broken, if Start was called.
  ~Lifeline();

  void Start();
  // To be called when the mesh broke: the threads end.
  void End();

  // The call that this rank is in, from now on.
  void Entered(const Call& call);

 private:
  enum class Kind : uint32_t { kNone, kAsk, kAnswer };
  // Which call a rank is in; sequence 0: none yet.
  struct Place {
    uint64_t sequence = 0;
    int64_t step = 0;
    uint32_t attempt = 0;
    uint32_t kind = 0;
    friend bool operator==(const Place&, const Place&) = default;
    std::string Name() const;
  };
  // What travels, between ranks of one build.
  struct Word {
    Kind kind = Kind::kNone;
    Place place;
  };
  struct Peer {
    bool asked = false;  // and has not answered
    absl::Time when;
  };

  void RunAsking();
  void RunHearing();
  void Hear(int peer, const Word& word);
  // The peer that has not answered in time, or -1.
  int Silent(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskAll(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mesh& mesh_;
  const uint64_t slot_;
  const absl::Duration ask_every_;
  const absl::Duration answer_limit_;
  const std::function<void(const absl::Status&)> abort_;
  // By peer. A word is written again only after the peer has shown that it has the one before: it answered a question,
  // or asks another.
  std::vector<Word> questions_;
  std::vector<Word> answers_;
  Word heard_;
  Region asking_;
  Region answering_;
  Region hearing_;

  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Place place_ ABSL_GUARDED_BY(mutex_);
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::thread asking_thread_;
  std::thread hearing_thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_GLOO_LIFELINE_H_
