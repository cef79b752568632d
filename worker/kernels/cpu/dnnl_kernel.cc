#include "worker/kernels/cpu/dnnl_kernel.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::device::cpu {
namespace {

class DnnlKernel final : public Kernel {
 public:
  DnnlKernel(const DnnlContext& context, dnnl::primitive primitive, std::string implementation, size_t workspace_bytes,
             const dnnl::memory::desc& scratchpad, std::vector<DnnlSlot> slots)
      : stream_(context.stream),
        primitive_(std::move(primitive)),
        implementation_(std::move(implementation)),
        workspace_bytes_(workspace_bytes),
        slots_(std::move(slots)) {
    // Memory objects are made once; Bind gives them addresses.
    for (const DnnlSlot& slot : slots_) memories_.emplace_back(slot.desc, context.engine, static_cast<void*>(nullptr));
    memories_.emplace_back(scratchpad, context.engine, static_cast<void*>(nullptr));
    for (size_t i = 0; i < slots_.size(); ++i) arguments_.push_back({slots_[i].arg, memories_[i].get()});
    arguments_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
  }

  const std::string& implementation() const override { return implementation_; }
  size_t workspace_bytes() const override { return workspace_bytes_; }
  Layout input_layout(int input) const override { return LayoutOf(true, input); }
  Layout output_layout(int output) const override { return LayoutOf(false, output); }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const auto& addresses = slots_[i].is_input ? arguments.inputs : arguments.outputs;
      std::byte* address = addresses[static_cast<size_t>(slots_[i].index)];
      if (dnnl_memory_set_data_handle(memories_[i].get(), address) != dnnl_success) {
        return absl::InternalError("oneDNN did not accept an address");
      }
    }
    if (dnnl_memory_set_data_handle(memories_.back().get(), arguments.workspace) != dnnl_success) {
      return absl::InternalError("oneDNN did not accept the address of the scratchpad");
    }
    return absl::OkStatus();
  }

  absl::Status Launch(Stream&) override {
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("oneDNN failed in ", implementation_, " with status ", status));
  }

 private:
  Layout LayoutOf(bool is_input, int index) const {
    for (const DnnlSlot& slot : slots_) {
      if (slot.is_input == is_input && slot.index == index) return slot.layout;
    }
    return Layout();
  }

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::string implementation_;
  size_t workspace_bytes_;
  std::vector<DnnlSlot> slots_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// While it exists, the calling thread does not treat denormal numbers as zero, as computing threads do
// (FlushDenormals).
class KeepDenormals {
 public:
  KeepDenormals() {
#if defined(__x86_64__)
    _mm_setcsr(before_ & ~0x8040u);
#endif
  }
  ~KeepDenormals() {
#if defined(__x86_64__)
    _mm_setcsr(before_);
#endif
  }
  KeepDenormals(const KeepDenormals&) = delete;
  KeepDenormals& operator=(const KeepDenormals&) = delete;

 private:
#if defined(__x86_64__)
  const unsigned before_ = _mm_getcsr();
#endif
};

}  // namespace

dnnl::memory::desc RowMajor(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size());
  dnnl::memory::dim stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
}

// The block of a layout that blocks the channels alone, else 0; see Layout.
int ChannelBlock(const dnnl::memory::desc& desc, const dnnl::memory::dims& dims) {
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  if (desc.data.format_kind != dnnl_blocked || dims.size() < 3 || blocking.inner_nblks != 1 ||
      blocking.inner_idxs[0] != 1 || desc.data.offset0 != 0) {
    return 0;
  }
  const dnnl::memory::dim block = blocking.inner_blks[0];
  dnnl::memory::dim stride = block;
  for (size_t i = dims.size(); i-- > 0;) {
    if (blocking.strides[i] != stride) return 0;
    stride *= i == 1 ? (dims[1] + block - 1) / block : dims[i];
  }
  return static_cast<int>(block);
}

dnnl::memory::desc FromOperand(const Operand& operand, const dnnl::memory::dims& dims) {
  if (operand.layout.row_major()) return RowMajor(dims);
  dnnl_memory_desc_t desc;
  std::memcpy(&desc, operand.layout.encoding.data(), sizeof(desc));
  return dnnl::memory::desc(desc);
}

Layout ToLayout(const dnnl::memory::desc& desc, const dnnl::memory::dims& dims) {
  if (desc == RowMajor(dims)) return Layout();
  Layout layout;
  layout.encoding.assign(reinterpret_cast<const char*>(&desc.data), sizeof(desc.data));
  layout.bytes = desc.get_size();
  layout.channel_block = ChannelBlock(desc, dims);
  layout.name = "blocked";
  if (desc.data.format_kind == dnnl_format_kind_wino) layout.name = "winograd";
  if (desc.data.format_kind != dnnl_blocked) return layout;
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    absl::StrAppend(&layout.name, i == 0 ? " " : "", blocking.inner_blks[i],
                    std::string(1, static_cast<char>('a' + blocking.inner_idxs[i])));
  }
  return layout;
}

absl::StatusOr<std::unique_ptr<Kernel>> CatchDnnl(absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>()> make) {
  const KeepDenormals keep;  // for the slope of AppendRelu
  try {
    return make();
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
  }
}

std::unique_ptr<Kernel> MakeDnnlKernel(const DnnlContext& context, const dnnl::primitive& primitive,
                                       std::string implementation, size_t scratchpad_bytes,
                                       const dnnl::memory::desc& scratchpad, std::vector<DnnlSlot> slots) {
  return std::make_unique<DnnlKernel>(context, primitive, std::move(implementation), scratchpad_bytes, scratchpad,
                                      std::move(slots));
}

// With a slope of 0 oneDNN takes the larger one of x and 0, which is 0 for NaN. With any other slope it chooses between
// x and slope * x. This slope is another one where oneDNN looks at it, and counts as 0 where kernels multiply by it.
void AppendRelu(dnnl::post_ops& after) {
  after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, std::numeric_limits<float>::denorm_min(), 0.0f);
}

dnnl::primitive_attr Attributes(Epilogue epilogue) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (epilogue == Epilogue::kRelu) {
    dnnl::post_ops after;
    AppendRelu(after);
    attributes.set_post_ops(after);
  }
  return attributes;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlReorder(const DnnlContext& context, const ReorderRequest& request) {
  return CatchDnnl([&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    if (request.dtype != DType::kF32) return absl::UnimplementedError("layouts are changed for F32 only");
    // A blocked description knows its dimensions, which may be grouped.
    const Layout& blocked = request.from.row_major() ? request.to : request.from;
    const dnnl::memory::desc known = FromOperand({.layout = blocked}, {});
    const dnnl::memory::desc from = FromOperand({.layout = request.from}, known.dims());
    const dnnl::memory::desc to = FromOperand({.layout = request.to}, known.dims());
    const dnnl::reorder::primitive_desc desc(context.engine, from, context.engine, to, Attributes(Epilogue::kNone));
    return MakeDnnlKernel(context, dnnl::reorder(desc), ImplementationName(desc), desc.scratchpad_desc().get_size(),
                          desc.scratchpad_desc(),
                          {{DNNL_ARG_FROM, true, 0, from, request.from}, {DNNL_ARG_TO, false, 0, to, request.to}});
  });
}

}  // namespace lockstep::device::cpu
