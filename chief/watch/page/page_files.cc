#include "chief/watch/page/page_files.h"

#include <algorithm>

namespace lockstep::chief {

const PageFile* FindPageFile(absl::string_view path) {
  if (path.empty()) path = "index.html";
  const absl::Span<const PageFile> files = PageFiles();
  const auto found = std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace lockstep::chief
