// Views scores [N, C, d...] and labels [N, d...] as rows: row r has one label and C scores.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_LABEL_SHAPES_H_
#define LOCKSTEP_WORKER_KERNELS_LABEL_SHAPES_H_

#include <cstdint>
#include <optional>

#include "common/math/host_device.h"
#include "worker/device/host_kernel.h"

namespace lockstep::device {

struct LabelExtents {
  explicit LabelExtents(const Shape& scores) : batch(scores[0]), classes(scores[1]) {
    for (size_t i = 2; i < scores.size(); ++i) inner *= scores[i];
  }
  int64_t batch;
  int64_t classes;
  int64_t inner = 1;

  int64_t rows() const { return batch * inner; }
  // The offset of the row's score for class 0; scores of consecutive classes are `inner` apart.
  LS_HD int64_t base(int64_t row) const { return row / inner * classes * inner + row % inner; }
};

// Labels of type I32 or I64, for kernels on hosts and GPUs. A label that is neither ignored nor in [0, classes) is
// invalid: the loss and the gradient of its row are NaN, and no memory outside of the scores is read.
class Labels {
 public:
  struct Label {
    int64_t index = 0;
    bool ignored = false;
    bool valid = false;
  };

  Labels(const HostCall& call, size_t input, std::optional<int64_t> ignore_index, int64_t classes)
      : data_(call.inputs[input]),
        wide_(call.input_infos[input].dtype == DType::kI64),
        ignores_(ignore_index.has_value()),
        ignore_index_(ignore_index.value_or(0)),
        classes_(classes) {}

  LS_HD Label at(int64_t row) const {
    const int64_t index =
        wide_ ? reinterpret_cast<const int64_t*>(data_)[row] : reinterpret_cast<const int32_t*>(data_)[row];
    const bool ignored = ignores_ && index == ignore_index_;
    return {.index = index, .ignored = ignored, .valid = !ignored && index >= 0 && index < classes_};
  }

 private:
  const std::byte* data_;
  bool wide_;
  bool ignores_;
  int64_t ignore_index_;
  int64_t classes_;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_LABEL_SHAPES_H_
