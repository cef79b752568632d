// The files of a job's page: HTML, CSS and JavaScript, the charting library and its licence. They are compiled into the
// program; the page loads nothing from elsewhere.
//
// Invariants
//   * Sorted by path; no path is there twice; none begins with a slash.
//   * No file needs inline scripts or styles: it works under the policy `default-src 'self'`.
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_WATCH_PAGE_PAGE_FILES_H_
#define LOCKSTEP_CHIEF_WATCH_PAGE_PAGE_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep::chief {

struct PageFile {
  absl::string_view path;  // "page.css"
  absl::string_view content_type;
  absl::string_view content;
  absl::string_view fingerprint;  // of the content, 16 hexadecimal digits: for an ETag
};

absl::Span<const PageFile> PageFiles();

// The file at `path` ("" is index.html); null if there is none.
const PageFile* FindPageFile(absl::string_view path);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_PAGE_PAGE_FILES_H_
