#include "chief/server/job_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/found_mark.h"
#include "chief/server/job_retention.h"
#include "chief/term/directory_mark.h"
#include "chief/term/job_log.h"
#include "chief/term/other_chief.h"
#include "chief/term/token.h"
#include "chief/warm_start/warm_start.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/shares.h"
#include "common/graph/metagraph_diff.h"
#include "common/graph/state_tensors.h"
#include "common/job_place/job_place.h"
#include "common/object_store/s3_url.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_files.h"

namespace lockstep::chief {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1 << 20;
constexpr double kFrozenCopies = 2;

// What exists on the way to `directory`: where its bytes will lie.
fs::path NearestExisting(const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error);
  while (!fs::exists(fs::symlink_status(path, error)) && path != path.parent_path()) path = path.parent_path();
  return path;
}

absl::Status CheckFree(const std::string& directory, uint64_t free, int64_t state) {
  if (free >= static_cast<uint64_t>(state)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(directory, " has ", free, " bytes free, and one checkpoint takes ",
                                                   state, "; make room, or choose another directory with --dir"));
}

// `begins`: a run would write the first checkpoint, and refuse to start without room for it.
void LookAtRoom(const JobReading& job, const PreparedJob& prepared, const std::string& directory, bool begins,
                Findings& findings) {
  std::error_code error;
  const fs::space_info space = fs::space(NearestExisting(directory), error);
  if (error) return findings.Warn("disk", absl::StrCat(directory, ": ", error.message()));
  const int64_t state = prepared.layout.TotalBytes();
  if (begins) {
    const absl::Status room = CheckFree(directory, space.available, state);
    if (!room.ok()) return findings.Error("disk", room, kExitStorage);
  }
  const RoomNeeded room = RoomFor(job.spec, prepared.facts.train_samples, prepared.training.end_step);
  // Frozen tensors are there twice at most.
  const auto frozen = static_cast<double>(FrozenShareBytes(ToCheckpointTensors(prepared.layout)));
  const auto checkpoints = static_cast<double>(room.checkpoints);
  const double needed =
      (static_cast<double>(state) - frozen) * checkpoints + frozen * std::min(checkpoints, kFrozenCopies);
  const std::string text =
      absl::StrFormat("%s: %.0f MiB free, %d checkpoints need %.1f MiB%s", directory,
                      static_cast<double>(space.available) / kMiB, room.checkpoints, needed / kMiB, room.more);
  if (static_cast<double>(space.available) < needed) return findings.Warn("disk", text);
  findings.Ok("disk", text);
}

// What the file system says of a private file that this process makes in `directory`. The file has no name and goes
// when it is closed, so nothing is changed. Nullopt where the file system makes none.
std::optional<FileFacts> FactsOfUnnamedFile(const std::string& directory) {
  const int file = open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return std::nullopt;
  struct stat info;
  const bool known = fstat(file, &info) == 0;
  close(file);
  if (!known) return std::nullopt;
  return FileFacts{.owner = info.st_uid, .is_private = (info.st_mode & 0077) == 0};
}

// The token of an earlier start.
void LookAtToken(const Storage& storage, Findings& findings) {
  const absl::Status read = ReadToken(storage).status();
  if (!read.ok() && !absl::IsNotFound(read)) findings.Error("directory", read, TokenExitCode(read));
}

// Whose it is, and who may read it: what a chief asks once the job may go on. A warning where the file system does not
// tell how it would show a file of this user.
void LookAtTokenOwner(const Storage& storage, Findings& findings) {
  if (!ReadToken(storage).ok()) return;
  const std::optional<FileFacts> own = FactsOfUnnamedFile(storage.Describe(layout::kChief));
  const absl::Status ours = CheckTokenIsOwn(storage, own.value_or(FileFacts{.owner = geteuid()}));
  if (ours.ok()) return;
  if (!own.has_value()) return findings.Warn("directory", std::string(ours.message()));
  findings.Error("directory", ours, TokenExitCode(ours));
}

// The newest checkpoint of the directory's history that opens; nullopt where a chief would begin anew.
absl::StatusOr<std::optional<CheckpointReader>> Newest(const Storage& storage, const CheckpointPaths& paths,
                                                       const DirectoryMark& mark, Findings& findings) {
  const absl::StatusOr<std::vector<CheckpointSummary>> all = ListCheckpoints(storage, paths);
  LS_RETURN_IF_ERROR(all.status());
  for (const CheckpointSummary& summary : *all) {
    if (!summary.status.ok()) {
      findings.Warn("directory", absl::StrCat(summary.name, " will be set aside: ", summary.status.message()));
      continue;
    }
    if (!BelongsTo(summary.manifest, mark)) continue;
    LS_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(storage, summary.path));
    const absl::Status content = reader.VerifyContent();
    if (content.ok()) return std::optional<CheckpointReader>(std::move(reader));
    findings.Warn("directory", absl::StrCat(summary.name, " will be set aside: ", content.message()));
  }
  if (!mark.step_zero_published()) return std::optional<CheckpointReader>();
  return absl::DataLossError(absl::StrCat("no checkpoint in ", storage.Describe(layout::kCheckpoints),
                                          " verifies, and this job has been trained before. Put a good one back with "
                                          "`lockstep checkpoint adopt`, or start again with another --dir"));
}

// OK unless a link lies where the job writes: another user may have put it there.
absl::Status CheckNoLink(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(path, error))) return absl::OkStatus();
  return absl::FailedPreconditionError(SymbolicLinkText(path));
}

// The lock of the directory, which a chief of this machine may hold.
void LookAtLock(const Storage& storage, Findings& findings) {
  absl::Status free = CheckNoLink(storage.Describe(layout::kLock));
  if (free.ok()) free = CheckNoOtherChief(storage);
  if (!free.ok()) findings.Error("directory", free, kExitBadJob);
}

// What the workers of `lockstep run` write to.
void LookAtLogs(const Storage& storage, Findings& findings) {
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage.List(layout::kLogs);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    if (!absl::StartsWith(entry.name, "worker-") || !absl::EndsWith(entry.name, ".log")) continue;
    const absl::Status no_link = CheckNoLink(storage.Describe(JoinPath(layout::kLogs, entry.name)));
    if (!no_link.ok()) findings.Error("directory", no_link, kExitBadJob);
  }
}

// The directory of an earlier start. Returns whether a chief would begin anew in it.
bool LookAtEarlier(const JobReading& job, const PreparedJob* prepared, const JobPlace& place, Findings& findings) {
  Storage& storage = place.storage();
  const bool in_bucket = place.bucket() != nullptr;
  const std::unique_ptr<JobLog> log = JobLog::Of(place);
  const absl::StatusOr<FoundMark> found = FindMark(storage, *log);
  if (!found.ok()) {
    findings.Error("directory", found.status(), StorageExitCode(found.status()));
    return false;
  }
  if (!found->repair.empty()) findings.Warn("directory", found->repair);
  const std::optional<DirectoryMark>& mark = found->mark;
  if (mark.has_value() && !job.mistakes.HasInvalidPart("name")) {
    const absl::Status same = CheckSameJob(storage, *mark, job.spec.name());
    if (!same.ok()) {
      findings.Error("directory", same, kExitBadJob);
      return false;
    }
  }
  if (!in_bucket) {
    LookAtLock(storage, findings);
    LookAtToken(storage, findings);
  }
  if (!mark.has_value()) return true;
  const absl::StatusOr<CheckpointPaths> paths =
      in_bucket ? CheckpointsOfRecord(log->head()) : CheckpointsOfDirectory(storage);
  if (!paths.ok()) {
    findings.Error("directory", paths.status(), kExitStorage);
    return false;
  }
  const auto newest = Newest(storage, *paths, *mark, findings);
  if (!newest.ok()) {
    findings.Error("directory", newest.status(), kExitStorage);
    return false;
  }
  if (!newest->has_value()) return true;
  if (prepared == nullptr) return false;
  const absl::Status resumes = CheckResume(*prepared, storage, **newest);
  const std::string goes_on = absl::StrCat(storage.Describe(""), ": goes on from step ", (*newest)->manifest().step());
  resumes.ok() ? findings.Ok("directory", goes_on) : findings.Error("directory", resumes, kExitBadJob);
  return false;
}

// What a job that begins takes its weights from.
void LookAtWeights(const PreparedJob& prepared, Findings& findings) {
  if (!prepared.job.model().has_from()) return;
  const absl::StatusOr<WarmStartReport> report = CheckWarmStart(prepared.job.model().from(), prepared.layout);
  if (!report.ok()) return findings.Error("weights", report.status(), WarmStartExitCode(report.status()));
  findings.Ok("weights", report->Line());
}

void LookAtBucket(const JobReading& job, const PreparedJob* prepared, const std::string& url, Findings& findings) {
  const absl::StatusOr<std::unique_ptr<JobPlace>> place = JobPlace::Open(url);
  if (!place.ok()) return findings.Error("directory", place.status(), StorageExitCode(place.status()));
  const bool begins = LookAtEarlier(job, prepared, **place, findings);
  if (!begins) return;
  if (prepared != nullptr) LookAtWeights(*prepared, findings);
  findings.Ok("directory", absl::StrCat(url, ": a bucket; lockstep check --storage shows whether it serves"));
}

}  // namespace

absl::Status CheckWritable(const std::string& directory) {
  LS_RETURN_IF_ERROR(CheckPlace(directory));
  if (IsInBucket(directory)) return absl::OkStatus();  // the first request tells
  const fs::path place = NearestExisting(directory);
  std::error_code error;
  std::string problem;
  absl::StatusCode code = absl::StatusCode::kPermissionDenied;
  if (!fs::is_directory(place, error)) {
    problem = absl::StrCat(place.string(), " is a file");
  } else if (faccessat(AT_FDCWD, place.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    // A file system that is read-only or out of order may be back soon; a right that is missing is not.
    if (errno != EACCES && errno != EPERM) code = absl::StatusCode::kUnavailable;
    problem = absl::StrCat(place.string(), ": ", strerror(errno));
  } else {
    return absl::OkStatus();
  }
  return absl::Status(code, absl::StrCat("the directory ", directory, " cannot be written: ", problem,
                                         "; choose another one, that this user can write, with --dir"));
}

bool MayHoldCheckpoint(const std::string& directory) {
  const auto holds = [&]() -> absl::StatusOr<bool> {
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(directory));
    LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, place->storage().List(layout::kCheckpoints));
    return std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
      return layout::ParseCheckpointFolder(entry.name).has_value();
    });
  };
  const absl::StatusOr<bool> found = holds();
  return found.ok() ? *found : !absl::IsNotFound(found.status());
}

absl::Status CheckRoom(const std::string& directory, int64_t state) {
  std::error_code error;
  const fs::space_info space = fs::space(NearestExisting(directory), error);
  // Whoever writes there meets the error itself, and its remedy.
  return error ? absl::OkStatus() : CheckFree(directory, space.available, state);
}

ExitCode TokenExitCode(const absl::Status& status) {
  return absl::IsPermissionDenied(status) ? kExitBadToken : kExitStorage;
}

absl::StatusOr<JobDifference> DifferenceTo(const JobSpec& job, const Storage& storage, const CheckpointReader& newest) {
  LS_ASSIGN_OR_RETURN(const std::string yaml, newest.ReadJob());
  LS_ASSIGN_OR_RETURN(const JobSpec before, ParseJob(yaml, JoinPath(storage.Describe(newest.path()), layout::kJob)));
  return CompareJobs(before, job);
}

namespace {

// What the model of `newest` and that of the job differ in, the first of it; empty where the former cannot be read.
std::string DifferenceOfModels(const PreparedJob& job, const Storage& storage, const CheckpointReader& newest) {
  constexpr uint64_t kLargestMetagraph = uint64_t{2} << 30;
  constexpr size_t kShown = 4;
  const std::string path = layout::MetagraphPath(newest.manifest().fingerprint());
  const absl::StatusOr<std::string> before = ReadWholeFile(storage, path, kLargestMetagraph);
  if (!before.ok()) return "";
  absl::StatusOr<std::vector<std::string>> lines = DiffMetaGraphs(*before, job.metagraph_bytes);
  if (!lines.ok() || lines->empty()) return "";
  const size_t more = lines->size() - std::min(lines->size(), kShown);
  lines->resize(lines->size() - more);
  return absl::StrCat(" (", absl::StrJoin(*lines, "; "), more > 0 ? absl::StrCat("; and ", more, " more") : "", ")");
}

}  // namespace

absl::Status CheckResume(const PreparedJob& job, const Storage& storage, const CheckpointReader& newest) {
  const std::string where = storage.Describe(newest.path());
  if (job.job.checkpoint().resume() == job::Checkpoint::RESUME_NEVER) {
    return absl::FailedPreconditionError(absl::StrCat(
        where, " is there and the job says `checkpoint.resume: never`; give another --dir, or set it to auto"));
  }
  LS_ASSIGN_OR_RETURN(const JobDifference difference, DifferenceTo(job.job, storage, newest));
  if (!difference.CanResume()) {
    return absl::FailedPreconditionError(absl::StrCat("the job differs from that of ", where,
                                                      " in settings that change the result: ", difference.RefusedText(),
                                                      ". Take them back, or start anew with another --dir"));
  }
  if (newest.manifest().fingerprint() != job.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("the model is not that of ", where, " (metagraph ", job.fingerprint.substr(0, 12), " instead of ",
                     newest.manifest().fingerprint().substr(0, 12), "): the file of model.onnx has changed",
                     DifferenceOfModels(job, storage, newest), ". Bring it back, or start anew with another --dir"));
  }
  return newest.CheckLayout(ToCheckpointTensors(job.layout));
}

void LookAtDirectory(const JobReading& job, const PreparedJob* prepared, const std::string& directory,
                     Findings& findings) {
  const absl::Status writable = CheckWritable(directory);
  if (!writable.ok()) return findings.Error("directory", writable, kExitStorage);
  if (IsInBucket(directory)) return LookAtBucket(job, prepared, directory, findings);
  const bool empty = !MayHoldCheckpoint(directory);
  if (empty && prepared != nullptr) LookAtRoom(job, *prepared, directory, /*begins=*/true, findings);
  bool begins = true;
  const absl::StatusOr<std::unique_ptr<JobPlace>> place = JobPlace::Open(directory);
  if (place.ok()) {
    begins = LookAtEarlier(job, prepared, **place, findings);
    LookAtLogs((*place)->storage(), findings);
  } else if (!absl::IsNotFound(place.status())) {
    return findings.Error("directory", place.status(), kExitStorage);
  }
  if (!empty && prepared != nullptr) LookAtRoom(job, *prepared, directory, begins, findings);
  if (begins && prepared != nullptr) LookAtWeights(*prepared, findings);
  if (place.ok()) LookAtTokenOwner((*place)->storage(), findings);
}

}  // namespace lockstep::chief
