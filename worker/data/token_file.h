// Token files (.bin): a header of 256 little-endian int32 (magic, version, number of tokens, zeros), then the tokens as
// uint16 or uint32, depending on the magic. Format page: docs/formats/tokens.md.
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

// Sample i is the tokens [i * T, i * T + T), T = sequence_length >= 1; its labels are the tokens shifted by one. Tokens
// at the end that do not fill a sample are left out. `alone`: the file is the whole data set and must hold at least one
// sample. Codes as OpenDataSource.
absl::StatusOr<StoredData> ReadTokenFile(const std::string& path, int64_t sequence_length, const ReadOptions& options,
                                         bool alone = true);

// The number of samples in `tokens` tokens: each takes sequence_length, and with labels one more token must follow the
// last.
int64_t TokenSamples(int64_t tokens, int64_t sequence_length, const ReadOptions& options);

// The header of a file of `count` uint16 tokens, in [0, kMostTokens].
std::string TokenFileHeader(int64_t count);

// Encodes each byte of a text as a uint16 token from 0 to 255, as stored after the header.
std::string BytesAsTokens(absl::string_view text);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TOKEN_FILE_H_
