#include "worker/session/inspect_data.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/label_classes.h"
#include "common/graph/state_names.h"
#include "common/job/graph_request.h"
#include "common/status/status_macros.h"
#include "worker/data/data_source.h"
#include "worker/data/non_finite.h"

namespace lockstep::worker {
namespace {

// One of a job's sets of data, opened.
struct OpenSet {
  std::string key;  // "data.train"
  const job::DataFiles* files;
  std::unique_ptr<DataSource> source;
  StoredData stored;
};

// The key of the file that a message names first.
std::string KeyOf(const OpenSet& set, const std::string& message) {
  const std::pair<const char*, const std::string*> files[] = {
      {"inputs", &set.files->inputs()}, {"labels", &set.files->labels()}, {"tokens", &set.files->tokens()}};
  std::string key = set.key;
  size_t first = std::string::npos;
  size_t longest = 0;  // of the paths there: one may begin as another does
  for (const auto& [name, path] : files) {
    const size_t at = path->empty() ? std::string::npos : message.find(*path);
    if (at == std::string::npos || at > first || (at == first && path->size() <= longest)) continue;
    key = absl::StrCat(set.key, ".", name);
    first = at;
    longest = path->size();
  }
  return key;
}

void AddFindings(const OpenSet& set, const absl::Status& status, Findings& findings) {
  if (!status.ok())
    findings.Error("data", findings.At(KeyOf(set, std::string(status.message())), status), kExitBadData);
}

// "inputs F32 [3, 16, 16], labels I64 []".
std::string FormText(const std::vector<TensorSpec>& fields) {
  return absl::StrJoin(fields, ", ", [](std::string* out, const TensorSpec& field) {
    absl::StrAppend(out, field.name, " ", DTypeName(field.dtype), " ", ShapeString(field.shape));
  });
}

// A NaN or infinity makes the loss of its sample non-finite, unless the model tests for it (IsNaN, IsInf) or may use
// -inf as a mask (Softmax, Attention).
void CheckFinite(const OpenSet& set, const MetaGraph& metagraph, Findings& findings) {
  const std::vector<Node>& nodes = metagraph.forward.nodes;
  const bool looks = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op == OpType::kIsNaN || node.op == OpType::kIsInf;
  });
  const bool masks = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op == OpType::kSoftmax || node.op == OpType::kAttention;
  });
  for (size_t i = 0; i < set.stored.arrays.size(); ++i) {
    const std::optional<NonFinite> found = FindNonFinite(set.stored.arrays[i]);
    if (!found.has_value()) continue;
    const bool target = set.stored.label.has_value() && set.stored.label->array == i;
    const bool taken = !target && (looks || (masks && !found->any_nan));
    const bool stops = set.key == "data.train" && metagraph.update.on_nan == OnNan::kStop && !taken;
    const absl::Status status = absl::InvalidArgumentError(
        absl::StrCat(found->first, ", the first of ", found->count, " that are not finite",
                     stops ? "; the job would stop there (train.on_nan: stop). Leave such samples out, or replace the "
                             "values"
                           : ""));
    const absl::Status placed = findings.At(KeyOf(set, std::string(status.message())), status);
    stops ? findings.Error("data", placed, kExitBadData) : findings.Warn("data", std::string(placed.message()));
  }
}

FeedOptions FeedOf(const JobSpec& spec, const Graph* imported) {
  FeedOptions feed = FeedOptionsOf(spec);
  for (const GraphInput& input : KnownInputs(spec, imported)) {
    // Without the batch; an input that has no dimensions is refused with the model.
    const Shape sample(input.shape.begin() + (input.shape.empty() ? 0 : 1), input.shape.end());
    feed.inputs.push_back({input.name, input.dtype, sample, KnownRange(spec, imported, input.name)});
  }
  if (feed.inputs.size() == 1) feed.inputs[0].name = kInputsField;
  return feed;
}

constexpr int64_t kShownImages = 8;
constexpr int64_t kLeastSide = 8;  // what is smaller is a row of numbers rather than an image
constexpr int64_t kMostSide = 512;

// Where the data have one feature that is as an image: [H, W], or [C, H, W] with one channel or three.
absl::StatusOr<std::vector<SampleImage>> FirstImages(const DataSource& source) {
  const size_t features = source.fields().size() - (source.has_labels() ? 1 : 0);
  std::vector<SampleImage> images;
  if (features != 1 || source.fields()[0].dtype != DType::kF32) return images;
  Shape shape = source.fields()[0].shape;
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  const auto is_side = [](int64_t side) { return side >= kLeastSide && side <= kMostSide; };
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3) || !is_side(shape[1]) || !is_side(shape[2])) return images;
  for (int64_t sample = 0; sample < std::min(kShownImages, source.num_samples()); ++sample) {
    SampleImage& image = images.emplace_back(SampleImage{shape[0], shape[1], shape[2], {}});
    image.values.resize(static_cast<size_t>(NumElements(shape)));
    auto* const bytes = reinterpret_cast<std::byte*>(image.values.data());
    LS_RETURN_IF_ERROR(source.Read(0, {sample}, {bytes, image.values.size() * sizeof(float)}));
  }
  return images;
}

class FileData : public JobData {
 public:
  FileData(const JobSpec& spec, const Graph* imported) : feed_(FeedOf(spec, imported)) {
    sets_.push_back({"data.train", &spec.data().train(), nullptr, {}});
    if (spec.data().has_eval()) sets_.push_back({"data.eval", &spec.data().eval(), nullptr, {}});
  }

  bool Open(Findings& findings) {
    bool opened = true;
    for (OpenSet& set : sets_) {
      std::vector<std::string> warnings;
      FeedOptions feed = feed_;
      feed.warnings = &warnings;
      absl::StatusOr<std::unique_ptr<DataSource>> source = OpenDataSource(*set.files, feed, &set.stored);
      AddFindings(set, source.status(), findings);
      for (const std::string& warning : warnings) findings.Warn("data", warning);
      opened = opened && source.ok();
      if (source.ok()) set.source = *std::move(source);
    }
    return opened && Describe(findings);
  }

  const DataFacts& facts() const override { return facts_; }

  void CheckFits(const MetaGraph& metagraph, Findings& findings) const override {
    for (const OpenSet& set : sets_) CheckFinite(set, metagraph, findings);
    const std::optional<int64_t> classes = LabelClasses(metagraph);
    if (!classes.has_value() || feed_.label_classes == *classes) return;
    FeedOptions feed = feed_;
    feed.label_classes = *classes;
    for (const OpenSet& set : sets_) AddFindings(set, CheckLabels(set.stored, feed), findings);
  }

 private:
  bool Describe(Findings& findings) {
    const DataSource& train = *sets_[0].source;
    facts_.train_samples = train.num_samples();
    facts_.inputs = train.fields();
    if (train.has_labels()) {
      facts_.labels = train.fields().back();
      facts_.inputs.pop_back();
    }
    facts_.train_sha256 = train.content_hash();
    facts_.held_bytes = train.held_bytes();
    facts_.classes = train.classes();
    absl::StatusOr<std::vector<SampleImage>> images = FirstImages(train);
    AddFindings(sets_[0], images.status(), findings);
    if (!images.ok()) return false;
    facts_.images = *std::move(images);
    if (sets_.size() == 1) return true;
    const DataSource& eval = *sets_[1].source;
    facts_.eval_samples = eval.num_samples();
    facts_.eval_sha256 = eval.content_hash();
    facts_.held_bytes += eval.held_bytes();
    const std::vector<std::string>&known = train.classes(), &evaluated = eval.classes();
    if (!known.empty() && !evaluated.empty() && known != evaluated) {
      const absl::Status differ = absl::InvalidArgumentError(
          absl::StrCat("has the classes ", ListNames(evaluated), ", data.train has ", ListNames(known),
                       "; they are numbered in the order of their names, so both must have the same folders"));
      findings.Error("data", findings.At("data.eval", differ), kExitBadData);
      return false;
    }
    if (eval.fields() == train.fields()) return true;
    const absl::Status differ =
        absl::InvalidArgumentError(absl::StrCat("has samples of ", FormText(eval.fields()), ", data.train of ",
                                                FormText(train.fields()), "; both must have the same form"));
    findings.Error("data", findings.At("data.eval", differ), kExitBadData);
    return false;
  }

  const FeedOptions feed_;
  std::vector<OpenSet> sets_;
  DataFacts facts_;
};

}  // namespace

std::unique_ptr<JobData> InspectData(const JobSpec& spec, const Graph* imported, Findings& findings) {
  auto data = std::make_unique<FileData>(spec, imported);
  return data->Open(findings) ? std::move(data) : nullptr;
}

}  // namespace lockstep::worker
