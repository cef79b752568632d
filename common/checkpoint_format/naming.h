// Names of the files and directories below a checkpoint directory (docs/formats/directory.md). No other code spells
// them.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_NAMING_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_NAMING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::layout {

inline constexpr char kMark[] = "LOCKSTEP";
inline constexpr char kLatest[] = "latest";
inline constexpr char kBest[] = "best";
inline constexpr char kCheckpoints[] = "checkpoints";
inline constexpr char kMetagraphs[] = "metagraphs";
inline constexpr char kPlans[] = "plans";
inline constexpr char kSamples[] = "samples";
inline constexpr char kStats[] = "stats";
inline constexpr char kEvents[] = "events";
inline constexpr char kChief[] = "chief";
inline constexpr char kStaging[] = "staging";
inline constexpr char kSetAside[] = "set_aside";
inline constexpr char kLogs[] = "logs";
inline constexpr char kHookLogs[] = "logs/hooks";
inline constexpr char kProfiles[] = "profiles";
inline constexpr char kLog[] = "log";  // the commit log
inline constexpr char kLock[] = "chief/lock";
inline constexpr char kToken[] = "chief/token";
inline constexpr char kAddress[] = "chief/address";
inline constexpr char kPage[] = "chief/page.txt";
inline constexpr char kAlive[] = "chief/alive";
inline constexpr char kLiveStats[] = "stats/worker_stats.json";
inline constexpr char kWarmStart[] = "stats/warm_start.txt";

// Within one checkpoint.
inline constexpr char kManifest[] = "manifest.json";
inline constexpr char kJob[] = "job.yaml";
inline constexpr char kWorkerStats[] = "worker_stats.json";

// "step-000001200" and back; nullopt for any other name. REQUIRES: 0 <= step.
std::string StepName(int64_t step);
std::optional<int64_t> ParseStepName(absl::string_view name);
// The step of a checkpoint in set_aside/, "step-000001200-late-term-000007-2"; nullopt for any other name.
std::optional<int64_t> StepOfSetAside(absl::string_view name);
// "checkpoints/step-000001200"
std::string CheckpointPath(int64_t step);

// "term-000007" and back.
std::string TermName(int64_t term);
std::optional<int64_t> ParseTermName(absl::string_view name);
// "chief/term-000007", "staging/term-000007"
std::string TermPath(int64_t term);
std::string StagingPath(int64_t term);

// The file of shard `index` (0-based) of `count` of a group, relative to the checkpoint: "model.safetensors" when it is
// the only one, else "model-00001-of-00002.safetensors"; the group "optimizer" lies in its own directory:
// "optimizer/optimizer-00001-of-00002.safetensors"; files of "ema" have the model's names in their own directory:
// "ema/model.safetensors". REQUIRES: 0 <= index < count.
std::string ShardPath(absl::string_view group, int index, int count);
// "model.safetensors.index.json", "optimizer/optimizer.safetensors.index.json", "ema/model.safetensors.index.json"
std::string IndexPath(absl::string_view group);

// "metagraphs/<fingerprint>.pb", "plans/<hash>.pb"
std::string MetagraphPath(absl::string_view fingerprint);
std::string PlanPath(absl::string_view hash);

}  // namespace lockstep::layout

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_NAMING_H_
