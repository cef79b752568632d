// StepRunner's inputs: batches from the reader to the passes, ahead of them where they have a way to go.
#include <utility>

#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/inference/input_fields.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

absl::Status StepRunner::FindFields(const DataSource& train) {
  const MetaGraph& metagraph = config_.metagraph;
  LS_ASSIGN_OR_RETURN(input_fields_,
                      InputFields(*plan_, metagraph.signature, train, metagraph.pass_batch, config_.mixing));
  return absl::OkStatus();
}

absl::Status StepRunner::MakeEvaluation(const StepPlans& plans, const DataSource* eval) {
  LS_ASSIGN_OR_RETURN(evaluation_, EvaluationPass::Make(plans.evaluation, plans.rest, eval,
                                                        {.signature = config_.metagraph.signature,
                                                         .has_accuracy = config_.evaluation.has_accuracy,
                                                         .batch = config_.eval_batch,
                                                         .seed = config_.seed,
                                                         .poison = config_.poison}));
  return absl::OkStatus();
}

absl::Status StepRunner::MakeReader(const DataSource& train) {
  BatchReader::Options options{
      .global_batch_size = config_.global_batch, .logical_shards = config_.logical_shards, .blocks = {}};
  options.poison = config_.poison;
  options.augmentation = config_.augmentation;
  options.mixing = config_.mixing;
  if (!config_.device->host_visible()) {
    const size_t bytes =
        BatchReader::BytesOfBatch(train, config_.global_batch / config_.logical_shards, config_.mixing);
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
  LS_ASSIGN_OR_RETURN(batch_, reader_->Next());
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
