#include "worker/device/cuda/vendor/cudnn_engines.h"

#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/device/cuda/vendor_libraries.h"

namespace lockstep::device::cuda {

struct Cudnn::State {
  ~State() {
    if (handle != nullptr) cudnnDestroy(handle);
  }

  cudnnHandle_t handle = nullptr;
  uint64_t version = 0;
  // Null: that of the handle.
  std::shared_ptr<const fe::DeviceProperties> described_gpu;
  int capability = 0;
};

namespace {

// The first line of what went wrong; the frontend adds one for every engine that it tried.
std::string Reason(fe::error_t error) {
  const std::string message = error.get_message();
  return message.substr(0, message.find('\n'));
}

absl::Status Check(const fe::error_t& error, absl::string_view what) {
  if (error.is_good()) return absl::OkStatus();
  return MarkRefusal(absl::UnimplementedError(absl::StrCat("cuDNN: ", what, ": ", Reason(error))));
}

absl::Status Check(cudnnStatus_t status, absl::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuDNN: ", what, ": ", cudnnGetErrorString(status)));
}

// Engines whose results depend on more than operands, or that round more than the factors' type says.
std::vector<fe::NumericalNote_t> Barred(ProductMath math) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes = {Note::NONDETERMINISTIC,   Note::REDUCED_PRECISION_REDUCTION, Note::FFT,
                             Note::WINOGRAD,           Note::WINOGRAD_TILE_4x4,           Note::WINOGRAD_TILE_6x6,
                             Note::WINOGRAD_TILE_13x13};
  // Tensor cores take float32 as tf32.
  if (math == ProductMath::kF32) notes.insert(notes.end(), {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS});
  return notes;
}

class Plan final : public CudnnPlan {
 public:
  Plan(cudnnHandle_t handle, std::shared_ptr<fe::graph::Graph> graph, int64_t index, std::string name)
      : handle_(handle),
        graph_(std::move(graph)),
        index_(index),
        name_(std::move(name)),
        workspace_bytes_(static_cast<size_t>(graph_->get_workspace_size_plan_at_index(index))) {}

  const std::string& name() const override { return name_; }
  size_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Execute(absl::Span<const CudnnAddress> addresses, std::byte* workspace, StreamHandle stream) override {
    std::unordered_map<int64_t, void*> pack;
    for (const CudnnAddress& address : addresses) pack.emplace(address.value, address.address);
    LS_RETURN_IF_ERROR(Check(cudnnSetStream(handle_, stream), "a stream"));
    try {
      const fe::error_t error = graph_->execute_plan_at_index(handle_, pack, workspace, index_);
      if (error.is_good()) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("cuDNN failed in ", name_, ": ", Reason(error)));
    } catch (const std::exception& exception) {
      return absl::InternalError(absl::StrCat("cuDNN failed in ", name_, ": ", exception.what()));
    }
  }

 private:
  const cudnnHandle_t handle_;
  const std::shared_ptr<fe::graph::Graph> graph_;
  const int64_t index_;
  const std::string name_;
  const size_t workspace_bytes_;
};

// "sm_90x132" to 90.
int CapabilityOf(const std::string& gpu) { return gpu.size() > 3 ? std::atoi(gpu.c_str() + 3) : 0; }

}  // namespace

Cudnn::Cudnn(CudnnOptions options, std::unique_ptr<State> state)
    : options_(std::move(options)), state_(std::move(state)) {}

Cudnn::~Cudnn() = default;

std::string Cudnn::name() const {
  const uint64_t version = state_->version;
  return absl::StrCat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::StatusOr<std::unique_ptr<Cudnn>> Cudnn::Open(CudnnOptions options) {
  auto state = std::make_unique<State>();
  if (const cudnnStatus_t status = cudnnCreate(&state->handle); status != CUDNN_STATUS_SUCCESS) {
    state->handle = nullptr;
    return absl::FailedPreconditionError(absl::StrCat("cuDNN does not start: ", cudnnGetErrorString(status)));
  }
  state->version = cudnnGetVersion();
  state->capability = CapabilityOf(options.gpu);
  if (!options.described_gpu.empty()) {
    auto properties = std::make_shared<fe::DeviceProperties>();
    const std::vector<uint8_t> json(options.described_gpu.begin(), options.described_gpu.end());
    if (const fe::error_t error = properties->deserialize(json); error.is_bad()) {
      return absl::InvalidArgumentError(absl::StrCat("cuDNN cannot read the GPU's description: ", Reason(error)));
    }
    state->described_gpu = std::move(properties);
  }
  return std::make_unique<Cudnn>(std::move(options), std::move(state));
}

CudnnGraph::CudnnGraph(const Cudnn& cudnn, std::string kind, ProductMath math, fe::DataType_t type)
    : cudnn_(cudnn), math_(math), graph_(std::make_shared<fe::graph::Graph>()) {
  here_.math = std::move(kind);
  here_.version = cudnn.state().version;
  here_.gpu = cudnn.options().gpu;
  graph_->set_io_data_type(type)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  // Whoever keeps a recorded graph keeps the kernels in it.
  graph_->set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
  // Nodes read this when they are added.
  if (cudnn.state().described_gpu != nullptr) {
    graph_->set_device_properties(cudnn.state().described_gpu).set_sm_version(cudnn.state().capability);
  }
}

absl::StatusOr<CudnnPlans> CudnnGraph::Plan(const std::string& name, int most) {
  LS_RETURN_IF_ERROR(Check(graph_->validate(), "the graph"));
  const Cudnn::State& state = cudnn_.state();
  LS_RETURN_IF_ERROR(Check(
      state.described_gpu == nullptr ? graph_->build_operation_graph(state.handle) : graph_->build_operation_graph(),
      "the graph of operations"));
  return name.empty() ? ChooseNew(most) : ChoosePlanned(name);
}

absl::Status CudnnGraph::AskHeuristics() {
  LS_RETURN_IF_ERROR(
      Check(graph_->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "the heuristics"));
  graph_->deselect_numeric_notes(Barred(math_));
  graph_->deselect_workspace_greater_than(cudnn_.options().workspace_limit);
  return absl::OkStatus();
}

std::shared_ptr<CudnnPlan> CudnnGraph::PlanAt(int64_t index, const std::string& engine) const {
  EngineChoice choice = here_;
  choice.engine = engine;
  return std::make_shared<cuda::Plan>(cudnn_.state().handle, graph_, index, PrintEngineChoice(choice));
}

absl::StatusOr<CudnnPlans> CudnnGraph::ChooseNew(int most) {
  LS_RETURN_IF_ERROR(AskHeuristics());
  CudnnPlans plans;
  const int64_t count = graph_->get_execution_plan_count();
  for (int64_t index = 0; index < count && static_cast<int>(plans.size()) < most; ++index) {
    if (!graph_->build_plan_at_index(index).is_good()) continue;
    std::string engine;
    LS_RETURN_IF_ERROR(Check(graph_->get_plan_name_at_index(index, engine), "an engine's name"));
    plans.push_back(PlanAt(index, engine));
  }
  if (!plans.empty()) return plans;
  return MarkRefusal(absl::UnimplementedError(
      absl::StrCat("cuDNN offers ", count, " engines, none that is deterministic in ", here_.math, " within ",
                   cudnn_.options().workspace_limit, " bytes of scratch")));
}

absl::StatusOr<CudnnPlans> CudnnGraph::ChoosePlanned(const std::string& name) {
  LS_ASSIGN_OR_RETURN(const EngineChoice choice, ParseEngineChoice(name));
  LS_RETURN_IF_ERROR(CheckEngineChoice(choice, here_));
  LS_RETURN_IF_ERROR(AskHeuristics());
  std::string reason = "they do not offer it";
  const int64_t count = graph_->get_execution_plan_count();
  for (int64_t index = 0; index < count; ++index) {
    std::string engine;
    if (graph_->get_plan_name_at_index(index, engine).is_bad() || engine != choice.engine) continue;
    const fe::error_t error = graph_->build_plan_at_index(index);
    if (error.is_good()) {
      CudnnPlans plans;
      plans.push_back(PlanAt(index, engine));
      return plans;
    }
    reason = Reason(error);
  }
  return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", name,
                                                 "', which cuDNN's heuristics refuse here: ", reason,
                                                 ". Use a machine like those that made the plan, or start a new run."));
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace lockstep::device::cuda
