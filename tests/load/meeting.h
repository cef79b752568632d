// Meetings of the generated members of a generation, at which they connect, synchronise and step as the ranks of a
// communicator do. A meeting is complete once all are there; a member that gives up or dies breaks it for all.
//
// Threading: thread-compatible; owned by Crowd.
#ifndef LOCKSTEP_TESTS_LOAD_MEETING_H_
#define LOCKSTEP_TESTS_LOAD_MEETING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/protocol/control.h"
#include "common/protocol/ids.h"

namespace lockstep::load {

class Meetings {
 public:
  struct Complete {
    std::vector<size_t> workers;  // by rank
    ControlWord word;             // of their contributions
  };

  // A member joins the next meeting of its generation. Returns the complete meeting if it is the last member. REQUIRES:
  // it is not at one already.
  std::optional<Complete> Come(const Generation& generation, size_t members, uint32_t rank, size_t worker,
                               const ControlContribution& slot) {
    Group& group = groups_[generation];
    group.workers.resize(members);
    group.word.slots.resize(members);
    group.workers[rank] = worker;
    group.word.slots[rank] = slot;
    group.present[rank] = worker;
    if (group.present.size() < members) return std::nullopt;
    group.present.clear();
    return Complete{group.workers, group.word};
  }
  // Whether the generation was broken, so that its members meet no more.
  bool IsBroken(const Generation& generation) const {
    const auto group = groups_.find(generation);
    return group != groups_.end() && group->second.broken;
  }
  // Breaks the generation. Returns the members that wait at a meeting which will never be complete.
  std::vector<size_t> Break(const Generation& generation) {
    Group& group = groups_[generation];
    group.broken = true;
    std::vector<size_t> waiting;
    for (const auto& [rank, worker] : group.present) waiting.push_back(worker);
    group.present.clear();
    groups_.erase(groups_.begin(), groups_.find(generation));
    return waiting;
  }

 private:
  struct Group {
    bool broken = false;
    std::vector<size_t> workers;
    ControlWord word;
    std::map<uint32_t, size_t> present;  // by rank
  };
  std::map<Generation, Group> groups_;
};

}  // namespace lockstep::load

#endif  // LOCKSTEP_TESTS_LOAD_MEETING_H_
