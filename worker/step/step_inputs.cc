// StepRunner's inputs: batches from the reader to the passes, ahead of them where they have a way to go.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

// The field of the data source that feeds each input of a plan for passes of `batch` samples; -1 for the mask. Internal
// when one is fed by nothing, or by a field of another size.
absl::StatusOr<std::vector<int>> FieldsOf(const Plan& plan, const std::vector<SignatureInput>& signature,
                                          const DataSource& source, int64_t batch) {
  const auto bytes_of = [](const TensorSpec& spec) { return NumElements(spec.shape) * DTypeSize(spec.dtype); };
  std::vector<int> fields;
  for (const TensorSpec& input : plan.inputs()) {
    if (input.name == kMaskInput) {
      fields.push_back(-1);
      continue;
    }
    const auto described =
        std::find_if(signature.begin(), signature.end(), [&](const auto& entry) { return entry.name == input.name; });
    const int field = described == signature.end() ? -1 : FindField(source, described->role, described->field);
    if (field < 0) {
      return absl::InternalError(absl::StrCat("no field of the data feeds input '", input.name, "' of the model"));
    }
    const TensorSpec& sample = source.fields()[static_cast<size_t>(field)];
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

}  // namespace

absl::Status StepRunner::FindFields(const DataSource& train) {
  const MetaGraph& metagraph = config_.metagraph;
  LS_ASSIGN_OR_RETURN(input_fields_, FieldsOf(*plan_, metagraph.signature, train, metagraph.pass_batch));
  if (eval_plan_ == nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(eval_input_fields_, FieldsOf(*eval_plan_, metagraph.signature, *eval_, config_.eval_batch));
  return absl::OkStatus();
}

absl::Status StepRunner::MakeReader(const DataSource& train) {
  BatchReader::Options options{
      .global_batch_size = config_.global_batch, .logical_shards = config_.logical_shards, .blocks = {}};
  options.poison = config_.poison;
  eval_batch_.poison = config_.poison;
  if (!config_.device->host_visible()) {
    const size_t bytes = BatchReader::BytesOfBatch(train, config_.global_batch / config_.logical_shards);
    for (int i = 0; i < BatchReader::BatchesAlive(options.depth); ++i) {
      LS_ASSIGN_OR_RETURN(blocks_.emplace_back(), config_.device->AllocateHost(bytes));
      options.blocks.push_back(blocks_.back()->address());
    }
    LS_ASSIGN_OR_RETURN(staging_, InputStaging::Make(*config_.device, *plan_));
  }
  reader_ = std::make_unique<BatchReader>(&train, &stream_, std::move(options));
  return absl::OkStatus();
}

absl::Status StepRunner::Seek(int64_t step, const std::vector<int>& shards) {
  // Every batch goes back to the reader.
  if (staging_ != nullptr) LS_RETURN_IF_ERROR(staging_->WaitForCopies());
  LS_RETURN_IF_ERROR(plan_->WaitForInputs());
  reader_->Seek(step, {shards.begin(), shards.end()});
  reader_shards_ = shards;
  took_ahead_ = staged_ = false;
  return absl::OkStatus();
}

absl::Status StepRunner::NextBatch() {
  const Profiler::Scope scope(config_.profiler, ProfileTrack::kData, "(wait for data)");
  {
    // The batch before goes back to the reader.
    const NowDoing waiting("waiting for the device to take its inputs");
    LS_RETURN_IF_ERROR(staging_ != nullptr ? staging_->WaitForCopies() : plan_->WaitForInputs());
  }
  const NowDoing waiting("waiting for samples");
  batch_ = &reader_->Next();
  return absl::OkStatus();
}

// Of the batch that is at hand.
std::vector<InputBytes> StepRunner::InputsOf(int64_t pass) const {
  std::vector<InputBytes> inputs;
  for (const int field : input_fields_) {
    const absl::Span<std::byte> bytes = batch_->bytes[static_cast<size_t>(field)];
    const size_t share = bytes.size() / static_cast<size_t>(passes_);
    inputs.push_back(bytes.subspan(share * static_cast<size_t>(pass), share));
  }
  return inputs;
}

absl::Status StepRunner::QueuePass(int64_t pass, const PassKey& key, Plan::BucketReady on_bucket) {
  if (staging_ == nullptr) return plan_->RunPass(InputsOf(pass), key, on_bucket);
  if (!std::exchange(staged_, false)) LS_RETURN_IF_ERROR(staging_->Copy(InputsOf(pass)));
  LS_ASSIGN_OR_RETURN(const absl::Span<const InputBytes> inputs, staging_->Use());
  LS_RETURN_IF_ERROR(plan_->RunPassOnDevice(inputs, key, on_bucket));
  return StageNext(pass + 1);
}

// Sends what the pass behind the one just queued takes. A batch that is not read yet is not waited for.
absl::Status StepRunner::StageNext(int64_t pass) {
  if (pass == passes_) {
    if (!reader_->Ready()) return absl::OkStatus();
    LS_RETURN_IF_ERROR(NextBatch());
    took_ahead_ = true;
    pass = 0;
  }
  LS_RETURN_IF_ERROR(staging_->Copy(InputsOf(pass)));
  staged_ = true;
  return absl::OkStatus();
}

}  // namespace lockstep::worker
