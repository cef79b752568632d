#include "common/training/prepare_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/digest/sha256.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/build/check_trainable.h"
#include "common/graph/graph_editor.h"
#include "common/graph/parameter_patterns.h"
#include "common/graph/passes/training_graph.h"
#include "common/graph/serialize.h"
#include "common/job/extent.h"
#include "common/job/graph_request.h"
#include "common/job/load_model.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr double kMiB = 1 << 20;

// Adds patterns that match these names alone.
void AddExactly(absl::Span<const std::string> names, std::vector<std::string>* patterns) {
  for (const std::string& name : names) {
    patterns->push_back(absl::StrReplaceAll(name, {{"\\", "\\\\"}, {"*", "\\*"}, {"?", "\\?"}, {"[", "\\["}}));
  }
}

class Preparation {
 public:
  Preparation(const JobReading& reading, Findings& findings) : reading_(reading), findings_(findings) {
    prepared_.job = reading.spec;
    findings.KnowPlaces(reading.places);
    for (const absl::Status& mistake : reading.mistakes.all()) findings.Error("job", mistake, kExitBadJob);
    if (reading.mistakes.empty()) findings.Ok("job", absl::StrCat(reading.places.file(), "  '", job().name(), "'"));
  }

  void ReadModel(const NodeEvaluator& evaluate) {
    for (const char* key : {"model", "train.global_batch_size", "train.logical_shards", "train.micro_batch"}) {
      if (reading_.mistakes.HasInvalidPart(key)) return;
    }
    absl::StatusOr<std::optional<ImportedModel>> model = LoadModel(job(), evaluate);
    if (!model.ok()) return findings_.Error("model", findings_.At("model.onnx", model.status()), kExitBadJob);
    model_is_known_ = true;
    imported_ = *std::move(model);
    if (!imported_.has_value()) return;
    for (const std::string& warning : imported_->warnings) findings_.Warn("model.onnx", warning);
  }

  void OpenData(const DataInspector& inspect) {
    for (const char* key : {"model.builtin", "model.onnx", "model.loss", "model.ignore_index", "data"}) {
      if (reading_.mistakes.HasInvalidPart(key)) return;
    }
    data_ = inspect(job(), imported(), findings_);
    if (data_ == nullptr) return;
    const DataFacts& facts = prepared_.facts = data_->facts();
    // From here on the job names its data by content: a worker with other files is refused, and so is a resume.
    job::Data& files = *prepared_.job.mutable_data();
    if (!facts.train_sha256.empty()) files.mutable_train()->set_sha256(facts.train_sha256);
    if (!facts.eval_sha256.empty()) files.mutable_eval()->set_sha256(facts.eval_sha256);
    files.mutable_train()->mutable_classes()->Assign(facts.classes.begin(), facts.classes.end());
  }

  void MakePolicy() {
    if (data_ == nullptr || !reading_.mistakes.empty()) return;
    absl::StatusOr<TrainingPolicy> policy = MakeTrainingPolicy(job(), prepared_.facts);
    if (!policy.ok()) return findings_.Error("training", policy.status(), kExitBadJob);
    const int64_t batch = job().train().global_batch_size();
    const bool in_steps = TotalSteps(job(), prepared_.facts.train_samples).has_value();
    const std::string extent = in_steps ? absl::StrCat(policy->end_step, " steps")
                                        : absl::StrCat(AmountText(job().train().duration()), ", steps");
    findings_.Ok("training",
                 absl::StrFormat("%s of %d samples in %d logical shards", extent, batch, policy->logical_shards));
    prepared_.training = *std::move(policy);
  }

  void BuildModel() {
    if (data_ == nullptr || !model_is_known_ || !reading_.mistakes.empty()) return;
    const absl::Status built = Build();
    if (!built.ok()) return findings_.Error("model", built, kExitBadJob);
    data_->CheckFits(prepared_.metagraph, findings_);
    int64_t trainable = 0;
    for (const StateTensor& tensor : prepared_.layout.tensors) {
      if (tensor.kind == StateKind::kParameter) trainable += NumElements(tensor.spec.shape);
    }
    findings_.Ok("model", absl::StrFormat("%d trainable values in %d tensors, state %.2f MiB, metagraph %s", trainable,
                                          prepared_.layout.tensors.size(),
                                          static_cast<double>(prepared_.layout.TotalBytes()) / kMiB,
                                          prepared_.fingerprint.substr(0, 12)));
    const ImportNotes* const notes = imported_.has_value() ? &imported_->notes : nullptr;
    prepared_.account = DescribeTraining(prepared_.metagraph, notes);
    for (const AccountLine& line : prepared_.account) findings_.Ok(line.what, line.text);
  }

  // Patterns of hooks match tensors of the state.
  void MatchHooks() {
    if (prepared_.layout.tensors.empty() || findings_.failed()) return;
    std::vector<std::string> names;
    for (const StateTensor& tensor : prepared_.layout.tensors) {
      if (tensor.spec.dtype == DType::kF32) names.push_back(tensor.spec.name);
    }
    for (int i = 0; i < job().hooks_size(); ++i) {
      const job::Hook& hook = job().hooks(i);
      for (const auto& [what, patterns] :
           {std::pair("statistics", &hook.statistics()), std::pair("histograms", &hook.histograms())}) {
        const std::string key = absl::StrCat("hooks.", i, ".", what);
        const std::vector<std::string> list(patterns->begin(), patterns->end());
        const absl::Status matched = MatchNames(names, list, key, "tensor of the state").status();
        if (!matched.ok()) findings_.Error("hooks", findings_.At(key, matched), kExitBadJob);
      }
    }
  }

  // Says how much data there is, unless its files or the model found an error in it.
  void JudgeData() {
    const auto& all = findings_.all();
    const bool wrong = std::any_of(all.begin(), all.end(), [](const Finding& finding) {
      return finding.gravity == Gravity::kError && finding.what == "data";
    });
    if (data_ == nullptr || wrong) return;
    const DataFacts& facts = prepared_.facts;
    std::string text = absl::StrCat(facts.train_samples, " training samples of ", ShapeString(facts.inputs[0].shape),
                                    ", ", facts.eval_samples, " to evaluate");
    if (evaluated_together_ > 0) {
      absl::StrAppend(&text, ", ", evaluated_together_, " at a time: the model or its loss looks at them together");
    }
    findings_.Ok("data", text);
  }

  std::optional<PreparedJob> Take() {
    if (findings_.failed()) return std::nullopt;
    return std::move(prepared_);
  }

 private:
  const JobSpec& job() const { return prepared_.job; }
  const Graph* imported() const { return imported_.has_value() ? &imported_->graph : nullptr; }

  absl::Status Build() {
    const DataFacts& facts = prepared_.facts;
    LS_ASSIGN_OR_RETURN(MetaGraphRequest request,
                        MakeMetaGraphRequest(job(), imported(), facts.inputs, facts.labels, facts.train_samples));
    if (imported_.has_value()) {
      request.aliases = imported_->aliases;
      // A job that says what trains is not held to what the file says.
      if (request.trainable.empty()) AddExactly(imported_->notes.frozen, &request.frozen);
    }
    LS_ASSIGN_OR_RETURN(prepared_.metagraph, BuildMetaGraph(request));
    if (imported_.has_value() && !imported_->use_of_batch.empty()) FixBatch();
    LS_RETURN_IF_ERROR(CheckVariableTypes(prepared_.metagraph.forward));
    if (job().data().has_eval()) {
      const absl::Status evaluates = CheckEvaluation(facts.eval_samples);
      if (!evaluates.ok()) return findings_.At("data.eval", evaluates);
    }
    LS_ASSIGN_OR_RETURN(prepared_.metagraph_bytes, SerializeMetaGraph(prepared_.metagraph));
    prepared_.fingerprint = Sha256Hex(prepared_.metagraph_bytes);
    prepared_.layout = MakeStateLayout(prepared_.metagraph);
    if (imported_.has_value()) prepared_.initial = std::move(imported_->initial);
    return absl::OkStatus();
  }

  // The model computes with the size of the job's passes alone.
  void FixBatch() {
    const int64_t batch = prepared_.metagraph.pass_batch;
    BindBatch(&prepared_.metagraph.forward, batch);
    for (size_t i = 0; i < prepared_.metagraph.signature.size(); ++i) {
      prepared_.metagraph.signature[i].shape = prepared_.metagraph.forward.inputs[i].shape;
    }
    findings_.Warn("model.onnx",
                   absl::StrCat("the model computes with the number of samples in a batch (", imported_->use_of_batch,
                                "), which is ", batch, " here: it evaluates, predicts and is exported for batches of ",
                                batch, " alone"));
  }

  absl::Status CheckEvaluation(int64_t samples) {
    const int64_t batch = EvalBatch(job());
    LS_ASSIGN_OR_RETURN(const EvaluationGraph full, MakeEvaluationGraph(prepared_.metagraph, batch));
    if (!full.samples_apart) evaluated_together_ = batch;
    return MakeRestGraph(prepared_.metagraph, full, batch, samples).status();
  }

  const JobReading& reading_;
  Findings& findings_;
  PreparedJob prepared_;
  bool model_is_known_ = false;
  std::optional<ImportedModel> imported_;
  std::unique_ptr<JobData> data_;
  int64_t evaluated_together_ = 0;  // how many samples an evaluation looks at together; 0: none
};

}  // namespace

std::optional<PreparedJob> PrepareJob(const JobReading& reading, const DataInspector& inspect,
                                      const NodeEvaluator& evaluate, Findings& findings) {
  Preparation preparation(reading, findings);
  preparation.ReadModel(evaluate);
  preparation.OpenData(inspect);
  preparation.MakePolicy();
  preparation.BuildModel();
  preparation.MatchHooks();
  preparation.JudgeData();
  return preparation.Take();
}

}  // namespace lockstep
