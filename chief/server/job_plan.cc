#include "chief/server/job_plan.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "chief/metagraph/artifact_store.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/sealed.h"
#include "common/digest/sha256.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

// The plan's hash and the digest of the data it was made with, a line each, and the digest of both.
constexpr char kCurrentPlan[] = "plans/current";
constexpr uint64_t kMaxCurrentBytes = 4096;

absl::StatusOr<std::string> NameOfPlan(absl::string_view bytes) { return Sha256Hex(bytes); }

bool IsHexDigest(absl::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

struct Current {
  JobPlan plan;
  bool sealed = true;  // a digest vouches for it
};

// DataLoss when it is damaged, NotFound when it is missing.
absl::StatusOr<Current> ReadCurrent(const Storage& storage) {
  const std::string shown = storage.Describe(kCurrentPlan);
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(storage, kCurrentPlan, kMaxCurrentBytes));
  LS_ASSIGN_OR_RETURN(const std::string text, ReadSealedText(content, shown));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const bool whole = lines.size() == 3 && lines[2].empty() && IsHexDigest(lines[0]);
  if (!whole || !(lines[1].empty() || IsHexDigest(lines[1]))) {
    return absl::DataLossError(absl::StrCat(shown, " was damaged: it does not hold the two digests that it should"));
  }
  return Current{{lines[0], lines[1]}, text.size() != content.size()};
}

// The hashes of the plans that are there whole.
absl::StatusOr<std::vector<std::string>> IntactPlans(const Storage& storage) {
  std::vector<std::string> intact;
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(layout::kPlans));
  for (const DirectoryEntry& entry : entries) {
    absl::string_view name = entry.name;
    if (!absl::ConsumeSuffix(&name, ".pb") || !LoadJobPlan(storage, std::string(name)).ok()) continue;
    intact.emplace_back(name);
  }
  return intact;
}

// The plan where no checkpoint names one and plans/current is of no use: the only one that there is.
absl::StatusOr<std::string> OnlyPlan(const Storage& storage, const absl::Status& damage) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> intact, IntactPlans(storage));
  if (intact.size() == 1) return intact[0];
  if (intact.empty()) return std::string();
  return absl::DataLossError(absl::StrCat(damage.message(), ", and ", storage.Describe(layout::kPlans), " holds ",
                                          intact.size(),
                                          " plans. Put a good copy of it back, or, as nothing was "
                                          "trained yet, remove it and those plans"));
}

}  // namespace

absl::StatusOr<std::string> LoadJobPlan(const Storage& storage, const std::string& hash) {
  return LoadArtifact(storage, layout::kPlans, hash, NameOfPlan);
}

absl::Status CheckPlanIsThere(const Storage& storage, const std::string& hash) {
  const absl::Status there = LoadJobPlan(storage, hash).status();
  if (there.ok()) return there;
  return absl::Status(there.code(), absl::StrCat(there.message(),
                                                 ". This kernel plan decides the bits of the job: put a good copy of "
                                                 "the file back, or start again with another --dir"));
}

absl::Status StoreJobPlan(TermHold& hold, JobLog& log, const JobPlan& plan, const std::string& bytes) {
  if (!plan.data_digest.empty() && !IsHexDigest(plan.data_digest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::CHexEscape(plan.data_digest.substr(0, 80)), "' is no digest of data"));
  }
  LS_RETURN_IF_ERROR(StoreArtifact(hold, layout::kPlans, plan.hash, bytes, NameOfPlan).status());
  return log.Change("the kernel plan", [&](CommitRecord& record) {
    record.set_kernel_plan(plan.hash);
    record.set_data_digest(plan.data_digest);
  });
}

absl::StatusOr<JobPlan> FindJobPlan(const Storage& storage, const std::optional<JobPlan>& logged,
                                    const std::string& trained_with, const std::string& data_digest) {
  absl::StatusOr<Current> current = logged.has_value() ? Current{*logged} : ReadCurrent(storage);
  if (current.ok() && trained_with.empty() && !current->sealed && !LoadJobPlan(storage, current->plan.hash).ok()) {
    current = absl::DataLossError(
        absl::StrCat(storage.Describe(kCurrentPlan), " carries no digest and names a plan that is not there whole"));
  }
  const bool damaged = absl::IsDataLoss(current.status());
  if (!current.ok() && !damaged && !absl::IsNotFound(current.status())) return current.status();
  JobPlan plan{trained_with, data_digest};
  if (plan.hash.empty() && current.ok()) plan.hash = current->plan.hash;
  if (plan.hash.empty() && damaged) {
    LS_ASSIGN_OR_RETURN(plan.hash, OnlyPlan(storage, current.status()));
  }
  const bool same_plan = current.ok() && current->plan.hash == plan.hash;
  if (plan.data_digest.empty() && same_plan) plan.data_digest = current->plan.data_digest;
  if (!plan.hash.empty()) LS_RETURN_IF_ERROR(CheckPlanIsThere(storage, plan.hash));
  if (damaged || (current.ok() && !same_plan && !current->plan.hash.empty())) {
    const std::string fault = damaged ? std::string(current.status().message())
                                      : absl::StrCat("the checkpoints were made under another kernel plan than ",
                                                     current->plan.hash.substr(0, 12));
    LS_LOG(warn, fault, "; the job's plan is ", plan.hash.empty() ? "made anew" : plan.hash.substr(0, 12));
  }
  return plan;
}

}  // namespace lockstep::chief
