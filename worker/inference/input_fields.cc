#include "worker/inference/input_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep::worker {

absl::StatusOr<std::vector<int>> InputFields(const Plan& plan, absl::Span<const SignatureInput> signature,
                                             const DataSource& source, int64_t batch, const Mixing* mixing) {
  const std::vector<TensorSpec> given = BatchReader::FieldsOf(source, mixing);
  const auto bytes_of = [](const TensorSpec& spec) { return NumElements(spec.shape) * DTypeSize(spec.dtype); };
  std::vector<int> fields;
  for (const TensorSpec& input : plan.inputs()) {
    if (input.name == kMaskInput) {
      fields.push_back(kMaskField);
      continue;
    }
    const auto described =
        std::find_if(signature.begin(), signature.end(), [&](const auto& entry) { return entry.name == input.name; });
    int field = described == signature.end() ? -1 : FindField(source, described->role, described->field);
    for (size_t f = source.fields().size(); f < given.size(); ++f) {
      if (given[f].name == input.name) field = static_cast<int>(f);
    }
    if (field < 0) {
      return absl::InternalError(absl::StrCat("no field of the data feeds input '", input.name, "' of the model"));
    }
    const TensorSpec& sample = given[static_cast<size_t>(field)];
    if (sample.dtype != input.dtype || batch * bytes_of(sample) != bytes_of(input)) {
      return absl::InternalError(absl::StrCat("input '", input.name, "' is ", DTypeName(input.dtype),
                                              ShapeString(input.shape), ", and the field '", sample.name,
                                              "' that feeds it has samples of ", DTypeName(sample.dtype),
                                              ShapeString(sample.shape), ", ", batch, " in a pass"));
    }
    fields.push_back(field);
  }
  return fields;
}

std::vector<InputBytes> InputsOf(absl::Span<const int> fields, const EvalBatch& batch) {
  std::vector<InputBytes> inputs;
  for (const int field : fields) {
    inputs.push_back(field == kMaskField ? batch.mask.bytes() : batch.fields[static_cast<size_t>(field)].bytes());
  }
  return inputs;
}

}  // namespace lockstep::worker
