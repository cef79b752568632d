// Token files (.bin): a header of 256 little-endian int32 (magic, version, number of tokens, zeros), then the tokens,
// uint16 or uint32 by the magic. Format page: docs/formats/tokens.md.
//
// Threading: thread-safe (pure functions; ReadTokenFile reads one file).
#ifndef LOCKSTEP_WORKER_DATA_TOKEN_FILE_H_
#define LOCKSTEP_WORKER_DATA_TOKEN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// The most tokens that one file can announce.
inline constexpr int64_t kMostTokens = (int64_t{1} << 31) - 1;

// Sample i is the tokens [i * T, i * T + T), T = sequence_length >= 1; its labels are those one further. What does not
// fill a sample at the end is left out. Without `alone` others may follow, and it need not fill one. Codes as
// OpenDataSource.
absl::StatusOr<StoredData> ReadTokenFile(const std::string& path, int64_t sequence_length, const ReadOptions& options,
                                         bool alone = true);

// Samples of so many tokens, of which each takes sequence_length, and those with labels one more behind the last.
int64_t TokenSamples(int64_t tokens, int64_t sequence_length, const ReadOptions& options);

// The header of a file of `count` uint16 tokens, in [0, kMostTokens].
std::string TokenFileHeader(int64_t count);

// The bytes of a text as uint16 tokens 0 to 255, as they follow the header.
std::string BytesAsTokens(absl::string_view text);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TOKEN_FILE_H_
