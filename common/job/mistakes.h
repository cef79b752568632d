// What is wrong with a job file, all of it, and which keys are left without the value that was meant: what depends on
// those alone cannot be judged.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_JOB_MISTAKES_H_
#define LOCKSTEP_COMMON_JOB_MISTAKES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

class JobMistakes {
 public:
  // A mistake that leaves `key` ("train.optimizer.lr", "" for the whole file) without its value. Ignores OK, and a
  // mistake that was added before.
  void Add(const std::string& key, absl::Status mistake);
  // A mistake that leaves every key as it was meant, such as a key that does not exist.
  void AddBeside(absl::Status mistake);

  bool empty() const { return all_.empty(); }
  // In the order in which they were found.
  const std::vector<absl::Status>& all() const { return all_; }
  // OK, or all of them, one a line, with the code of the first.
  absl::Status status() const;

  // Whether `key` has not the value that was meant: a mistake is there or in a section above.
  bool IsSpoilt(absl::string_view key) const;
  // Whether `key` or anything in it has not.
  bool IsTouched(absl::string_view key) const;

 private:
  std::vector<absl::Status> all_;
  std::vector<std::string> spoilt_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_MISTAKES_H_
