// What the keys of a folder of images, and of changes of images, need from each other.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_IMAGE_RULES_H_
#define LOCKSTEP_COMMON_JOB_IMAGE_RULES_H_

#include <vector>

#include "protos/job.pb.h"

namespace lockstep {

struct ImageMistake {
  const char* key;  // in its section
  const char* message;
};

// Of a section that names data files.
std::vector<ImageMistake> ImageMistakes(const job::DataFiles& files);
// Of data.augment.
std::vector<ImageMistake> AugmentMistakes(const job::Data& data);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_IMAGE_RULES_H_
