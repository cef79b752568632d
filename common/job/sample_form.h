// How one stored sample becomes the sample that a model takes: `data.reshape` says which dimensions it has,
// `data.transpose` in which order the model takes them. Shapes have to be equal then, not only their products: data in
// another layout would train, and mean nothing.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_JOB_SAMPLE_FORM_H_
#define LOCKSTEP_COMMON_JOB_SAMPLE_FORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "protos/job.pb.h"

namespace lockstep {

struct SampleForm {
  Shape reshape;                   // of the samples with as many elements; empty: as stored
  std::vector<int64_t> transpose;  // of the samples with as many dimensions; empty: as stored
  bool in_order = false;           // elements in their order make the model's shape, whatever the stored one is
};

// One sample as `form` sees it.
struct SampleView {
  Shape stored;                // with the dimensions that it has in the file
  std::vector<int64_t> order;  // dimension i of `delivered` is order[i] of `stored`; empty: unchanged
  Shape delivered;
};

// The form of a resolved job. An mlp takes its inputs as one vector, whatever their shape.
SampleForm MakeSampleForm(const job::JobSpec& spec);

// Whether one shape is the other but for dimensions of 1.
bool SameSample(const Shape& a, const Shape& b);

// A stored sample whose shape the model leaves open.
SampleView ViewSample(const SampleForm& form, const Shape& stored);

// A stored sample for a model that takes `wanted`. InvalidArgument when the shapes differ, with the settings under
// which they would not; the message begins with the found shape.
absl::StatusOr<SampleView> ViewSampleAs(const SampleForm& form, const Shape& stored, const Shape& wanted);

// For images of a built-in model that takes their channels first: InvalidArgument, with the setting, when a sample
// looks as if it had them last.
absl::Status CheckChannelsFirst(const Shape& delivered);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_SAMPLE_FORM_H_
