#include "common/checkpoint_format/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 64;

// nlohmann's SAX interface, turned into a visitor that knows the path and refuses a key twice.
class Adapter {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit Adapter(JsonVisitor& visitor) : visitor_(visitor) {}

  absl::Status status() const { return status_; }

  bool null() { return Keep(visitor_.Other(path_, InArray(), "null")); }
  bool boolean(bool) { return Keep(visitor_.Other(path_, InArray(), "a boolean")); }
  bool number_integer(number_integer_t) { return Keep(visitor_.Other(path_, InArray(), "a negative number")); }
  bool number_unsigned(number_unsigned_t value) { return Keep(visitor_.Unsigned(path_, InArray(), value)); }
  bool number_float(number_float_t, const string_t&) {
    return Keep(visitor_.Other(path_, InArray(), "a number that is no integer"));
  }
  bool string(string_t& value) { return Keep(visitor_.Text(path_, InArray(), value)); }
  bool binary(binary_t&) { return Keep(absl::InvalidArgumentError("binary data")); }

  bool start_object(std::size_t) {
    if (!Deeper()) return false;
    if (!Keep(visitor_.BeginObject(path_, InArray()))) return false;
    ++depth_;
    levels_.push_back({});
    return true;
  }
  bool key(string_t& name) {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second) {
      return Keep(absl::InvalidArgumentError(absl::StrCat("the key '", name, "' is there twice")));
    }
    if (level.has_key) path_.pop_back();
    level.has_key = true;
    path_.push_back(name);
    return true;
  }
  bool end_object() {
    if (levels_.back().has_key) path_.pop_back();
    levels_.pop_back();
    --depth_;
    return Keep(visitor_.EndObject(path_));
  }
  bool start_array(std::size_t) {
    if (!Deeper()) return false;
    if (!Keep(visitor_.BeginArray(path_, InArray()))) return false;
    ++depth_;
    ++ArrayDepth();
    return true;
  }
  bool end_array() {
    --depth_;
    --ArrayDepth();
    return Keep(visitor_.EndArray(path_));
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception&) {
    return Keep(absl::InvalidArgumentError(
        absl::StrCat("malformed JSON at byte ", position, ", near '", token.substr(0, 40), "'")));
  }

 private:
  struct Level {
    std::set<std::string> keys;
    bool has_key = false;
    int arrays = 0;  // open arrays directly in this object's present value
  };

  int& ArrayDepth() { return levels_.empty() ? top_arrays_ : levels_.back().arrays; }
  int InArray() { return ArrayDepth(); }

  bool Deeper() {
    if (depth_ < kMaxDepth) return true;
    return Keep(absl::InvalidArgumentError(absl::StrCat("nested deeper than ", kMaxDepth)));
  }

  bool Keep(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return status_.ok();
  }

  JsonVisitor& visitor_;
  absl::Status status_;
  std::vector<std::string> path_;
  std::vector<Level> levels_;
  int top_arrays_ = 0;
  int depth_ = 0;  // of open objects and arrays
};

class AcceptAll final : public JsonVisitor {
 public:
  absl::Status Text(const std::vector<std::string>&, int, absl::string_view) override { return absl::OkStatus(); }
  absl::Status Unsigned(const std::vector<std::string>&, int, uint64_t) override { return absl::OkStatus(); }
  absl::Status Other(const std::vector<std::string>&, int, absl::string_view) override { return absl::OkStatus(); }
  absl::Status BeginObject(const std::vector<std::string>&, int) override { return absl::OkStatus(); }
  absl::Status EndObject(const std::vector<std::string>&) override { return absl::OkStatus(); }
  absl::Status BeginArray(const std::vector<std::string>&, int) override { return absl::OkStatus(); }
  absl::Status EndArray(const std::vector<std::string>&) override { return absl::OkStatus(); }
};

}  // namespace

absl::Status ParseStrictJson(absl::string_view json, JsonVisitor& visitor) {
  Adapter adapter(visitor);
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &adapter);
  if (!adapter.status().ok()) return adapter.status();
  return parsed ? absl::OkStatus() : absl::InvalidArgumentError("malformed JSON");
}

absl::Status CheckStrictJson(absl::string_view json) {
  AcceptAll visitor;
  return ParseStrictJson(json, visitor);
}

}  // namespace lockstep
