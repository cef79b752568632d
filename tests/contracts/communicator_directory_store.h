// A rendezvous store for tests whose ranks are processes: one file per key in a directory, published by a rename.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_DIRECTORY_STORE_H_
#define LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_DIRECTORY_STORE_H_

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/collectives/rendezvous_store.h"

namespace lockstep::worker {

class DirectoryStore final : public RendezvousStore {
 public:
  explicit DirectoryStore(std::string directory) : directory_(std::move(directory)) {}

  absl::Status Set(absl::string_view key, absl::string_view bytes) override {
    const std::string unfinished = absl::StrCat(PathOf(key), ".", getpid());
    std::ofstream(unfinished, std::ios::binary) << bytes;
    std::filesystem::rename(unfinished, PathOf(key));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) override {
    const absl::Time until = absl::Now() + limit;
    while (absl::Now() < until && !aborted_) {
      if (std::ifstream file(PathOf(key), std::ios::binary); file) {
        return std::string(std::istreambuf_iterator<char>(file), {});
      }
      usleep(500);
    }
    return absl::DeadlineExceededError(absl::StrCat("nobody set '", key, "'"));
  }

  void Abort(const absl::Status&) override { aborted_ = true; }

 private:
  std::string PathOf(absl::string_view key) const {
    std::string name(key);
    std::replace(name.begin(), name.end(), '/', '_');
    return absl::StrCat(directory_, "/", name);
  }

  const std::string directory_;
  std::atomic<bool> aborted_{false};
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_DIRECTORY_STORE_H_
