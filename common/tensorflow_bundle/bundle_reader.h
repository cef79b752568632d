// Reads a TensorFlow V2 checkpoint: an index and the data files beside it (docs/formats/tensorflow.md).
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_READER_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_READER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/storage/storage.h"
#include "common/tensorflow_bundle/bundle_index.h"

namespace lockstep {

class BundleReader {
 public:
  // Reads the index PREFIX.index and opens the data files that it names; `storage` outlives the reader. NotFound when a
  // file is missing. DataLoss also when a data file is shorter than the index says, or the index has more than
  // kMaxTableBytes. Else as ParseBundleIndex.
  static absl::StatusOr<BundleReader> Open(const Storage& storage, absl::string_view prefix);

  const BundleIndex& index() const { return index_; }
  // The prefix as the user knows it, for messages.
  const std::string& shown() const { return shown_; }

  // Reads all bytes of a tensor and verifies their checksum. DataLoss when they are damaged. REQUIRES: `entry` is one
  // of index(), neither partitioned nor a string, and `out` has its size.
  absl::Status Read(const BundleEntry& entry, absl::Span<char> out) const;
  // Reads a scalar string tensor. InvalidArgument when it is none, or too long. DataLoss as Read.
  absl::StatusOr<std::string> ReadString(const BundleEntry& entry) const;

 private:
  BundleReader() = default;

  std::string shown_;
  BundleIndex index_;
  std::map<int, std::unique_ptr<ReadableFile>> files_;  // by shard
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_READER_H_
