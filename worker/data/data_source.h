// A data set with random access: sample i is a row of each field. Fields are the features in the order of the files,
// then the labels or targets where they were asked for.
//
// Sources hold decoded data, so a read cannot fail half way through a run: whatever is wrong with a file is found, and
// named with its offset, when it is opened. Images of `image_decode: step` alone stay in their files, and a read fails
// when one is not what it was.
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

  // What the classes are called that labels number, where the files say so (a folder of images); else empty.
  virtual const std::vector<std::string>& classes() const {
    static const std::vector<std::string>* const kUnknown = new std::vector<std::string>;
    return *kUnknown;
  }

  // What one sample is made of: the features, "inputs" where there is one, else by their names in the files, and last
  // "labels" if has_labels(); element types as the model is fed, shapes without the batch. The same for every sample.
  virtual const std::vector<TensorSpec>& fields() const = 0;

  // Copies field `field` of the samples `indices`, in that order, one after the other, into `out`. Errors as of
  // ImageFiles::Read, marked by MarkDataLost (data_lost.h).
  // REQUIRES: indices in [0, num_samples()); out holds exactly that many samples of the field.
  virtual absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const = 0;

  // Whether ReadRegions is there: images stay in their files.
  virtual bool has_regions() const { return false; }
  // The same, of images the regions that `choose` takes, scaled. REQUIRES: has_regions().
  virtual absl::Status ReadRegions(int field, absl::Span<const int64_t> indices, RegionOfSample choose,
                                   absl::Span<std::byte> out) const;

  // Bytes of this process's memory that the samples take.
  virtual int64_t held_bytes() const = 0;

  // SHA-256 over types, shapes and elements as stored in the files (not over their compression), lower-case hex:
  // workers of one job must agree on it.
  virtual const std::string& content_hash() const = 0;
};

// The index among source.fields() of what feeds an input of that role: the label is the last field, whatever it is
// called, features go by name. -1 when there is none. Features may be called anything, also as the label is.
int FindField(const DataSource& source, InputRole role, absl::string_view name);

// As label_classes: any class index, where nobody knows yet how many there are.
inline constexpr int64_t kAnyClasses = int64_t{1} << 31;

// A feature as a model takes it.
struct FeedInput {
  std::string name;  // of the field
  DType dtype = DType::kF32;
  Shape shape;                      // of one sample: what FeedOptions::form makes of the stored one
  std::optional<IndexRange> range;  // of integers; others are refused
};

// What a source must deliver to a model.
struct FeedOptions {
  // The features that the model takes. One feature fits one input whatever they are called, several go by name. Empty:
  // whatever the files hold, in its own shape, as float32, tokens as int64.
  std::vector<FeedInput> inputs;
  SampleForm form;                      // of the features; none for tokens, where a job refuses it
  Normalisation normalisation;          // of the float32 features
  int64_t label_classes = 0;            // labels are class indices in [0, label_classes); 0: float targets
  std::optional<int64_t> ignore_label;  // a label beyond the classes that counts for nothing
  Labels labels = Labels::kRequired;
  // Gets what may be a mistake and can be trained on: bytes that nobody scaled, or that are scaled twice. Null: nobody
  // asks, and it is not looked for.
  std::vector<std::string>* warnings = nullptr;
  int64_t memory_limit_bytes = int64_t{16} << 30;
  int image_threads = 0;   // 0: one per core, 16 at most
  Pulse* pulse = nullptr;  // advances by the bytes read and hashed; null: nobody watches
};

// The options under which `spec` feeds its model, but for `inputs`. A loss that is an output of the model needs no
// labels.
FeedOptions FeedOptionsOf(const job::JobSpec& spec);
// With the inputs and classes of the metagraph that was made for it, without ranges.
FeedOptions FeedOptionsOf(const job::JobSpec& spec, const MetaGraph& metagraph);

// Opens the files of `files`. Features become the shape that the model takes, when it is theirs by `options.form`, and
// the type that it takes: float32 by `options.normalisation`; int64,
// int32 or bool only from stored integers, every one of which must fit, unchanged. Labels become int64 class indices
// when label_classes > 0 (tokens always), else float32 targets. Errors name file and byte offset, or line: NotFound,
// PermissionDenied, InvalidArgument (wrong content, counts that differ, a label out of range, `sha256` of the job not
// met), DataLoss (truncated or corrupt), ResourceExhausted (over the memory limit).
// `stored`, if given, is set to what the files hold, which shares its elements with the source.
absl::StatusOr<std::unique_ptr<DataSource>> OpenDataSource(const job::DataFiles& files, const FeedOptions& options,
                                                           StoredData* stored = nullptr);

// InvalidArgument, as of OpenDataSource, unless the labels are those of `options`. REQUIRES: `data` has labels.
absl::Status CheckLabels(const StoredData& data, const FeedOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATA_SOURCE_H_
