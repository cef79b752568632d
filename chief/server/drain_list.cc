#include "chief/server/drain_list.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint_format/sealed.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxBytes = 4u << 20;

// DataLoss when it is damaged, NotFound when it is missing.
absl::StatusOr<std::vector<Drain>> ReadDrains(const Storage& storage) {
  const std::string shown = storage.Describe(kDrainList);
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(storage, kDrainList, kMaxBytes));
  LS_ASSIGN_OR_RETURN(const std::string text, ReadSealedText(content, shown));
  std::vector<Drain> drains;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
    Drain drain;
    const bool whole = words.size() == 2 && absl::CUnescape(words[0], &drain.target) &&
                       absl::CUnescape(words[1], &drain.host) && !drain.target.empty();
    if (!whole)
      return absl::DataLossError(absl::StrCat(shown, " is damaged: one of its lines is not a name and a host"));
    drains.push_back(std::move(drain));
  }
  return drains;
}

}  // namespace

std::vector<Drain> DrainsOf(const CommitRecord& record) {
  std::vector<Drain> drains;
  for (const DrainedTarget& drained : record.drains()) {
    Drain& drain = drains.emplace_back();
    absl::CUnescape(drained.target(), &drain.target);
    absl::CUnescape(drained.host(), &drain.host);
  }
  return drains;
}

void SetDrains(const std::vector<Drain>& drains, CommitRecord& record) {
  record.clear_drains();
  for (const Drain& drain : drains) {
    DrainedTarget* drained = record.add_drains();
    drained->set_target(absl::CEscape(drain.target));
    drained->set_host(absl::CEscape(drain.host));
  }
}

absl::StatusOr<std::vector<Drain>> ReadOlderDrains(const Storage& storage) {
  absl::StatusOr<std::vector<Drain>> drains = ReadDrains(storage);
  if (absl::IsNotFound(drains.status())) return std::vector<Drain>();
  if (!absl::IsDataLoss(drains.status())) return drains;
  LS_LOG(warn, drains.status().message(), "; nobody is drained until `lockstep drain` is given again");
  return std::vector<Drain>();
}

}  // namespace lockstep::chief
