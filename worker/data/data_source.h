// A data set with random access: sample i is a row of each field. Fields are the features in the order of the files,
// then the labels or targets if requested.
//
// Sources hold decoded data in memory, so a read cannot fail in the middle of a run: defects of a file are found, and
// reported with their offset, when it is opened. The exception are images with `image_decode: step`, which stay in
// their files; reading one fails when its file has changed.
//
// Threading: thread-safe once opened (const access only).
#ifndef LOCKSTEP_WORKER_DATA_DATA_SOURCE_H_
#define LOCKSTEP_WORKER_DATA_DATA_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/graph/picked_rows.h"
#include "common/job/sample_form.h"
#include "common/sync/pulse.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

class DataSource {
 public:
  virtual ~DataSource() = default;

  virtual int64_t num_samples() const = 0;

  // Whether the last field is the label.
  virtual bool has_labels() const { return true; }

  // The class names by label, where the files define them (a folder of images); else empty.
  virtual const std::vector<std::string>& classes() const {
    static const std::vector<std::string>* const kUnknown = new std::vector<std::string>;
    return *kUnknown;
  }

  // The fields of a sample: the features (called "inputs" if there is one, else as in the files), and last "labels" if
  // has_labels(). Element types are those of the model's inputs, shapes exclude the batch dimension.
  virtual const std::vector<TensorSpec>& fields() const = 0;

  // Copies field `field` of the samples `indices` into `out`, in that order and contiguously. Fails only for images
  // that stay in their files: errors of ImageFiles::Read, marked by MarkDataLost (data_lost.h).
  // REQUIRES: indices in [0, num_samples()); out holds exactly that many samples of the field.
  virtual absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const = 0;

  // Whether ReadRegions is supported: images stay in their files.
  virtual bool has_regions() const { return false; }
  // As Read, with images cut to the regions that `choose` returns and scaled. REQUIRES: has_regions().
  virtual absl::Status ReadRegions(int field, absl::Span<const int64_t> indices, RegionOfSample choose,
                                   absl::Span<std::byte> out) const;

  // The bytes of memory that the samples occupy.
  virtual int64_t held_bytes() const = 0;

  // SHA-256, in lower-case hex, over types, shapes and elements as stored in the files, decompressed. All workers of a
  // job must have the same.
  virtual const std::string& content_hash() const = 0;
};

// The index in source.fields() of the field that feeds an input of this role: the last field for a label, else the
// feature called `name`. A feature may have the label's name. -1 when there is none.
int FindField(const DataSource& source, InputRole role, absl::string_view name);

// A value of label_classes that accepts any class index, for when the number of classes is not known yet.
inline constexpr int64_t kAnyClasses = int64_t{1} << 31;

// A feature as the model's input.
struct FeedInput {
  std::string name;  // of the field
  DType dtype = DType::kF32;
  Shape shape;                      // of one sample, after FeedOptions::form
  std::optional<IndexRange> range;  // the valid integers; data with others is refused
};

// How a source must deliver its data to a model.
struct FeedOptions {
  // The inputs of the model. A single feature feeds a single input whatever their names; several are matched by name.
  // Empty: all features of the files in their own shapes, as float32, tokens as int64.
  std::vector<FeedInput> inputs;
  SampleForm form;                      // how to reorder or reshape the features; unset for tokens
  Normalisation normalisation;          // of the float32 features
  int64_t label_classes = 0;            // labels are class indices in [0, label_classes); 0: float targets
  std::optional<int64_t> ignore_label;  // a label, outside of the classes, of targets that the loss ignores
  Labels labels = Labels::kRequired;
  // Receives warnings of probable mistakes, such as images that are not scaled or scaled twice. Null: skips the check.
  std::vector<std::string>* warnings = nullptr;
  int64_t memory_limit_bytes = int64_t{16} << 30;
  int image_threads = 0;   // 0: one per core, 16 at most
  Pulse* pulse = nullptr;  // advances by the bytes read and hashed; may be null
};

// The options of `spec`, except `inputs`. When the loss is an output of the model, labels are optional.
FeedOptions FeedOptionsOf(const job::JobSpec& spec);
// The same with the inputs and classes of the job's metagraph, without ranges.
FeedOptions FeedOptionsOf(const job::JobSpec& spec, const MetaGraph& metagraph);

// Opens the files of `files`. Features get the shape and type of the model's inputs: the shape must follow from the
// stored one by `options.form`; float32 is computed by `options.normalisation`; int64, int32 and bool come only from
// stored integers, unchanged, all of which must fit. Labels become int64 class indices when label_classes > 0 (and for
// tokens), else float32 targets. Blocks. Errors name the file and the byte offset or line: NotFound, PermissionDenied,
// InvalidArgument (wrong content, different sample counts, a label out of range, a mismatch with the job's `sha256`),
// DataLoss (truncated or corrupt), ResourceExhausted (over the memory limit). `stored`, if not null, receives the
// contents of the files, whose elements are shared with the source.
absl::StatusOr<std::unique_ptr<DataSource>> OpenDataSource(const job::DataFiles& files, const FeedOptions& options,
                                                           StoredData* stored = nullptr);

// InvalidArgument, as from OpenDataSource, unless the labels fit `options`. REQUIRES: `data` has labels.
absl::Status CheckLabels(const StoredData& data, const FeedOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATA_SOURCE_H_
