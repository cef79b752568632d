// Collects all mistakes in a job file, and records which keys do not have their intended value: rules that depend on
// such a key are not checked.
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
  // Adds a mistake that leaves `key` ("train.optimizer.lr", "" for the whole file) without its intended value. Ignores
  // OK, and a mistake that was added before.
  void Add(const std::string& key, absl::Status mistake);
  // Adds a mistake that leaves no key without its intended value, such as an unknown key.
  void AddBeside(absl::Status mistake);

  bool empty() const { return all_.empty(); }
  // In the order in which they were found.
  const std::vector<absl::Status>& all() const { return all_; }
  // OK, or all mistakes, one per line, with the code of the first.
  absl::Status status() const;

  // Whether `key` lacks its intended value, because of a mistake in it or in a section above it.
  bool IsInvalid(absl::string_view key) const;
  // Whether `key`, or any key below it, lacks its intended value.
  bool HasInvalidPart(absl::string_view key) const;

 private:
  std::vector<absl::Status> all_;
  std::vector<std::string> spoilt_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_MISTAKES_H_
