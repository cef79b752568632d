// Test helpers that make directories as programs without a commit log left them.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_OLDER_DIRECTORY_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_OLDER_DIRECTORY_H_

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/term/job_log.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/checkpoint_format/sealed.h"
#include "common/storage/files.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

inline void PutFile(Storage& storage, const std::string& path, const std::string& content) {
  REQUIRE(storage.RemoveTree(path).ok());
  REQUIRE(storage.CreateDirectories(ParentPath(path)).ok());
  REQUIRE(WriteNewFile(storage, path, content, Access::kShared).ok());
}

// Writes the facts of the log's newest record into the files of such a program, and removes the log. The list of each
// term has the checkpoints that the terms before it published.
inline void MakeOlder(Storage& storage) {
  JobLog log(storage);
  const CommitRecord record = log.Read().value().value();
  DirectoryMark mark;
  mark.set_format_version(1);
  mark.set_job_id(record.job_id());
  mark.set_lineage(record.lineage());
  mark.set_step_zero_published(record.begun());
  *mark.mutable_ancestors() = record.ancestors();
  PutFile(storage, layout::kMark, SealJson(&mark));
  for (int64_t term = 1; term <= record.term(); ++term) {
    TermOwner owner;
    owner.set_term(term);
    owner.set_pid(record.owner().pid());
    owner.set_host(record.owner().host());
    PutFile(storage, JoinPath(layout::TermPath(term), "owner.json"), ToJson(owner));
    AcceptedManifests list;
    list.set_term(term);
    for (auto live = record.live().rbegin(); live != record.live().rend(); ++live) {
      if (live->term() >= term) continue;
      AcceptedManifest* accepted = list.add_manifests();
      accepted->set_directory(std::string(BaseName(live->prefix())));
      accepted->set_manifest_sha256(live->manifest_sha256());
      accepted->set_state_digest(live->state_digest());
    }
    PutFile(storage, JoinPath(layout::TermPath(term), "accepted.json"), SealJson(&list));
  }
  if (!record.kernel_plan().empty()) {
    PutFile(storage, "plans/current", SealText(absl::StrCat(record.kernel_plan(), "\n", record.data_digest(), "\n")));
  }
  REQUIRE(storage.RemoveTree(layout::kLog).ok());
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_OLDER_DIRECTORY_H_
