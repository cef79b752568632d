#include "worker/kernels/convolution/dnnl_gradient_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep::device::cpu {
namespace {

constexpr size_t kAlignment = 256;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// One part: takes its channels of the result's gradient out, and computes its gradient of the weights from them.
struct Part {
  dnnl::reorder take;
  dnnl::memory from;     // the gradient of the whole result, seen as the part's channels
  dnnl::memory weights;  // the part's place in the output
  dnnl::memory bias;
};

class GradWeightInParts final : public Kernel {
 public:
  GradWeightInParts(const DnnlContext& context, const GradWeightDesc& whole, const GradWeightDesc& part, int parts,
                    bool with_bias)
      : stream_(context.stream),
        gradient_(part),
        implementation_(absl::StrCat(ImplementationName(part), "/", parts)),
        gradient_scratch_(RoundUp(part.scratchpad_desc().get_size())),
        workspace_bytes_(ScratchInParts(part)),
        part_weight_bytes_(part.diff_weights_desc().get_size()),
        part_bias_bytes_(with_bias ? part.diff_bias_desc().get_size() : 0),
        layouts_{ToLayout(whole.diff_dst_desc(), whole.diff_dst_desc().dims()),
                 ToLayout(part.src_desc(), part.src_desc().dims()),
                 ToLayout(whole.diff_weights_desc(), whole.diff_weights_desc().dims())},
        x_(part.src_desc(), context.engine, nullptr),
        taken_(part.diff_dst_desc(), context.engine, nullptr),
        scratch_(part.scratchpad_desc(), context.engine, nullptr) {
    const dnnl::memory::dims dims = part.diff_dst_desc().dims();
    for (int p = 0; p < parts; ++p) {
      dnnl::memory::dims offsets(dims.size(), 0);
      offsets[1] = p * dims[1];
      const dnnl::memory::desc from = whole.diff_dst_desc().submemory_desc(dims, offsets);
      const dnnl::reorder::primitive_desc take(context.engine, from, context.engine, part.diff_dst_desc(),
                                               Attributes(Epilogue::kNone));
      take_scratch_bytes_ = std::max(take_scratch_bytes_, take.scratchpad_desc().get_size());
      parts_.push_back({.take = dnnl::reorder(take),
                        .from = dnnl::memory(from, context.engine, nullptr),
                        .weights = dnnl::memory(part.diff_weights_desc(), context.engine, nullptr),
                        .bias = {}});
      if (with_bias) parts_.back().bias = dnnl::memory(part.diff_bias_desc(), context.engine, nullptr);
    }
  }

  // What taking a part out would need; no room is kept for it.
  size_t take_scratch_bytes() const { return take_scratch_bytes_; }

  const std::string& implementation() const override { return implementation_; }
  size_t workspace_bytes() const override { return workspace_bytes_; }
  Layout input_layout(int input) const override { return layouts_[input]; }
  Layout output_layout(int output) const override { return output == 0 ? layouts_[2] : Layout(); }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    bool accepted = true;
    const auto set = [&accepted](const dnnl::memory& memory, std::byte* address) {
      accepted = dnnl_memory_set_data_handle(memory.get(), address) == dnnl_success && accepted;
    };
    set(x_, arguments.inputs[1]);
    set(scratch_, arguments.workspace);
    set(taken_, arguments.workspace + gradient_scratch_);
    for (size_t p = 0; p < parts_.size(); ++p) {
      set(parts_[p].from, arguments.inputs[0]);
      set(parts_[p].weights, arguments.outputs[0] + p * part_weight_bytes_);
      if (part_bias_bytes_ > 0) set(parts_[p].bias, arguments.outputs[1] + p * part_bias_bytes_);
    }
    return accepted ? absl::OkStatus() : absl::InternalError("oneDNN did not accept an address");
  }

  absl::Status Launch(Stream&) override {
    for (const Part& part : parts_) {
      const dnnl_exec_arg_t take[] = {{DNNL_ARG_FROM, part.from.get()}, {DNNL_ARG_TO, taken_.get()}};
      dnnl_status_t status = dnnl_primitive_execute(part.take.get(), stream_.get(), 2, take);
      const dnnl_exec_arg_t gradient[] = {{DNNL_ARG_SRC, x_.get()},
                                          {DNNL_ARG_DIFF_DST, taken_.get()},
                                          {DNNL_ARG_DIFF_WEIGHTS, part.weights.get()},
                                          {DNNL_ARG_SCRATCHPAD, scratch_.get()},
                                          {DNNL_ARG_DIFF_BIAS, part.bias.get(true)}};
      const int count = part_bias_bytes_ > 0 ? 5 : 4;
      if (status == dnnl_success) status = dnnl_primitive_execute(gradient_.get(), stream_.get(), count, gradient);
      if (status != dnnl_success) {
        return absl::InternalError(absl::StrCat("oneDNN failed in ", implementation_, " with status ", status));
      }
    }
    return absl::OkStatus();
  }

 private:
  dnnl::stream stream_;
  dnnl::convolution_backward_weights gradient_;
  std::string implementation_;
  size_t gradient_scratch_;
  size_t workspace_bytes_;
  size_t part_weight_bytes_;
  size_t part_bias_bytes_;
  size_t take_scratch_bytes_ = 0;
  Layout layouts_[3];  // of the result's gradient, the input and the weights' gradient
  dnnl::memory x_;
  dnnl::memory taken_;
  dnnl::memory scratch_;
  std::vector<Part> parts_;
};

// Whether the weights' layouts differ only in how many blocks of output channels there are, which come one after
// another.
bool PartsAreRuns(const dnnl::memory::desc& whole, const dnnl::memory::desc& part, int parts) {
  if (whole.data.format_kind != dnnl_blocked || part.data.format_kind != dnnl_blocked) return false;
  const dnnl_blocking_desc_t& a = whole.data.format_desc.blocking;
  const dnnl_blocking_desc_t& b = part.data.format_desc.blocking;
  bool same = a.inner_nblks == b.inner_nblks && whole.get_size() == part.get_size() * static_cast<size_t>(parts);
  for (int i = 0; same && i < a.inner_nblks; ++i) {
    same = a.inner_blks[i] == b.inner_blks[i] && a.inner_idxs[i] == b.inner_idxs[i];
  }
  for (int d = 0; same && d < whole.data.ndims; ++d)
    same = a.strides[d] == b.strides[d] && a.strides[d] <= a.strides[0];
  return same;
}

}  // namespace

absl::StatusOr<PartsName> ParsePartsName(const std::string& name) {
  const size_t slash = name.find('/');
  PartsName parsed{.implementation = name.substr(0, slash), .parts = 1};
  if (slash == std::string::npos) return parsed;
  if (!absl::SimpleAtoi(absl::string_view(name).substr(slash + 1), &parsed.parts) || parsed.parts < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel plan asks for implementation '", name, "', which names no number of parts"));
  }
  return parsed;
}

size_t ScratchInParts(const GradWeightDesc& part) {
  return RoundUp(part.scratchpad_desc().get_size()) + part.diff_dst_desc().get_size();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGradWeightInParts(const DnnlContext& context, const GradWeightDesc& whole,
                                                              const GradWeightDesc& part, int parts, bool with_bias) {
  if (!PartsAreRuns(whole.diff_weights_desc(), part.diff_weights_desc(), parts)) {
    return absl::UnimplementedError("oneDNN lays the weights out otherwise for fewer channels");
  }
  auto kernel = std::make_unique<GradWeightInParts>(context, whole, part, parts, with_bias);
  if (kernel->take_scratch_bytes() > 0) return absl::UnimplementedError("oneDNN needs scratch to copy some channels");
  return kernel;
}

}  // namespace lockstep::device::cpu
