// How one stored sample becomes the sample that a model takes: `data.reshape` gives its dimensions, `data.transpose`
// the order in which the model takes them. The resulting shape must equal the model's, not only in its number of
// elements: data in another layout would train without an error, and to no use.
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
  Shape reshape;                   // applies to samples with as many elements; empty: as stored
  std::vector<int64_t> transpose;  // applies to samples with as many dimensions; empty: as stored
  bool in_order = false;           // the elements in stored order take the model's shape, whatever shape is stored
};

// The view of one stored sample under a SampleForm.
struct SampleView {
  Shape stored;                // with the dimensions that it has in the file
  std::vector<int64_t> order;  // dimension i of `delivered` is order[i] of `stored`; empty: unchanged
  Shape delivered;
};

// The form of a resolved job. An mlp takes its inputs as one vector, whatever their shape.
SampleForm MakeSampleForm(const job::JobSpec& spec);

// Whether the shapes are equal except for dimensions of 1.
bool SameSample(const Shape& a, const Shape& b);

// The view of a stored sample for a model that accepts any shape.
SampleView ViewSample(const SampleForm& form, const Shape& stored);

// The view of a stored sample for a model that takes `wanted`. InvalidArgument when the shapes differ, with settings
// that would make them equal; the message begins with the found shape.
absl::StatusOr<SampleView> ViewSampleAs(const SampleForm& form, const Shape& stored, const Shape& wanted);

// For built-in models that take images channels-first: InvalidArgument, with the remedy, when a sample looks like
// channels-last.
absl::Status CheckChannelsFirst(const Shape& delivered);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_SAMPLE_FORM_H_
