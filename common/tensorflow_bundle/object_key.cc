#include "common/tensorflow_bundle/object_key.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr absl::string_view kValue = "/.ATTRIBUTES/VARIABLE_VALUE";
constexpr absl::string_view kSlot = "/.OPTIMIZER_SLOT/";

// A part of a path as a key has it: no '/' in it, and a '.' only before another one or an 'S'.
std::string Escaped(absl::string_view part) { return absl::StrReplaceAll(part, {{".", ".."}, {"/", ".S"}}); }

std::string Joined(const ObjectPath& path) {
  return absl::StrJoin(path, "/", [](std::string* out, absl::string_view part) { out->append(Escaped(part)); });
}

}  // namespace

absl::Status PathBounds::Add(size_t bytes) {
  if (bytes > kMaxPathBytes || bytes > kMaxAllPathBytes - all_) {
    return absl::InvalidArgumentError(absl::StrCat("the paths to its variables are too long: at most ", kMaxPathBytes,
                                                   " bytes are read of one, and ", kMaxAllPathBytes, " of all"));
  }
  all_ += bytes;
  return absl::OkStatus();
}

std::string VariableKey(const ObjectPath& path) { return absl::StrCat(Joined(path), kValue); }

std::string SlotKey(const ObjectPath& path, const ObjectPath& optimizer, absl::string_view slot) {
  return absl::StrCat(Joined(path), kSlot, Joined(optimizer), "/", Escaped(slot), kValue);
}

std::optional<ObjectPath> PathOfKey(absl::string_view key) {
  if (!absl::ConsumeSuffix(&key, kValue) || absl::StrContains(key, kSlot)) return std::nullopt;
  ObjectPath path;
  for (const absl::string_view part : absl::StrSplit(key, '/')) {
    path.push_back(absl::StrReplaceAll(part, {{"..", "."}, {".S", "/"}}));
  }
  return path;
}

}  // namespace lockstep
