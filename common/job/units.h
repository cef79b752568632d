// Numbers with units, as a job file writes them.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_UNITS_H_
#define LOCKSTEP_COMMON_JOB_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "protos/job.pb.h"

namespace lockstep::job {

// "2h", "1h30m", "250ms", "1.5s", "0": not negative, finite. InvalidArgument says what was expected.
absl::StatusOr<absl::Duration> ParseTime(absl::string_view text);

// "512MiB", "20GiB", "1.5GB", "4096": not negative. Units B, KB to TB (powers of 1000) and KiB to TiB.
absl::StatusOr<ByteSize> ParseByteSize(absl::string_view text);

// "grow", "0.4" (a fraction above 0, at most 1), or a size with its unit, "8GiB".
absl::StatusOr<GpuMemory> ParseGpuMemory(absl::string_view text);

// "1:8", or "4" for exactly four; 1 <= min <= max.
absl::StatusOr<WorkerRange> ParseWorkerRange(absl::string_view text);

// The shortest text that the parser above reads as the same value.
std::string TimeText(absl::Duration time);
std::string ByteSizeText(const ByteSize& size);
std::string WorkerRangeText(const WorkerRange& range);
std::string GpuMemoryText(const GpuMemory& memory);

// The number of bytes that `memory` allows on a GPU with `total_bytes`; 0: no limit.
int64_t GpuMemoryBytes(const GpuMemory& memory, int64_t total_bytes);

// The shortest text that reads as `value`; whole numbers without an exponent.
std::string NumberText(double value);

// Conversions of the proto's durations.
absl::Duration ToDuration(const google::protobuf::Duration& proto);
google::protobuf::Duration FromDuration(absl::Duration duration);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_UNITS_H_
