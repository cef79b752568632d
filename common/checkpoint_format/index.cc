#include "common/checkpoint_format/index.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/strict_json.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

class IndexVisitor final : public JsonVisitor {
 public:
  using Path = std::vector<std::string>;

  absl::Status Text(const Path& path, int in_array, absl::string_view value) override {
    if (path.size() != 2 || path[0] != "weight_map" || in_array != 0) return Unexpected(path);
    if (value.empty() || value == "." || value == ".." || absl::StrContains(value, '/') ||
        absl::StrContains(value, '\\')) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", path[1], "' is mapped to '", absl::CHexEscape(value), "'; expected a file name"));
    }
    index.weight_map.emplace(path[1], value);
    return absl::OkStatus();
  }
  absl::Status Unsigned(const Path& path, int in_array, uint64_t value) override {
    if (path.size() != 2 || path[0] != "metadata" || path[1] != "total_size" || in_array != 0) return Unexpected(path);
    index.total_size = value;
    has_total = true;
    return absl::OkStatus();
  }
  absl::Status Other(const Path& path, int, absl::string_view) override { return Unexpected(path); }
  absl::Status BeginObject(const Path& path, int in_array) override {
    if (in_array > 0 || path.size() > 1) return Unexpected(path);
    if (path.size() == 1 && path[0] != "metadata" && path[0] != "weight_map") return Unexpected(path);
    if (path.size() == 1 && path[0] == "weight_map") has_map = true;
    return absl::OkStatus();
  }
  absl::Status EndObject(const Path&) override { return absl::OkStatus(); }
  absl::Status BeginArray(const Path& path, int) override { return Unexpected(path); }
  absl::Status EndArray(const Path&) override { return absl::OkStatus(); }

  ShardIndex index;
  bool has_total = false;
  bool has_map = false;

 private:
  static absl::Status Unexpected(const Path& path) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected content at '", path.empty() ? "" : path[0],
                                                   path.size() > 1 ? "." + path[1] : "", "'"));
  }
};

absl::Status InvalidIndex(absl::string_view file, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(file, " is not a valid index: ", what));
}

}  // namespace

std::string EncodeShardIndex(const ShardIndex& index) {
  nlohmann::ordered_json json;
  json["metadata"]["total_size"] = index.total_size;
  json["weight_map"] = nlohmann::ordered_json::object();
  for (const auto& [name, file] : index.weight_map) json["weight_map"][name] = file;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view json, absl::string_view file) {
  IndexVisitor visitor;
  if (absl::Status parsed = ParseStrictJson(json, visitor); !parsed.ok()) return InvalidIndex(file, parsed.message());
  if (!visitor.has_total || !visitor.has_map) return InvalidIndex(file, "metadata.total_size or weight_map is missing");
  return std::move(visitor.index);
}

absl::Status CheckShardIndex(const ShardIndex& index, const std::map<std::string, std::set<std::string>>& found,
                             uint64_t total_size, absl::string_view file) {
  for (const auto& [name, shard] : index.weight_map) {
    const auto it = found.find(shard);
    if (it == found.end())
      return InvalidIndex(file, absl::StrCat("it maps '", name, "' to ", shard, ", which is not there"));
    if (!it->second.contains(name))
      return InvalidIndex(file, absl::StrCat("it maps '", name, "' to ", shard, ", which lacks it"));
  }
  for (const auto& [shard, names] : found) {
    for (const std::string& name : names) {
      const auto it = index.weight_map.find(name);
      if (it == index.weight_map.end() || it->second != shard) {
        return InvalidIndex(file, absl::StrCat("it does not map '", name, "' to ", shard, ", which holds it"));
      }
    }
  }
  if (index.total_size != total_size) {
    return InvalidIndex(file,
                        absl::StrCat("total_size is ", index.total_size, "; the tensors have ", total_size, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
