// Attributes by name, as a file holds them, and the reader that turns them into the typed struct of an op family. Only
// the op families read them.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_RAW_ATTRIBUTES_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_RAW_ATTRIBUTES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

using RawAttribute = std::variant<int64_t, double, std::vector<int64_t>, std::string, std::vector<double>>;
using RawAttributes = std::map<std::string, RawAttribute>;

// Reads attributes one by one into fields that hold their defaults; Finish returns the first error, or an error for an
// attribute that was not read.
class AttributeReader {
 public:
  explicit AttributeReader(const RawAttributes& raw) : raw_(raw) {}

  AttributeReader& Int(const std::string& name, int64_t* field);
  AttributeReader& Float(const std::string& name, double* field);
  AttributeReader& Bool(const std::string& name, bool* field);
  AttributeReader& Ints(const std::string& name, std::vector<int64_t>* field);
  AttributeReader& Floats(const std::string& name, std::vector<double>* field);
  AttributeReader& String(const std::string& name, std::string* field);

  // True when the attribute is given.
  bool Has(const std::string& name) const { return raw_.count(name) != 0; }

  // InvalidArgument for the first attribute of a wrong type or an unknown one.
  absl::Status Finish() const;

 private:
  template <typename T>
  AttributeReader& Read(const std::string& name, absl::string_view type, T* field);

  const RawAttributes& raw_;
  std::set<std::string> known_;
  absl::Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_RAW_ATTRIBUTES_H_
