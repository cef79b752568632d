// One field of a data set: the stored elements, the type of the model's input, and the conversion between them.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_FIELD_H_
#define LOCKSTEP_WORKER_DATA_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/graph/picked_rows.h"
#include "common/tensor/tensor.h"
#include "worker/data/channel_affine.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

class Field {
 public:
  // A feature delivered as `spec`: float32 by `normalisation`, or integers, which must lie in `range`. InvalidArgument
  // when the stored elements have the wrong type or do not fit. REQUIRES: `spec` has as many elements as the stored
  // shape.
  static absl::StatusOr<Field> Feature(const StoredData& data, const StoredField& stored, TensorSpec spec,
                                       const std::optional<IndexRange>& range, const Normalisation& normalisation);

  // The labels: int64 class indices below `classes` or equal to `ignored`; float32 targets when `classes` is 0.
  // REQUIRES: `data` has labels.
  static absl::StatusOr<Field> Label(const StoredData& data, int64_t classes, std::optional<int64_t> ignored);

  const TensorSpec& spec() const { return spec_; }

  // Writes the samples `indices` to `out`. `choose`, null or a region per image, is for images that stay in their
  // files. Fails only for those, as ImageFiles::Read. REQUIRES: the samples exist, and `out` holds exactly as many.
  absl::Status Read(absl::Span<const int64_t> indices, const RegionOfSample* choose, absl::Span<std::byte> out) const;

 private:
  Field(const StoredData& data, const StoredField& stored, TensorSpec spec);

  static absl::StatusOr<ChannelAffine> MakeAffine(const Normalisation& normalisation, const Shape& shape,
                                                  absl::string_view path);
  template <typename T>
  void Convert(const T* from, std::byte* to) const;

  std::shared_ptr<const std::byte> elements_;
  std::shared_ptr<const ImageFiles> images_;  // set instead of elements_ when images stay in their files
  DType stored_dtype_;
  int64_t first_;
  int64_t num_samples_;
  TensorSpec spec_;
  ChannelAffine affine_;
  int64_t sample_;  // elements
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FIELD_H_
