// `lockstep model sample`: what a trained language model of bytes writes.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/serving_graph.h"
#include "common/random/random.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model.h"
#include "deploy/cli/trained_model.h"
#include "worker/device/devices.h"
#include "worker/plan/plan.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kBytes = 256;

struct SampleOptions {
  std::string directory;
  std::optional<int64_t> step;
  std::string prompt = "\n";
  int64_t tokens = 400;
  double temperature = 0.8;
  uint64_t seed = 0;
  bool average = false;
};

// Scores of the byte that follows a text, by a model that takes tokens [batch, length] and scores every position.
class NextByte {
 public:
  absl::Status Load(const TrainedModel& model, bool averaged) {
    if (averaged) LS_RETURN_IF_ERROR(model.RequireAverage());
    graph_ = MakeServingGraph(model.metagraph());
    LS_RETURN_IF_ERROR(Bind(model.metagraph().pass_batch));
    std::map<std::string, std::byte*> addresses;
    for (const Variable& variable : graph_.variables) {
      LS_ASSIGN_OR_RETURN(Tensor tensor, model.Read(variable, averaged));
      addresses[variable.name] = variables_.emplace(variable.name, std::move(tensor)).first->second.data();
    }
    LS_ASSIGN_OR_RETURN(device_, device::MakeDevice(device::DeviceKind::kCpu, {}));
    LS_ASSIGN_OR_RETURN(plan_, worker::Plan::Make(device_.get(), graph_, addresses, {}));
    const TensorSpec& input = plan_->inputs()[0];
    length_ = input.shape[1];
    LS_ASSIGN_OR_RETURN(tokens_, Tensor::Create(DType::kI64, input.shape));
    LS_ASSIGN_OR_RETURN(scores_, Tensor::Create(DType::kF32, plan_->outputs()[0].shape));
    return plan_->RefreshVariables();
  }

  // REQUIRES: text is not empty. The result is valid until the next call.
  absl::StatusOr<absl::Span<const float>> Scores(absl::string_view text) {
    const auto known = std::min<int64_t>(length_, static_cast<int64_t>(text.size()));
    const absl::string_view window = text.substr(text.size() - static_cast<size_t>(known));
    // A position never looks at those behind it: whatever stands there does not matter.
    for (int64_t i = 0; i < known; ++i) {
      tokens_.elements<int64_t>()[static_cast<size_t>(i)] = static_cast<unsigned char>(window[static_cast<size_t>(i)]);
    }
    const std::byte* const inputs[] = {tokens_.data()};
    LS_RETURN_IF_ERROR(plan_->RunPass(inputs, {}));
    LS_RETURN_IF_ERROR(plan_->ReadOutput(0, absl::MakeSpan(scores_.data(), static_cast<size_t>(scores_.byte_size()))));
    return scores_.elements<float>().subspan(static_cast<size_t>((known - 1) * kBytes), kBytes);
  }

 private:
  // One text at a time, where the model does not compute with its batch.
  absl::Status Bind(int64_t batch) {
    const Graph open = graph_;
    BindBatch(&graph_, 1);
    if (!InferShapes(&graph_).ok()) {
      graph_ = open;
      BindBatch(&graph_, batch);
      LS_RETURN_IF_ERROR(InferShapes(&graph_));
    }
    const Shape scores = graph_.values.at(graph_.outputs[0]).shape;
    if (graph_.inputs.size() == 1 && graph_.inputs[0].dtype == DType::kI64 && graph_.inputs[0].shape.size() == 2 &&
        scores.size() == 3 && scores[1] == graph_.inputs[0].shape[1] && scores[2] == kBytes) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("the model gives ", ShapeString(scores),
                                                   "; what writes text here takes tokens [batch, length] and scores "
                                                   "256 bytes per position. For other vocabularies, "
                                                   "`lockstep model export` and a tokenizer of your own"));
  }

  Graph graph_;
  std::map<std::string, Tensor> variables_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<worker::Plan> plan_;
  int64_t length_ = 0;
  Tensor tokens_;
  Tensor scores_;
};

// Draws by the softmax of scores / temperature; the largest score at 0. `uniform` in [0, 1).
char Draw(absl::Span<const float> scores, double temperature, double uniform) {
  const auto largest = std::max_element(scores.begin(), scores.end());
  if (temperature == 0) return static_cast<char>(largest - scores.begin());
  std::vector<double> cumulative;
  double total = 0;
  for (const float score : scores) {
    total += std::exp((static_cast<double>(score) - *largest) / temperature);
    cumulative.push_back(total);
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * total);
  return static_cast<char>(std::min<int64_t>(drawn - cumulative.begin(), kBytes - 1));
}

absl::Status Sample(const SampleOptions& options) {
  if (options.prompt.empty()) return absl::InvalidArgumentError("--prompt is empty; give it at least one byte");
  LS_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModel::Open(options.directory, options.step));
  NextByte next;
  LS_RETURN_IF_ERROR(next.Load(model, options.average));
  const RandomStream random = RandomStream::For(options.seed, StreamOfName("lockstep.sample"));
  std::string text = options.prompt;
  std::cout << model.checkpoint() << " of " << options.directory << ":\n" << text;
  for (int64_t i = 0; i < options.tokens; ++i) {
    LS_ASSIGN_OR_RETURN(const absl::Span<const float> scores, next.Scores(text));
    const double uniform = 0.5 + 0.5 * static_cast<double>(SymmetricUnit(random.At(static_cast<uint64_t>(i))));
    text.push_back(Draw(scores, options.temperature, uniform));
    std::cout << text.back() << std::flush;
  }
  std::cout << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddModelSample(CLI::App& model, int& exit_code) {
  CLI::App* command = model.add_subcommand("sample", "Let a trained language model of bytes write");
  auto options = std::make_shared<SampleOptions>();
  command->add_option("dir", options->directory, "The job's directory")->required();
  command->add_option("--step", options->step, "The checkpoint of this step (default: the newest that is whole)");
  command->add_option("--prompt", options->prompt, "What the text begins with (default: a new line)");
  command->add_option("--tokens", options->tokens, "How many bytes to write (400)")->check(CLI::Range(0, 1 << 24));
  command->add_option("--temperature", options->temperature, "0: always the likeliest; 1: as the model says (0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--seed", options->seed, "The same seed gives the same text (0)");
  command->add_flag("--ema", options->average, "By the average of the weights (train.ema)");
  command->callback([options, &exit_code] {
    const absl::Status status = Sample(*options);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
  });
}

}  // namespace lockstep::cli
