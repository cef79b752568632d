#include "chief/core/audit.h"

#include <algorithm>
#include <iterator>

namespace lockstep::chief {

void Audit::Begin(uint64_t step, const std::vector<Incarnation>& members) {
  members_ = std::set<Incarnation>(members.begin(), members.end());
  begin_ = step;
  ++generation_;
  for (const Incarnation& member : members) {
    std::map<uint64_t, int>& of_member = generations_[member];
    of_member.erase(of_member.lower_bound(step), of_member.end());  // it computes those steps again
    of_member[step] = generation_;
    if (of_member.size() > kMaxGenerations) of_member.erase(of_member.begin());
  }
}

bool Audit::HasTold(const Incarnation& member) const {
  return std::any_of(digests_.begin(), digests_.end(), [&](const auto& at) { return at.second.contains(member); });
}

Audit::Told Audit::Tell(const Incarnation& member, uint64_t step, const Digest& digest) const {
  int generation = 0;
  if (const auto found = generations_.find(member); found != generations_.end()) {
    const auto next = found->second.upper_bound(step);
    if (next != found->second.begin()) generation = std::prev(next)->second;
  }
  return {digest, OriginOf(member), generation};
}

void Audit::Restored(uint64_t step, const std::vector<Incarnation>& members) {
  generations_.clear();
  generation_ = 0;
  Begin(step, members);
  digests_.clear();
  audited_.erase(audited_.upper_bound(step), audited_.end());
  differs_at_.reset();
  origins_.clear();
  origins_known_ = true;
}

void Audit::GoesOn(uint64_t step, const std::vector<Incarnation>& members, const Incarnation& source,
                   const std::set<Incarnation>& receivers, bool same_bits) {
  Begin(step, members);
  if (!same_bits) {
    digests_.erase(digests_.upper_bound(step), digests_.end());
    audited_.erase(audited_.upper_bound(step), audited_.end());
  }
  const Incarnation origin = OriginOf(source);
  for (const Incarnation& receiver : receivers) origins_[receiver] = origin;
  // Workers that are gone may have left copies behind; an entry that is neither a member nor the source of one is
  // useless.
  std::set<Incarnation> needed = members_;
  for (const Incarnation& member : members) needed.insert(OriginOf(member));
  std::erase_if(origins_, [&](const auto& entry) { return needed.count(entry.first) == 0; });
  std::erase_if(generations_,
                [&](const auto& entry) { return !members_.contains(entry.first) && !HasTold(entry.first); });
}

void Audit::Adopted(uint64_t step, const std::vector<Incarnation>& members) {
  Begin(step, members);
  origins_known_ = false;
}

bool Audit::AllAgree(const Digests& digests) const {
  if (members_.empty()) return false;
  return std::all_of(members_.begin(), members_.end(), [&](const Incarnation& member) {
    const auto found = digests.find(member);
    return found != digests.end() && found->second.digest == digests.begin()->second.digest;
  });
}

bool Audit::Agrees(const Incarnation& member, uint64_t step, const Digest& digest, absl::Duration trained_for) {
  Digests& at = digests_[step];
  const bool agrees =
      std::all_of(at.begin(), at.end(), [&](const auto& entry) { return entry.second.digest == digest; });
  // A digest that is reported again, by a snapshot or in a new session, is no new witness.
  Told& told = at.try_emplace(member, Tell(member, step, digest)).first->second;
  if (told.digest != digest) told = Tell(member, step, digest);
  if (!agrees && !differs_at_.has_value()) differs_at_ = step;
  if (!differs_at_.has_value() && step > begin_ && AllAgree(at)) {
    origins_.clear();
    origins_known_ = true;
    audited_.try_emplace(step, Audited{digest, trained_for});
    if (audited_.size() > kMaxAudited) audited_.erase(audited_.begin());
  }
  while (digests_.size() > kMaxSteps) {
    // What speaks of a difference stays.
    const auto oldest = digests_.begin()->first == differs_at_ ? std::next(digests_.begin()) : digests_.begin();
    digests_.erase(oldest);
  }
  return agrees;
}

std::vector<Incarnation> Audit::Awaited() const {
  std::vector<Incarnation> awaited;
  const auto at = differs_at_.has_value() ? digests_.find(*differs_at_) : digests_.end();
  if (at == digests_.end()) return awaited;
  for (const Incarnation& member : members_) {
    if (at->second.count(member) == 0) awaited.push_back(member);
  }
  return awaited;
}

std::vector<Incarnation> Audit::Minority() const {
  const auto at = differs_at_.has_value() ? digests_.find(*differs_at_) : digests_.end();
  if (at == digests_.end() || !origins_known_) return {};
  std::map<int, Digests> by_generation;
  for (const auto& [member, told] : at->second) by_generation[told.generation].emplace(member, told);
  for (const auto& [generation, digests] : by_generation) {
    if (generation == 0) continue;
    std::vector<Incarnation> minority = MinorityOf(digests);
    if (!minority.empty()) return minority;
  }
  return {};
}

std::vector<Incarnation> Audit::MinorityOf(const Digests& digests) {
  std::map<Digest, std::set<Incarnation>> voices;
  for (const auto& [member, told] : digests) voices[told.digest].insert(told.origin);
  size_t all = 0;
  const Digest* most = nullptr;
  for (const auto& [digest, who] : voices) {
    all += who.size();
    if (most == nullptr || who.size() > voices.at(*most).size()) most = &digest;
  }
  if (voices.size() < 2 || voices.at(*most).size() * 2 <= all) return {};
  std::vector<Incarnation> minority;
  for (const auto& [member, told] : digests) {
    if (told.digest != *most) minority.push_back(member);
  }
  return minority;
}

}  // namespace lockstep::chief
