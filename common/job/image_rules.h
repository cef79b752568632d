// The rules across the keys of image folders and of image augmentation.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_IMAGE_RULES_H_
#define LOCKSTEP_COMMON_JOB_IMAGE_RULES_H_

#include <string>
#include <vector>

#include "protos/job.pb.h"

namespace lockstep {

struct ImageMistake {
  const char* key;  // in its section
  std::string message;
};

// The mistakes in a section that names data files.
std::vector<ImageMistake> ImageMistakes(const job::DataFiles& files);
// Whether the samples of a pass, and their labels, are mixed with each other: data.augment.mixup, cutmix.
bool MixesSamples(const job::Data& data);
// The mistakes in data.augment, and those of its keys that mix, which need other sections.
std::vector<ImageMistake> AugmentMistakes(const job::Data& data);
std::vector<ImageMistake> MixingMistakes(const job::JobSpec& spec);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_IMAGE_RULES_H_
