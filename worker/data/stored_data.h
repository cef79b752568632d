// What the readers of data files hand over: arrays as the files hold them (or images that stay there), and which runs
// of their elements are the samples. Nothing is converted yet; that depends on the model (data_source.h).
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

// The names under which a model is fed: of the only feature, and of the label.
inline constexpr char kInputsField[] = "inputs";
inline constexpr char kLabelsField[] = "labels";

struct StoredArray {
  std::string name;  // in the content hash
  DType dtype = DType::kU8;
  Shape shape;
  std::shared_ptr<std::byte> elements;          // row-major; null where they stay in files
  std::shared_ptr<const ImageFiles> images;     // where elements are null: uint8, an image per sample
  std::function<std::string(int64_t)> element;  // "FILE: byte 8: ", the place of element i
  std::string path;

  int64_t num_elements() const { return NumElements(shape); }
  // Of memory.
  int64_t held_bytes() const;
};

// Sample i is the elements [first + i * n, first + (i + 1) * n) of the array, n those of `sample`.
struct StoredField {
  std::string name;
  size_t array = 0;
  int64_t first = 0;
  Shape sample;
  bool tokens = false;  // numbers of a vocabulary: integers whatever the model
};

struct StoredData {
  int64_t num_samples = 0;
  std::vector<StoredArray> arrays;
  std::vector<StoredField> features;  // at least one
  std::optional<StoredField> label;   // none: they were read without
  std::vector<std::string> classes;   // that labels number, where the files name them
};

enum class Labels : uint8_t {
  kRequired,  // files without are refused
  kIfThere,   // for a model whose loss is an output of its own
  kNone,      // not looked for, and no features where they are there: to predict
};

struct ReadOptions {
  int64_t memory_limit_bytes = 0;
  Labels labels = Labels::kRequired;
  // The model's inputs, where they are known: with kIfThere, a field that is called as one of them is the label only if
  // the job says so.
  std::vector<std::string> inputs = {};
  int image_threads = 0;  // 0: one per core, 16 at most
  Pulse* pulse = nullptr;
};

// Reads the files that a section of the job names, of which paths may be patterns (many_files.h). Codes as
// OpenDataSource; messages name file and byte, or line.
absl::StatusOr<StoredData> ReadStoredData(const job::DataFiles& files, const ReadOptions& options);

// An array of a file as a stored one.
StoredArray StoreArray(std::string name, ArrayFile file);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_STORED_DATA_H_
