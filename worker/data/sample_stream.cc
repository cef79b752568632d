#include "worker/data/sample_stream.h"

#include <algorithm>
#include <cstddef>

#include "common/status/check.h"
#include "worker/data/permutation.h"

namespace lockstep::worker {

int64_t SampleStream::SampleAt(int64_t position) const {
  int64_t sample = 0;
  SamplesAt(position, absl::MakeSpan(&sample, 1));
  return sample;
}

void SampleStream::SamplesAt(int64_t first, absl::Span<int64_t> out) const {
  LS_CHECK(first >= 0, "positions count from 0");
  size_t done = 0;
  while (done < out.size()) {
    const int64_t position = first + static_cast<int64_t>(done);
    const int64_t epoch = position / num_samples_;
    const int64_t place = position % num_samples_;
    const size_t run = std::min(out.size() - done, static_cast<size_t>(num_samples_ - place));
    const Permutation order(seed_, static_cast<uint64_t>(epoch), num_samples_);
    for (size_t i = 0; i < run; ++i) out[done + i] = order.At(place + static_cast<int64_t>(i));
    done += run;
  }
}

}  // namespace lockstep::worker
