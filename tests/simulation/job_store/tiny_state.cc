#include "tests/simulation/job_store/tiny_state.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/graph/initial_state.h"
#include "common/graph/serialize.h"
#include "common/graph/state_tensors.h"
#include "common/job/job.h"
#include "common/status/check.h"
#include "common/training/job_data.h"
#include "common/training/prepare_job.h"
#include "tests/simulation/random.h"

namespace lockstep::simulation {
namespace {

constexpr char kTinyJob[] = R"(
name: job
model: {builtin: {name: mlp, classes: 2, hidden: [2]}, loss: softmax_cross_entropy}
data: {train: {inputs: none, labels: none}, eval: {inputs: none, labels: none}}
eval: {every: 10steps, metric: loss}
train: {seed: 1, duration: 1000steps, global_batch_size: 4, logical_shards: 1, optimizer: {name: sgd, lr: 0.1}}
checkpoint: {every: 10steps, keep_latest: 2, keep_best: true}
)";

constexpr size_t kWord = sizeof(uint64_t);

// Described, and nowhere.
class NoData final : public JobData {
 public:
  NoData() {
    facts_.train_samples = facts_.eval_samples = 8;
    facts_.inputs = {{"inputs", DType::kF32, {2}}};
    facts_.labels = {"labels", DType::kI32, {}};
    facts_.train_sha256 = std::string(64, 'd');
  }
  const DataFacts& facts() const override { return facts_; }
  void CheckFits(const MetaGraph&, Findings&) const override {}

 private:
  DataFacts facts_;
};

struct Tiny {
  PreparedJob prepared;
  std::vector<CheckpointTensor> layout;
  std::vector<std::string> bytes;  // of the tensors that every state has alike; of parameters as many
  std::vector<size_t> parameters;  // indices into the layout
};

// Its variables begin as a file of weights has them, so that a schedule says what they are.
Tiny MakeTiny() {
  JobReading reading;
  const absl::StatusOr<JobSpec> spec = ParseJob(kTinyJob, "/job.yaml");
  LS_CHECK(spec.ok(), "the tiny job can be read");
  reading.spec = *spec;
  Findings findings;
  const auto inspect = [](const JobSpec&, const Graph*, Findings&) { return std::make_unique<NoData>(); };
  std::optional<PreparedJob> prepared = PrepareJob(reading, inspect, nullptr, findings);
  LS_CHECK(prepared.has_value(), "the tiny job can be prepared");
  Tiny tiny{*std::move(prepared), {}, {}, {}};
  for (Variable& variable : tiny.prepared.metagraph.forward.variables) {
    variable.init = InitRule{InitRule::Kind::kFile, 0.0, 0, std::string(64, 'a'), variable.name};
  }
  const absl::StatusOr<std::string> metagraph = SerializeMetaGraph(tiny.prepared.metagraph);
  LS_CHECK(metagraph.ok(), "the tiny metagraph can be stored");
  tiny.prepared.metagraph_bytes = *metagraph;
  tiny.prepared.fingerprint = Sha256Hex(*metagraph);
  const std::vector<StateTensor>& tensors = tiny.prepared.layout.tensors;
  tiny.layout = ToCheckpointTensors(tiny.prepared.layout);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool parameter = tensors[i].kind == StateKind::kParameter;
    if (parameter) tiny.parameters.push_back(i);
    const absl::StatusOr<Tensor> begin = parameter ? Tensor::Create(tensors[i].spec.dtype, tensors[i].spec.shape)
                                                   : MakeInitialTensor(tiny.prepared.metagraph, tensors[i], 1);
    LS_CHECK(begin.ok() && (!parameter || begin->byte_size() % kWord == 0), "a parameter is made of whole words");
    tiny.bytes.emplace_back(reinterpret_cast<const char*>(begin->bytes().data()), begin->bytes().size());
  }
  LS_CHECK(tiny.parameters.size() >= kWeights, "each integer has a parameter");
  return tiny;
}

const Tiny& TheTiny() {
  static const Tiny* const tiny = new Tiny(MakeTiny());
  return *tiny;
}

// The first word of each of the first parameters is an integer of the state; all others follow from it.
uint64_t Word(const ReplicaState& state, size_t parameter, size_t word) {
  const uint64_t weight = state.weights[parameter % kWeights];
  return parameter < kWeights && word == 0 ? weight : Mix(weight ^ Mix(parameter * 64 + word));
}

}  // namespace

const std::vector<CheckpointTensor>& TinyLayout() { return TheTiny().layout; }

std::vector<std::string> BytesOf(const ReplicaState& state) {
  const Tiny& tiny = TheTiny();
  std::vector<std::string> tensors = tiny.bytes;
  for (size_t parameter = 0; parameter < tiny.parameters.size(); ++parameter) {
    std::string& bytes = tensors[tiny.parameters[parameter]];
    for (size_t word = 0; word < bytes.size() / kWord; ++word) {
      const uint64_t value = Word(state, parameter, word);
      std::memcpy(bytes.data() + word * kWord, &value, kWord);
    }
  }
  return tensors;
}

std::optional<ReplicaState> StateOf(uint64_t step, const std::vector<std::string>& tensors) {
  const Tiny& tiny = TheTiny();
  ReplicaState state;
  state.step = static_cast<int64_t>(step);
  if (tensors.size() != tiny.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < kWeights; ++i) {
    const std::string& bytes = tensors[tiny.parameters[i]];
    if (bytes.size() < kWord) return std::nullopt;
    std::memcpy(&state.weights[i], bytes.data(), kWord);
  }
  return BytesOf(state) == tensors ? std::optional(state) : std::nullopt;
}

StateDigests DigestsOf(const ReplicaState& state) {
  const std::vector<std::string> bytes = BytesOf(state);
  std::vector<TensorBytes> tensors;
  for (size_t i = 0; i < bytes.size(); ++i) tensors.push_back({&TinyLayout()[i].spec, bytes[i]});
  return DigestState(tensors, 1);
}

chief::JobSetup SetUpTinyJob(const ClusterSettings& settings) {
  const PreparedJob& tiny = TheTiny().prepared;
  chief::JobSetup setup;
  setup.job = tiny.job;
  setup.facts = tiny.facts;
  setup.training = tiny.training;
  setup.metagraph = tiny.metagraph;
  setup.metagraph_bytes = tiny.metagraph_bytes;
  setup.fingerprint = tiny.fingerprint;
  setup.layout = tiny.layout;
  const std::vector<std::string> bytes = BytesOf(InitialState(settings.job));
  for (const size_t i : TheTiny().parameters) {
    const TensorSpec& spec = TinyLayout()[i].spec;
    Tensor tensor = Tensor::Zeros(spec.dtype, spec.shape);
    std::memcpy(tensor.bytes().data(), bytes[i].data(), bytes[i].size());
    setup.initial.emplace(spec.name, std::move(tensor));
  }
  setup.job.mutable_checkpoint()->set_keep_latest(static_cast<int64_t>(settings.keep_checkpoints));
  setup.job.mutable_checkpoint()->set_keep_best(settings.policy.training.evaluation.keep_best);
  setup.directory = std::string("/");
  setup.policy = settings.policy;
  return setup;
}

}  // namespace lockstep::simulation
