// Prints findings as lines for people.
//
// Threading: thread-compatible (writes to stdout).
#ifndef LOCKSTEP_DEPLOY_CLI_PRINT_FINDINGS_H_
#define LOCKSTEP_DEPLOY_CLI_PRINT_FINDINGS_H_

#include <iostream>
#include <string>

#include "absl/strings/str_format.h"
#include "common/job/findings.h"
#include "common/log/escape.h"

namespace lockstep::cli {

inline const char* GravityWord(Gravity gravity) {
  switch (gravity) {
    case Gravity::kOk:
      return "ok";
    case Gravity::kWarning:
      return "warn";
    default:
      return "error";
  }
}

inline void PrintFinding(Gravity gravity, const std::string& what, const std::string& text) {
  std::cout << absl::StreamFormat("%-5s %-11s %s\n", GravityWord(gravity), what, EscapeControls(text));
}

inline void PrintFindings(const Findings& findings) {
  for (const Finding& finding : findings.all()) PrintFinding(finding.gravity, finding.what, finding.text);
}

inline std::string Counted(int count, const char* noun) {
  return absl::StrFormat("%d %s%s", count, noun, count == 1 ? "" : "s");
}

// "1 error, 2 warnings": the last line.
inline void PrintCounts(const Findings& findings) {
  std::cout << Counted(findings.Count(Gravity::kError), "error") << ", "
            << Counted(findings.Count(Gravity::kWarning), "warning") << "\n";
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_PRINT_FINDINGS_H_
