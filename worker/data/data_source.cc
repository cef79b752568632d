#include "worker/data/data_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/digest/sha256.h"
#include "common/graph/label_classes.h"
#include "common/job/normalisation.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/data/data_lost.h"
#include "worker/data/field.h"
#include "worker/data/transpose_samples.h"
#include "worker/data/value_range.h"

namespace lockstep::worker {
namespace {

constexpr size_t kHashPieceBytes = size_t{8} << 20;

std::string ContentHash(const StoredData& data, Pulse* pulse) {
  Sha256 hash;
  hash.Update("lockstep data 1\n");
  for (const StoredArray& array : data.arrays) {
    hash.Update(absl::StrCat(array.name, " ", DTypeName(array.dtype), " ", ShapeString(array.shape), "\n"));
    if (array.images != nullptr) {
      hash.Update(ToHex(array.images->digest()));
      continue;
    }
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
  FileSource(std::vector<Field> fields, const StoredData& data, std::string hash)
      : fields_(std::move(fields)),
        num_samples_(data.num_samples),
        has_labels_(data.label.has_value()),
        classes_(data.classes),
        hash_(std::move(hash)) {
    for (const StoredArray& array : data.arrays) {
      held_bytes_ += array.held_bytes();
      has_regions_ = has_regions_ || array.images != nullptr;
    }
    for (const Field& field : fields_) specs_.push_back(field.spec());
  }

  int64_t num_samples() const override { return num_samples_; }
  bool has_labels() const override { return has_labels_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  const std::vector<TensorSpec>& fields() const override { return specs_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    return MarkDataLost(fields_[static_cast<size_t>(field)].Read(indices, /*choose=*/nullptr, out));
  }
  bool has_regions() const override { return has_regions_; }
  absl::Status ReadRegions(int field, absl::Span<const int64_t> indices, RegionOfSample choose,
                           absl::Span<std::byte> out) const override {
    return MarkDataLost(fields_[static_cast<size_t>(field)].Read(indices, &choose, out));
  }
  int64_t held_bytes() const override { return held_bytes_; }
  const std::string& content_hash() const override { return hash_; }

 private:
  std::vector<Field> fields_;
  std::vector<TensorSpec> specs_;
  int64_t num_samples_;
  bool has_labels_;
  std::vector<std::string> classes_;
  int64_t held_bytes_ = 0;
  bool has_regions_ = false;
  std::string hash_;
};

// Of the feature, and how its samples are seen.
struct Delivery {
  FeedInput input;
  SampleView view;
};

// How the model takes a feature, under the feature's name. InvalidArgument when it takes none of that name, or another
// shape.
absl::StatusOr<Delivery> Deliver(const StoredData& data, const StoredField& stored, const FeedOptions& options) {
  const bool only = data.features.size() == 1;
  const std::string name = only ? kInputsField : stored.name;
  if (options.inputs.empty()) {
    SampleView view = ViewSample(options.form, stored.sample);
    const DType dtype = stored.tokens ? DType::kI64 : DType::kF32;
    return Delivery{{.name = name, .dtype = dtype, .shape = view.delivered}, std::move(view)};
  }
  const std::string& path = data.arrays[stored.array].path;
  for (const FeedInput& input : options.inputs) {
    if (input.name != stored.name && !(only && options.inputs.size() == 1)) continue;
    absl::StatusOr<SampleView> view = ViewSampleAs(options.form, stored.sample, input.shape);
    if (view.ok()) return Delivery{{name, input.dtype, input.shape, input.range}, *std::move(view)};
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": one sample of ", stored.name, " has the shape ", view.status().message()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", stored.name, " is no input of the model; name those that are with input_fields"));
}

// InvalidArgument when a setting of the form is for none of the features: it is a mistake then. Tokens have no
// dimensions to order, and the labels lie among them.
absl::Status CheckFormIsUsed(const StoredData& data, const SampleForm& form, absl::Span<const SampleView> views) {
  const bool formed = !form.reshape.empty() || !form.transpose.empty();
  const auto is_tokens = [](const StoredField& field) { return field.tokens; };
  LS_CHECK(!formed || std::none_of(data.features.begin(), data.features.end(), is_tokens),
           "a job refuses the keys with token files");
  std::string shapes;
  bool reshaped = form.reshape.empty();
  bool transposed = form.transpose.empty();
  for (size_t i = 0; i < views.size(); ++i) {
    reshaped = reshaped || views[i].stored == form.reshape;
    transposed = transposed || !views[i].order.empty();
    absl::StrAppend(&shapes, i == 0 ? "" : ", ", ShapeString(data.features[i].sample));
  }
  if (reshaped && transposed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      data.arrays[0].path, ": samples have the shape ", shapes, ", and ",
      reshaped ? absl::StrCat("data.transpose: ", ShapeString(form.transpose), " orders ", form.transpose.size(),
                              " dimensions; give data.reshape too, or remove it")
               : absl::StrCat("data.reshape: ", ShapeString(form.reshape), " has another number of elements")));
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

void AddWarnings(const StoredData& data, absl::Span<const Field> features, const FeedOptions& options) {
  for (size_t i = 0; i < features.size(); ++i) {
    const TensorSpec& spec = features[i].spec();
    if (spec.dtype != DType::kF32) continue;
    const StoredArray& array = data.arrays[data.features[i].array];
    const std::string warning =
        ScaleText({&array, data.features[i].name, spec.shape.size() >= 2, &options.normalisation}, FindRange(array));
    if (!warning.empty()) options.warnings->push_back(warning);
  }
}

// `views` gets one entry for each feature.
absl::StatusOr<std::vector<Field>> MakeFields(const StoredData& data, const FeedOptions& options,
                                              std::vector<SampleView>* views) {
  LS_RETURN_IF_ERROR(CheckAllFed(data, options));
  std::vector<Field> fields;
  bool any_float = false;
  for (const StoredField& stored : data.features) {
    LS_ASSIGN_OR_RETURN(Delivery delivery, Deliver(data, stored, options));
    const FeedInput& input = delivery.input;
    any_float = any_float || input.dtype == DType::kF32;
    LS_ASSIGN_OR_RETURN(Field field, Field::Feature(data, stored, {input.name, input.dtype, input.shape}, input.range,
                                                    options.normalisation));
    fields.push_back(std::move(field));
    views->push_back(std::move(delivery.view));
  }
  LS_RETURN_IF_ERROR(CheckFormIsUsed(data, options.form, *views));
  if (!any_float && !(options.normalisation == Normalisation{})) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.arrays[0].path, ": data.normalize is for float inputs, and all of these are integers; remove it"));
  }
  if (options.warnings != nullptr) AddWarnings(data, fields, options);
  if (!data.label.has_value()) return fields;
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

absl::Status DataSource::ReadRegions(int, absl::Span<const int64_t>, RegionOfSample, absl::Span<std::byte>) const {
  return absl::UnimplementedError("this source has no images in files");
}

int FindField(const DataSource& source, InputRole role, absl::string_view name) {
  const int features = static_cast<int>(source.fields().size()) - (source.has_labels() ? 1 : 0);
  if (role == InputRole::kLabel) return source.has_labels() ? features : -1;
  for (int f = 0; f < features; ++f) {
    if (source.fields()[static_cast<size_t>(f)].name == name) return f;
  }
  return -1;
}

FeedOptions FeedOptionsOf(const job::JobSpec& spec) {
  FeedOptions options;
  options.form = MakeSampleForm(spec);
  options.normalisation = MakeNormalisation(spec.data());
  if (spec.model().loss() == "softmax_cross_entropy") {
    options.ignore_label = spec.model().ignore_index();
    // How many classes an imported model tells apart is known when it was imported.
    const job::BuiltinModel& builtin = spec.model().builtin();
    const int64_t classes = builtin.has_classes() ? builtin.classes() : builtin.vocabulary();
    options.label_classes = spec.model().has_onnx() ? kAnyClasses : classes;
  }
  if (absl::StartsWith(spec.model().loss(), "output:")) options.labels = Labels::kIfThere;
  options.memory_limit_bytes = spec.data().memory().bytes();
  options.image_threads = static_cast<int>(spec.data().image_threads());
  return options;
}

FeedOptions FeedOptionsOf(const job::JobSpec& spec, const MetaGraph& metagraph) {
  FeedOptions options = FeedOptionsOf(spec);
  options.label_classes = LabelClasses(metagraph).value_or(options.label_classes);
  for (const SignatureInput& input : metagraph.signature) {
    if (input.role != InputRole::kFeature) continue;
    options.inputs.push_back({input.field, input.dtype, Shape(input.shape.begin() + 1, input.shape.end())});
  }
  return options;
}

absl::Status CheckLabels(const StoredData& data, const FeedOptions& options) {
  return Field::Label(data, options.label_classes, options.ignore_label).status();
}

absl::StatusOr<std::unique_ptr<DataSource>> OpenDataSource(const job::DataFiles& files, const FeedOptions& options,
                                                           StoredData* stored) {
  ReadOptions reading{.memory_limit_bytes = options.memory_limit_bytes, .labels = options.labels};
  reading.image_threads = options.image_threads;
  reading.pulse = options.pulse;
  for (const FeedInput& input : options.inputs) reading.inputs.push_back(input.name);
  LS_ASSIGN_OR_RETURN(StoredData data, ReadStoredData(files, reading));
  std::vector<SampleView> views;
  LS_ASSIGN_OR_RETURN(std::vector<Field> fields, MakeFields(data, options, &views));
  std::string hash = ContentHash(data, options.pulse);
  if (files.has_sha256() && files.sha256() != hash) {
    return absl::InvalidArgumentError(absl::StrCat(FilesText(files), " are not the data of this job: their hash is ",
                                                   hash, ", the job's sha256 ", files.sha256(),
                                                   "; use the same files everywhere"));
  }
  // Last: the hash is that of the files.
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i].order.empty()) continue;
    StoredArray& array = data.arrays[data.features[i].array];
    if (array.images != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(array.path,
                       ": data.transpose is for data that are held; use image_decode: start, or a model that takes "
                       "[channels, height, width]"));
    }
    TransposeSamples(array, views[i], options.pulse);
  }
  if (stored != nullptr) *stored = data;
  return std::make_unique<FileSource>(std::move(fields), data, std::move(hash));
}

}  // namespace lockstep::worker
