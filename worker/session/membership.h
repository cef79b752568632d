// The generation that a worker is in, if any: its members and this worker's rank.
//
// Invariants (BrokenInvariant)
//   * The worker only enters generations that are newer than all that it knows.
//   * In a generation, members()[rank()] is this worker.
//
// Threading: owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_MEMBERSHIP_H_
#define LOCKSTEP_WORKER_SESSION_MEMBERSHIP_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::worker {

class Membership {
 public:
  explicit Membership(Incarnation self) : self_(self) {}

  bool none() const { return generation_.IsNone(); }
  const Generation& generation() const { return generation_; }
  const Generation& newest() const { return newest_; }  // the newest that this process knows
  const std::vector<Member>& members() const { return form_.members; }
  uint32_t rank() const { return rank_; }
  // How the generation was formed.
  const Form& form() const { return form_; }
  // This worker's index among `members`; members.size() if it is not among them.
  uint32_t RankIn(const std::vector<Member>& members) const {
    const auto self = std::find_if(members.begin(), members.end(),
                                   [this](const Member& member) { return member.incarnation == self_; });
    return static_cast<uint32_t>(self - members.begin());
  }

  // REQUIRES: this worker is one of the members.
  void Enter(const Generation& generation, const Form& form) {
    generation_ = newest_ = generation;
    form_ = form;
    rank_ = RankIn(form.members);
  }
  // The chief formed a generation without this worker, or ended a generation.
  void Supersede(const Generation& generation) { newest_ = std::max(newest_, generation); }
  void End() {
    generation_ = {};
    form_.members.clear();
  }

  // Describes a violated invariant; "" while all hold.
  std::string BrokenInvariant() const {
    if (none()) return "";
    if (newest_ < generation_) {
      return absl::StrCat("it is in generation ", generation_.ToString(), " and knows none above ", newest_.ToString());
    }
    if (rank_ < members().size() && members()[rank_].incarnation == self_) return "";
    return absl::StrCat("it is not member ", rank_, " of generation ", generation_.ToString());
  }

 private:
  const Incarnation self_;
  Generation generation_;
  Generation newest_;
  Form form_;
  uint32_t rank_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_MEMBERSHIP_H_
