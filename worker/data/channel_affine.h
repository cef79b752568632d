// A Normalisation as one multiplication and one addition per channel.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_CHANNEL_AFFINE_H_
#define LOCKSTEP_WORKER_DATA_CHANNEL_AFFINE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/graph/metagraph.h"

namespace lockstep::worker {

// A stored x becomes float(x) * factor + offset, rounded after each operation: by channel, or with one pair for all.
// Factor and offset are computed in float64 and rounded once, so that every machine gets the same bits. Empty:
// float(x).
struct ChannelAffine {
  std::vector<float> factor;
  std::vector<float> offset;
};

inline ChannelAffine MakeChannelAffine(const Normalisation& normalisation) {
  ChannelAffine affine;
  const size_t channels = std::max(normalisation.mean.size(), normalisation.std.size());
  for (size_t c = 0; c < channels; ++c) {
    const double mean = normalisation.mean[normalisation.mean.size() == 1 ? 0 : c];
    const double std = normalisation.std[normalisation.std.size() == 1 ? 0 : c];
    affine.factor.push_back(static_cast<float>(normalisation.scale / std));
    affine.offset.push_back(static_cast<float>(-mean / std));
  }
  return affine;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_CHANNEL_AFFINE_H_
