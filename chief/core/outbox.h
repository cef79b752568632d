// Collects the actions of one step of the core, and addresses commands to workers.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_OUTBOX_H_
#define LOCKSTEP_CHIEF_CORE_OUTBOX_H_

#include <string>
#include <utility>
#include <vector>

#include "chief/core/actions.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class Outbox {
 public:
  explicit Outbox(Term term) : term_(term) {}

  void Add(Action action) { actions_.push_back(std::move(action)); }
  void Say(Level level, std::string text) { Add(Announce{level, std::move(text)}); }
  // `generation`: none for a command that concerns no generation.
  void Command(SessionId session, const Generation& generation, ChiefCommand command, std::string reason) {
    Add(Send{session, ChiefFence{term_, generation}, std::move(command), std::move(reason)});
  }
  void Command(const Worker& worker, const Generation& generation, ChiefCommand command, std::string reason) {
    Command(worker.session, generation, std::move(command), std::move(reason));
  }
  // Emits one action for all workers, so that the cost of a command to a generation does not grow with the square of
  // its size.
  void CommandAll(const std::vector<Worker*>& workers, const Generation& generation, ChiefCommand command,
                  std::string reason) {
    if (workers.empty()) return;
    SendToAll send{{}, ChiefFence{term_, generation}, std::move(command), std::move(reason)};
    for (const Worker* worker : workers) send.sessions.push_back(worker->session);
    Add(std::move(send));
  }
  std::vector<Action> Take() { return std::exchange(actions_, {}); }

 private:
  Term term_;
  std::vector<Action> actions_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_OUTBOX_H_
