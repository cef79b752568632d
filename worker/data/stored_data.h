// The result of the readers of data files: arrays as stored in the files (or images that stay there), and the ranges of
// their elements that are the samples. Nothing is converted yet, since that depends on the model (data_source.h).
//
// Threading: immutable once read.
#ifndef LOCKSTEP_WORKER_DATA_STORED_DATA_H_
#define LOCKSTEP_WORKER_DATA_STORED_DATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sync/pulse.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"
#include "worker/data/array_file.h"
#include "worker/data/image_files.h"

namespace lockstep::worker {

// The field names of a single feature and of the label.
inline constexpr char kInputsField[] = "inputs";
inline constexpr char kLabelsField[] = "labels";

struct StoredArray {
  std::string name;  // enters the content hash
  DType dtype = DType::kU8;
  Shape shape;
  std::shared_ptr<std::byte> elements;          // row-major; null when images stay in their files
  std::shared_ptr<const ImageFiles> images;     // set when `elements` is null: uint8, one image per sample
  std::function<std::string(int64_t)> element;  // the place of element i for messages: "FILE: byte 8: "
  std::string path;

  int64_t num_elements() const { return NumElements(shape); }
  // The bytes of memory that it occupies.
  int64_t held_bytes() const;
};

// Sample i is the elements [first + i * n, first + (i + 1) * n) of the array, where n = NumElements(sample).
struct StoredField {
  std::string name;
  size_t array = 0;  // index into StoredData::arrays
  int64_t first = 0;
  Shape sample;
  bool tokens = false;  // token ids: always delivered as integers
};

struct StoredData {
  int64_t num_samples = 0;
  std::vector<StoredArray> arrays;
  std::vector<StoredField> features;  // at least one
  std::optional<StoredField> label;   // none: read without labels
  std::vector<std::string> classes;   // class names by label, if the files define them
};

enum class Labels : uint8_t {
  kRequired,  // files without labels are refused
  kIfThere,   // optional: the model's loss is one of its outputs
  kNone,      // not read, and not used as a feature either: for prediction
};

struct ReadOptions {
  int64_t memory_limit_bytes = 0;
  Labels labels = Labels::kRequired;
  // The names of the model's inputs, if known. With kIfThere, a field with one of these names is the label only if the
  // job says so.
  std::vector<std::string> inputs = {};
  int image_threads = 0;  // 0: one per core, 16 at most
  Pulse* pulse = nullptr;
};

// Reads the files of a job section; paths may be patterns (many_files.h). Codes as OpenDataSource; messages name the
// file and the byte or line. Blocks.
absl::StatusOr<StoredData> ReadStoredData(const job::DataFiles& files, const ReadOptions& options);

// Wraps an array file as a StoredArray.
StoredArray StoreArray(std::string name, ArrayFile file);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_STORED_DATA_H_
