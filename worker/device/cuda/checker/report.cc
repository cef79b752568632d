#include "worker/device/cuda/checker/report.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace lockstep::device::cuda::checker {
namespace {

// Of this module, so that the places of its code lie within two gigabytes.
intptr_t Anchor() { return reinterpret_cast<intptr_t>(&PlaceOf); }

}  // namespace

int32_t PlaceOf(const void* return_address) {
  if (return_address == nullptr) return 0;
  return static_cast<int32_t>(reinterpret_cast<intptr_t>(return_address) - Anchor());
}

std::string DescribePlace(int32_t place) {
  if (place == 0) return "";
  // The call, not what follows it.
  const intptr_t address = Anchor() + place - 1;
  Dl_info module = {};
  if (dladdr(reinterpret_cast<const void*>(address), &module) == 0) return "";
  const intptr_t offset = address - reinterpret_cast<intptr_t>(module.dli_fbase);
  const std::string command =
      absl::StrCat("addr2line -Cfpi -e '", module.dli_fname, "' 0x", absl::Hex(offset), " 2>/dev/null");
  std::string text;
  if (FILE* const pipe = popen(command.c_str(), "r"); pipe != nullptr) {
    char line[1024];
    while (std::fgets(line, sizeof line, pipe) != nullptr) text += line;
    pclose(pipe);
  }
  absl::StripAsciiWhitespace(&text);
  if (text.empty() || text[0] == '?') return absl::StrCat(module.dli_fname, "+0x", absl::Hex(offset));
  return absl::StrReplaceAll(
      text, {{"lockstep::device::cuda::", ""}, {"(anonymous namespace)::", ""}, {"/proc/self/cwd/", ""}, {"\n", ""}});
}

void Report(const std::string& what) {
  std::fprintf(stderr, "host execution: %s\n", what.c_str());
  std::abort();
}

}  // namespace lockstep::device::cuda::checker
