// Samples that are images, as TensorBoard shows them (docs/formats/events.md).
//
// Threading: stateless.
#ifndef LOCKSTEP_CHIEF_EVENTS_IMAGE_EVENT_H_
#define LOCKSTEP_CHIEF_EVENTS_IMAGE_EVENT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/training/training_policy.h"

namespace lockstep::chief {

inline constexpr char kImagesTag[] = "samples/images";

// The record of `images`, which are of one size: PNGs between black for their least value and white for their largest.
// Of step 0, which no job goes back behind. Empty when there are none, or memory does not suffice.
std::string ImagesRecord(absl::Time now, const std::vector<SampleImage>& images);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_IMAGE_EVENT_H_
