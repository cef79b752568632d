#include "worker/data/data_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/digest/sha256.h"
#include "common/job/normalisation.h"
#include "common/status/status_macros.h"
#include "worker/data/field.h"

namespace lockstep::worker {
namespace {

constexpr size_t kHashPieceBytes = size_t{8} << 20;

std::string ContentHash(const StoredData& data, Pulse* pulse) {
  Sha256 hash;
  hash.Update("lockstep data 1\n");
  for (const StoredArray& array : data.arrays) {
    hash.Update(absl::StrCat(array.name, " ", DTypeName(array.dtype), " ", ShapeString(array.shape), "\n"));
    const absl::string_view elements(reinterpret_cast<const char*>(array.elements.get()),
                                     static_cast<size_t>(array.num_elements() * DTypeSize(array.dtype)));
    for (size_t at = 0; at < elements.size(); at += kHashPieceBytes) {
      const absl::string_view piece = elements.substr(at, kHashPieceBytes);
      hash.Update(piece);
      AdvancePulse(pulse, piece.size());
    }
  }
  return ToHex(hash.Finish());
}

class FileSource : public DataSource {
 public:
  FileSource(std::vector<Field> fields, int64_t num_samples, std::string hash)
      : fields_(std::move(fields)), num_samples_(num_samples), hash_(std::move(hash)) {
    for (const Field& field : fields_) specs_.push_back(field.spec());
  }

  int64_t num_samples() const override { return num_samples_; }
  const std::vector<TensorSpec>& fields() const override { return specs_; }
  void Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    fields_[static_cast<size_t>(field)].Read(indices, out);
  }
  const std::string& content_hash() const override { return hash_; }

 private:
  std::vector<Field> fields_;
  std::vector<TensorSpec> specs_;
  int64_t num_samples_;
  std::string hash_;
};

// How the model takes a feature, under the feature's name. InvalidArgument when it takes none of that name.
absl::StatusOr<FeedInput> WantedInput(const StoredData& data, const StoredField& stored, const FeedOptions& options) {
  const bool only = data.features.size() == 1;
  const std::string name = only ? kInputsField : stored.name;
  if (options.inputs.empty()) {
    return FeedInput{.name = name, .dtype = stored.tokens ? DType::kI64 : DType::kF32, .shape = stored.sample};
  }
  for (const FeedInput& input : options.inputs) {
    if (input.name != stored.name && !(only && options.inputs.size() == 1)) continue;
    return FeedInput{.name = name, .dtype = input.dtype, .shape = input.shape, .range = input.range};
  }
  return absl::InvalidArgumentError(absl::StrCat(data.arrays[stored.array].path, ": ", stored.name,
                                                 " is no input of the model; name those that are with input_fields"));
}

// InvalidArgument unless every input of the model is a feature of the data.
absl::Status CheckAllFed(const StoredData& data, const FeedOptions& options) {
  if (options.inputs.size() == 1 && data.features.size() == 1) return absl::OkStatus();
  for (const FeedInput& input : options.inputs) {
    const auto fed = [&](const StoredField& field) { return field.name == input.name; };
    if (std::any_of(data.features.begin(), data.features.end(), fed)) continue;
    const std::string names =
        absl::StrJoin(data.features, ", ", [](std::string* out, const StoredField& field) { out->append(field.name); });
    return absl::InvalidArgumentError(
        absl::StrCat(data.arrays[0].path, ": the model has an input '", input.name, "', the data gives ", names));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Field>> MakeFields(const StoredData& data, const FeedOptions& options) {
  LS_RETURN_IF_ERROR(CheckAllFed(data, options));
  std::vector<Field> fields;
  bool any_float = false;
  for (const StoredField& stored : data.features) {
    LS_ASSIGN_OR_RETURN(const FeedInput input, WantedInput(data, stored, options));
    any_float = any_float || input.dtype == DType::kF32;
    LS_ASSIGN_OR_RETURN(Field field, Field::Feature(data, stored, {input.name, input.dtype, input.shape}, input.range,
                                                    options.normalisation));
    fields.push_back(std::move(field));
  }
  if (!any_float && !(options.normalisation == Normalisation{})) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.arrays[0].path, ": data.normalize is for float inputs, and all of these are integers; remove it"));
  }
  LS_ASSIGN_OR_RETURN(Field label, Field::Label(data, options.label_classes, options.ignore_label));
  fields.push_back(std::move(label));
  return fields;
}

// "a.npy and b.npy", "c.npz".
std::string FilesText(const job::DataFiles& files) {
  if (files.has_tokens()) return files.tokens();
  return files.has_labels() ? absl::StrCat(files.inputs(), " and ", files.labels()) : files.inputs();
}

}  // namespace

FeedOptions FeedOptionsOf(const job::JobSpec& spec) {
  FeedOptions options;
  options.normalisation = MakeNormalisation(spec.data());
  if (spec.model().loss() == "softmax_cross_entropy") {
    options.ignore_label = spec.model().ignore_index();
    // How many classes an imported model tells apart is known when it was imported.
    const job::BuiltinModel& builtin = spec.model().builtin();
    const int64_t classes = builtin.has_classes() ? builtin.classes() : builtin.vocabulary();
    options.label_classes = spec.model().has_onnx() ? kAnyClasses : classes;
  }
  options.memory_limit_bytes = spec.data().memory().bytes();
  return options;
}

absl::StatusOr<std::unique_ptr<DataSource>> OpenDataSource(const job::DataFiles& files, const FeedOptions& options) {
  LS_ASSIGN_OR_RETURN(const StoredData data, ReadStoredData(files, {.memory_limit_bytes = options.memory_limit_bytes,
                                                                    .pulse = options.pulse}));
  LS_ASSIGN_OR_RETURN(std::vector<Field> fields, MakeFields(data, options));
  std::string hash = ContentHash(data, options.pulse);
  if (files.has_sha256() && files.sha256() != hash) {
    return absl::InvalidArgumentError(absl::StrCat(FilesText(files), " are not the data of this job: their hash is ",
                                                   hash, ", the job's sha256 ", files.sha256(),
                                                   "; use the same files everywhere"));
  }
  return std::make_unique<FileSource>(std::move(fields), data.num_samples, std::move(hash));
}

}  // namespace lockstep::worker
