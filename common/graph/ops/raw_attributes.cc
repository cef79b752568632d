#include "common/graph/ops/raw_attributes.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

template <typename T>
AttributeReader& AttributeReader::Read(const std::string& name, absl::string_view type, T* field) {
  known_.insert(name);
  const auto found = raw_.find(name);
  if (found == raw_.end()) return *this;
  if (const T* value = std::get_if<T>(&found->second)) {
    *field = *value;
  } else if (status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' has to be ", type));
  }
  return *this;
}

AttributeReader& AttributeReader::Int(const std::string& name, int64_t* field) {
  return Read(name, "an integer", field);
}

AttributeReader& AttributeReader::Float(const std::string& name, double* field) {
  return Read(name, "a number with a fraction", field);
}

AttributeReader& AttributeReader::Ints(const std::string& name, std::vector<int64_t>* field) {
  return Read(name, "a list of integers", field);
}

AttributeReader& AttributeReader::Floats(const std::string& name, std::vector<double>* field) {
  return Read(name, "a list of numbers with fractions", field);
}

AttributeReader& AttributeReader::String(const std::string& name, std::string* field) {
  return Read(name, "a string", field);
}

AttributeReader& AttributeReader::Bool(const std::string& name, bool* field) {
  int64_t number = *field ? 1 : 0;
  Read(name, "0 or 1", &number);
  if (number != 0 && number != 1 && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' has to be 0 or 1, not ", number));
  }
  *field = number != 0;
  return *this;
}

absl::Status AttributeReader::Finish() const {
  if (!status_.ok()) return status_;
  for (const auto& [name, value] : raw_) {
    if (known_.count(name) == 0) return absl::InvalidArgumentError(absl::StrCat("unknown attribute '", name, "'"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
