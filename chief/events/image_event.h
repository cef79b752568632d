// Shows image samples in TensorBoard (docs/formats/events.md).
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_CHIEF_EVENTS_IMAGE_EVENT_H_
#define LOCKSTEP_CHIEF_EVENTS_IMAGE_EVENT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/training/training_policy.h"

namespace lockstep::chief {

inline constexpr char kImagesTag[] = "samples/images";

// The record of `images`, which have one size: PNGs from black for the least value to white for the largest. It has
// step 0, behind which no job goes back. Empty if there are no images, or if memory does not suffice.
std::string ImagesRecord(absl::Time now, const std::vector<SampleImage>& images);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_IMAGE_EVENT_H_
