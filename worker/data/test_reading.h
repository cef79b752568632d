// Helpers for tests of data sources: read whole fields as vectors, and check the error of a bad file.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_TEST_READING_H_
#define LOCKSTEP_WORKER_DATA_TEST_READING_H_

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "worker/data/data_source.h"

namespace lockstep::worker {

// The elements of field `name` over all samples. REQUIRES: the field exists and has elements of type T.
template <typename T>
std::vector<T> AllOf(const DataSource& source, const std::string& name) {
  std::vector<int64_t> samples(static_cast<size_t>(source.num_samples()));
  std::iota(samples.begin(), samples.end(), 0);
  for (size_t f = 0; f < source.fields().size(); ++f) {
    const TensorSpec& spec = source.fields()[f];
    if (spec.name != name) continue;
    REQUIRE(DTypeSize(spec.dtype) == sizeof(T));
    std::vector<T> values(samples.size() * static_cast<size_t>(NumElements(spec.shape)));
    auto* const bytes = reinterpret_cast<std::byte*>(values.data());
    REQUIRE(source.Read(static_cast<int>(f), samples, {bytes, values.size() * sizeof(T)}).ok());
    return values;
  }
  FAIL("no field " << name);
  return {};
}

inline std::unique_ptr<DataSource> MustOpen(const job::DataFiles& files, const FeedOptions& options) {
  auto source = OpenDataSource(files, options);
  INFO(source.status());
  REQUIRE(source.ok());
  return *std::move(source);
}

inline void CheckRefused(const job::DataFiles& files, const FeedOptions& options, absl::StatusCode code,
                         const std::string& part) {
  const absl::Status status = OpenDataSource(files, options).status();
  INFO(status);
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), Catch::Contains(part));
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TEST_READING_H_
