// Opens data files made by a fuzz target, and reads from those that open.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_FUZZ_OPEN_DATA_H_
#define LOCKSTEP_TESTS_FUZZ_OPEN_DATA_H_

#include <vector>

#include "absl/strings/match.h"
#include "tests/fuzz/fuzz_file.h"
#include "worker/data/data_source.h"

namespace lockstep::fuzz {

// Options with class labels and a low memory limit.
inline worker::FeedOptions FuzzOptions() {
  worker::FeedOptions options;
  options.label_classes = 1000;
  options.ignore_label = -100;
  options.memory_limit_bytes = 1 << 20;
  return options;
}

// Checks that a refusal names the file, and that an opened source has samples of which the first and the last can be
// read.
inline void OpenAndRead(const job::DataFiles& files, const worker::FeedOptions& options) {
  const auto source = worker::OpenDataSource(files, options);
  if (!source.ok()) {
    LS_CHECK(absl::StrContains(source.status().message(), "/proc/self/fd/"), "a refusal names the file");
    return;
  }
  LS_CHECK((*source)->num_samples() > 0, "a data set has samples");
  for (size_t field = 0; field < (*source)->fields().size(); ++field) {
    const TensorSpec& spec = (*source)->fields()[field];
    std::vector<std::byte> sample(static_cast<size_t>(NumElements(spec.shape) * DTypeSize(spec.dtype)));
    for (const int64_t index : {int64_t{0}, (*source)->num_samples() - 1}) {
      LS_CHECK((*source)->Read(static_cast<int>(field), {index}, absl::MakeSpan(sample)).ok(), "held data are read");
    }
  }
}

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_OPEN_DATA_H_
