// How fast the data of a job are opened and read, by one thread as in a worker, without a model. Prints one JSON
// object.
//
//   reader_bench JOB.yaml [--epochs N]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/job/extent.h"
#include "common/job/job.h"
#include "worker/data/augmentation.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_source.h"

namespace lockstep::worker {
namespace {

using BenchClock = std::chrono::steady_clock;

double Seconds(BenchClock::time_point from) { return std::chrono::duration<double>(BenchClock::now() - from).count(); }

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "reader_bench: %s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

int Main(const std::string& path, int64_t epochs) {
  const JobSpec job = Must(LoadJob(path, {}));
  const auto opening = BenchClock::now();
  FeedOptions feed = FeedOptionsOf(job);
  feed.label_classes = kAnyClasses;
  const std::unique_ptr<DataSource> source = Must(OpenDataSource(job.data().train(), feed));
  const double opened = Seconds(opening);

  std::optional<Augmentation> augmentation;
  if (job.data().has_augment()) {
    augmentation.emplace(job.data().augment(), feed.normalisation, job.train().seed(), source->fields());
  }
  const std::unique_ptr<Mixing> mixing = MakeMixing(job, PassBatch(job), source->fields());
  const SampleStream stream(job.train().seed(), source->num_samples());
  BatchReader::Options options{.global_batch_size = job.train().global_batch_size()};
  options.augmentation = augmentation.has_value() ? &*augmentation : nullptr;
  options.mixing = mixing.get();
  BatchReader reader(source.get(), &stream, options);
  const int64_t batches = epochs * source->num_samples() / options.global_batch_size;
  reader.Seek(1, {0});
  const auto reading = BenchClock::now();
  for (int64_t i = 0; i < batches; ++i) Must(reader.Next());
  const double read = Seconds(reading);
  std::printf("{\"samples\": %lld, \"open_seconds\": %.4f, \"samples_per_second\": %.1f}\n",
              static_cast<long long>(source->num_samples()), opened,
              static_cast<double>(batches * options.global_batch_size) / read);
  return 0;
}

}  // namespace
}  // namespace lockstep::worker

int main(int count, char** words) {
  int64_t epochs = 3;
  const bool counts = count == 4 && absl::string_view(words[2]) == "--epochs" && absl::SimpleAtoi(words[3], &epochs);
  if (count != 2 && !counts) {
    std::fprintf(stderr, "usage: reader_bench JOB.yaml [--epochs N]\n");
    return 64;
  }
  return lockstep::worker::Main(words[1], epochs);
}
